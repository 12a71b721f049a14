"""The square wave: a band of the most informative width; EM reconstructs the distribution."""
