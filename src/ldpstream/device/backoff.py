"""Exponential backoff with jitter: how long to wait before a retry."""

from __future__ import annotations

from collections.abc import Callable
from random import SystemRandom

LONGEST_SECONDS = 300.0

Jitter = Callable[[float], float]
"""A function that returns a random number of seconds from 0 to the one given."""


def system_jitter(most: float) -> float:
    return SystemRandom().uniform(0, most)


def pause_after(failures: int, first: float, at_least: float, jitter: Jitter) -> float:
    """Return a pause that doubles with each failure, with full jitter to spread a fleet's retries.

    >>> [pause_after(failures, 1.0, 0.0, lambda most: most) for failures in (1, 2, 3, 30)]
    [1.0, 2.0, 4.0, 300.0]
    """
    doubled = first * 2.0 ** min(failures - 1, 30)
    return at_least + jitter(min(LONGEST_SECONDS, doubled))
