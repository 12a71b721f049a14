"""The kernels in NumPy: the fallback where Numba is missing, and the reference for their tests."""
