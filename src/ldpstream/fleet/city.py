"""The stream of the demonstration: where the people of a city are, day by day, with a match."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ldpstream.domain import Domain
from ldpstream.streams.stream import CountsStream

REGIONS = ("Suburbs", "Old Town", "Harbour", "University", "Station", "Riverside", "Stadium")
DAY = 90
"""Timestamps of a day."""
KICK_OFF = 30
"""Timestamps from the start until people stream to the stadium."""
MATCH = 24
"""Timestamps that they stay there."""
CROWD = 0.4
"""The share of all people who are at the stadium then."""

_WAKING = 7.0
"""The hour at which the first day begins."""


def city(people: int) -> CountsStream:
    """Return a stream of two days, one with a match; a fleet starts it again after them.

    >>> stream = city(1000)
    >>> stream.table[[0, KICK_OFF + 10, DAY + KICK_OFF + 10], -1].tolist()
    [30, 400, 30]
    """
    t = np.arange(2 * DAY)
    weights = _rhythm((_WAKING + 24 * t / DAY) % 24)
    shares = weights / weights.sum(axis=1, keepdims=True)
    at_stadium = 0.03 + (CROWD - 0.03) * _crowd(t - KICK_OFF)
    elsewhere = np.cumsum(shares * (1 - at_stadium)[:, None], axis=1)
    upto = np.rint(people * elsewhere).astype(np.int64)  # the counts sum to all people
    return CountsStream("city", Domain.of(REGIONS), np.diff(upto, prepend=0, append=people))


def _rhythm(hour: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how strongly each region but the stadium attracts people at this hour."""

    def around(middle: float, width: float) -> NDArray[np.float64]:
        away = np.abs(hour - middle)
        drawn: NDArray[np.float64] = np.exp(-((np.minimum(away, 24 - away) / width) ** 2))
        return drawn

    return np.column_stack(
        [
            0.2 + 1.2 * around(2, 6),
            0.15 + 0.7 * around(20.5, 3.5),
            0.25 + 0.3 * around(11, 5),
            0.1 + 0.55 * around(12.5, 4),
            0.15 + 0.35 * around(8, 1.8) + 0.35 * around(17.5, 1.8),
            0.1 + 0.25 * around(16, 3),
        ]
    )


def _crowd(since: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how full the stadium is: from 0 to 1 in three timestamps, and back in three."""
    return np.clip(np.minimum(since + 1, MATCH + 3 - since) / 3, 0, 1)
