"""Generalised randomised response: the value itself, or with some probability another one.

The paper's oracle. Best for few labels: its variance grows with their number.
"""
