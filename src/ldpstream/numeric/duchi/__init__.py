"""Duchi's method: one bit. Best for small epsilon."""
