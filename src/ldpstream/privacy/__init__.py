"""The basis of the privacy promise: exact epsilon, exact randomness, exact accounting."""
