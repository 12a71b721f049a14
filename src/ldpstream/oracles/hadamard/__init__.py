"""Hadamard response: a report is a column of a Hadamard matrix, the smallest for many labels."""
