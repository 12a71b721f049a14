"""How simulated users come to report: from a roster, by their own coins, or in their slots."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from ldpstream.arrays import UserIndexes
from ldpstream.lab.roster import Roster
from ldpstream.mechanisms.messages import Ask
from ldpstream.protocol.slots import epoch_of
from ldpstream.protocol.terms import SelectionMethod


class Selector(Protocol):
    """Decides which users report when a mechanism asks."""

    def select(self, t: int, ask: Ask) -> UserIndexes | None:
        """Return who reports at t; None means everyone."""
        ...


class OpenSelector:
    """Announces a rate, at which users who have not reported in this window select themselves.

    The rate is n / (N - m) for n users of N, when m have reported in this window, and more than
    were asked for never count: as `OpenSelection` of the collector has it.

    >>> from ldpstream.mechanisms.messages import Purpose
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> selector = OpenSelector(users=1000, window=10, rng=np.random.default_rng(1))
    >>> ask = Ask(100, Epsilon.of(1), Purpose.PUBLICATION)
    >>> [len(selector.select(t, ask)) for t in range(1, 6)]
    [100, 109, 89, 119, 98]
    """

    def __init__(self, users: int, window: int, rng: np.random.Generator) -> None:
        self._users = users
        self._window = window
        self._rng = rng
        self._roster = Roster(users, window, rng)
        self._spent: deque[tuple[int, int]] = deque()
        """Timestamps of this window, and how many users they count for."""

    def select(self, t: int, ask: Ask) -> UserIndexes | None:
        while self._spent and self._spent[0][0] <= t - self._window:
            self._spent.popleft()
        left = max(self._users - sum(users for _, users in self._spent), 1)
        rate = min(ask.users, left) / left
        if rate == 1 and not self._spent:
            return None
        # So many coins of the users who are free fall in favour, and any of them are as likely.
        drawn = self._roster.sample(t, int(self._rng.binomial(self._roster.free(t), rate)))
        self._spent.append((t, min(len(drawn), ask.users)))
        return drawn


class SlotSelector:
    """Waits for users to report, each once in a window, when t mod w is its slot.

    Each epoch has new slots (`protocol/slots.py`), drawn here in place of the hash; in its first
    window those are silent whose last report is less than w timestamps ago.
    """

    def __init__(self, users: int, window: int, rng: np.random.Generator) -> None:
        self._window = window
        self._rng = rng
        self._last = np.full(users, -window, np.int64)
        """When each user has last reported."""
        self._epoch = -1
        self._cohorts: list[UserIndexes] = []
        """The users of each slot."""

    def select(self, t: int, ask: Ask) -> UserIndexes:
        if self._epoch != (epoch := epoch_of(t, self._window)):
            self._epoch, self._cohorts = epoch, self._drawn_cohorts()
        cohort = self._cohorts[t % self._window]
        ready = cohort[self._last[cohort] <= t - self._window]
        self._last[ready] = t
        return ready

    def _drawn_cohorts(self) -> list[UserIndexes]:
        slots = self._rng.integers(self._window, size=len(self._last))
        order = np.argsort(slots, kind="stable").astype(np.uint32)
        ends = np.cumsum(np.bincount(slots, minlength=self._window))
        return np.split(order, ends[:-1])


SELECTORS: dict[SelectionMethod, Callable[[int, int, np.random.Generator], Selector]] = {
    SelectionMethod.ROSTER: Roster,
    SelectionMethod.OPEN: OpenSelector,
    SelectionMethod.SLOTS: SlotSelector,
}
