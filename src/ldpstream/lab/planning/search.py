"""A search for the smallest sufficient number in few trials: each of them costs a rehearsal."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, floor, inf, isfinite, log, log10

CLOSE = 1.01
"""Ratio of a sufficient number to an insufficient one at which the search ends."""
MOST_TRIALS = 40


def smallest(
    error: Callable[[float], float], goal: float, start: float, least: float, most: float
) -> float | None:
    """Return the least x (to 1 %) in `least` .. `most` with error(x) <= goal, or None.

    `error` must not grow with x. It may be infinite.

    >>> round(smallest(lambda n: n ** -0.5, goal=0.01, start=300, least=1, most=1e9) or 0, -2)
    10000.0
    >>> smallest(lambda n: 1 + 1 / n, goal=0.5, start=10, least=1, most=1e9) is None
    True
    """
    short: tuple[float, float] | None = None
    enough: tuple[float, float] | None = None
    x = min(max(start, least), most)
    for _ in range(MOST_TRIALS):
        found = error(x)
        if found <= goal:
            enough = (x, found)
        else:
            short = (x, found)
        if enough and (x <= least or (short and enough[0] <= short[0] * CLOSE)):
            break
        if short and not enough and x >= most:
            return None
        if short and enough:
            x = _between(short, enough, goal)
        else:
            x = min(max(x * _stride(found, goal), least), most)
    return enough[0] if enough else None


def _stride(found: float, goal: float) -> float:
    """Return a factor for x if errors fall like 1/sqrt(x), a little too large to get a bracket."""
    if not isfinite(found):
        return 4.0
    guess = (found / goal) ** 2 if goal > 0 else inf
    return min(guess * 1.02, 100.0) if found > goal else max(guess * 0.98, 0.01)


def _between(short: tuple[float, float], enough: tuple[float, float], goal: float) -> float:
    """Interpolate linearly in logarithms, but never close to an end, where a search would stall."""
    low, high = log(short[0]), log(enough[0])
    share = 0.5
    if isfinite(short[1]) and 0 < enough[1] < short[1]:
        share = (log(short[1]) - log(goal)) / (log(short[1]) - log(enough[1]))
    return exp(low + min(max(share, 0.1), 0.9) * (high - low))


def round_up(x: float, digits: int = 3) -> float:
    """Round up to three digits: a forecast has no more, and a sufficient number stays sufficient.

    >>> round_up(123_456), round_up(0.01234)
    (124000, 0.0124)
    """
    places = digits - 1 - floor(log10(x))
    if places > 0:
        return float(ceil(x * 10**places - 1e-9) / 10**places)
    unit = int(10**-places)
    return ceil(x / unit) * unit
