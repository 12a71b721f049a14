"""Symmetric unary encoding (basic RAPPOR): one bit a label, all flipped with one probability."""
