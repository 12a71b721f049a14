"""Duchi's method: a report is one bit; best for small epsilon."""
