"""The response to the last timestamps of a stream, from which its condition follows."""

from __future__ import annotations

from collections import deque

from ldpstream.collector.rounds.fleet_tracker import HEARD_T
from ldpstream.collector.service.condition import ResponseCount
from ldpstream.collector.store.contract import StoredRelease

MOST_RECENT = 500
"""Timestamps that are remembered, if a window has more."""


class RecentResponses:
    """How the timestamps of the last window were answered; written by one thread, read by any."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._last_t = 0
        self._answered: deque[ResponseCount] = deque(maxlen=min(window, MOST_RECENT))

    def add(self, release: StoredRelease) -> None:
        """Record a release, once; ignore one for which nobody was asked."""
        if release.t > self._last_t and release.asked:
            self._answered.append(ResponseCount(release.t, release.asked, release.received))
        self._last_t = max(self._last_t, release.t)

    def at(self, t: int) -> tuple[ResponseCount, ...]:
        """The timestamps of the window that ends with t at which somebody was asked."""
        return tuple(one for one in self._answered.copy() if one.t > t - self._window)

    def heard_t(self, latest: StoredRelease | None) -> int:
        """The last timestamp with a report, as the last release tells; 0 if there was none.

        A release of before 0.3.0 does not tell it: then it is known as far as it is remembered, and
        figures that say more than nothing are proof that somebody was heard.
        """
        if latest is None:
            return 0
        told: int | None = latest.content.get(HEARD_T)
        if told is not None:
            return told
        heard = [one.t for one in self._answered.copy() if one.received]
        if heard:
            return heard[-1]
        ends = zip(latest.content["low"], latest.content["high"], strict=True)
        return 0 if all(high - low >= 1 for low, high in ends) else 1
