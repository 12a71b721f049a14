"""Optimised local hashing: a hash of the value in about e^epsilon + 1 buckets, randomised."""
