"""Local hashing: a hash of the value under a fresh seed, its bucket randomised.

BLH (binary) has two buckets; OLH (optimised) about e^epsilon + 1.
"""
