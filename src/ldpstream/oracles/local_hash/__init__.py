"""Local hashing: a report is a fresh hash seed and the value's bucket under it, randomised.

BLH (binary) has two buckets; OLH (optimised) about e^epsilon + 1.
"""
