"""The kernels again, in NumPy: the fallback where Numba is missing, and what tests hold them to."""
