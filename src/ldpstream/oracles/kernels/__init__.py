"""Kernels over arrays of reports, compiled with Numba; `oracles/reference` has them in NumPy.

The 32- and 64-bit casts are on purpose: Numba widens mixed integer arithmetic silently, and an
estimate from a widened hash is silently wrong.

Each simulated device has its own random numbers, those of SplitMix64 seeded with a hash of the
device's index. So neither the number of threads nor the order of the work changes a report.
"""
