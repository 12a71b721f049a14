"""Unary encodings: a report has one bit for each label, each randomised independently.

SUE (symmetric, basic RAPPOR) flips all bits with one probability; OUE (optimised) makes the true
one a fair coin and sets the others rarely.
"""
