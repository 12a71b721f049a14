"""Optimised unary encoding: one bit a label, the true one a fair coin, the others rarely set."""
