"""Checks of the promise that could fail: exact, by attack, and on a device's own file.

See docs/guarantee.md for what is promised, and docs/trust.md for what the checks said.
"""
