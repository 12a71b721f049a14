"""The audit of the privacy promise: exact checks, attacks, and planted bugs that it must find.

See docs/guarantee.md for what is promised, and docs/trust.md for the results.
"""
