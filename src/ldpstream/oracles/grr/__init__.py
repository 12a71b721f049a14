"""Generalised randomised response: a report is the value or, with some probability, another one.

It is the paper's oracle, and best for few labels: its variance grows with their number.
"""
