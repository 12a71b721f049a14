"""Hadamard response: one index of a Hadamard matrix. The smallest report for many labels."""
