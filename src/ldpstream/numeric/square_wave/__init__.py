"""The square wave: a band whose width tells most of the distribution, which EM reconstructs."""
