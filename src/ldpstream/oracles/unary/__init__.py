"""Unary encodings: one bit a label, each randomised by itself.

SUE (symmetric, basic RAPPOR) flips all bits with one probability; OUE (optimised) makes the true
one a fair coin and sets the others rarely.
"""
