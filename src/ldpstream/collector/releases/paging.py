"""How many releases are read, written or sent at once: few, if each of them has many labels."""

from __future__ import annotations

NUMBERS = 50_000
"""Estimates at once. With its variance and interval, one takes about 80 bytes of JSON, and several
times as much in memory."""


def at_once(labels: int, most: int) -> int:
    """Return how many releases of so many labels to handle at once: at least one, at most `most`.

    >>> at_once(3, 10_000), at_once(200, 10_000), at_once(65_536, 10_000)
    (10000, 250, 1)
    """
    return min(most, max(1, NUMBERS // max(labels, 1)))
