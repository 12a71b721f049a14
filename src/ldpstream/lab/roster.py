"""The roster: which users may be asked now, and exact-size samples of them."""

from __future__ import annotations

from collections import deque

import numpy as np

from ldpstream.arrays import Floats, UserIndexes
from ldpstream.compiled import compiled
from ldpstream.errors import GuaranteeBroken, Problem
from ldpstream.mechanisms.messages import Ask


class Roster:
    """The users who have not been sampled in the window that ends now: U_A of Algorithms 3 and 4.

    It is one permutation of the users with the available ones in front: 4 bytes for each user, and
    4 more for each one who is unavailable. Sampling and recycling cost O(sample).

    >>> roster = Roster(users=6, window=2, rng=np.random.default_rng(1))
    >>> first = roster.sample(1, 4)
    >>> second = roster.sample(2, 2)
    >>> sorted(first.tolist() + second.tolist())
    [0, 1, 2, 3, 4, 5]
    >>> sorted(roster.sample(3, 4).tolist()) == sorted(first.tolist())
    True
    """

    def __init__(self, users: int, window: int, rng: np.random.Generator) -> None:
        self._order = np.arange(users, dtype=np.uint32)
        self._available = users
        self._window = window
        self._rng = rng
        self._out: deque[tuple[int, UserIndexes]] = deque()

    def select(self, t: int, ask: Ask) -> UserIndexes | None:
        """Draw as many users as are asked for; None means everyone."""
        return None if ask.users == len(self._order) else self.sample(t, ask.users)

    def sample(self, t: int, size: int) -> UserIndexes:
        """Draw `size` available users uniformly, and make them unavailable until t + w."""
        if size > self.free(t):
            raise GuaranteeBroken(
                Problem.ROSTER_EXHAUSTED, asked=size, t=t, available=self._available
            )
        _draw_to_back(self._order, self._available, self._rng.random(size))
        self._available -= size
        drawn = self._order[self._available : self._available + size].copy()
        self._out.append((t, drawn))
        return drawn

    def free(self, t: int) -> int:
        """Return how many users are available at t."""
        self._recycle(t - self._window)
        return self._available

    def _recycle(self, last: int) -> None:
        """Make users sampled at or before `last` = t-w available again at t, not one step earlier.

        The paper frees the users of t-w+1 at the end of t, for t+1, which is the same
        (docs/paper-corrections.md, 6).
        """
        while self._out and self._out[0][0] <= last:
            _, users = self._out.popleft()
            self._order[self._available : self._available + len(users)] = users
            self._available += len(users)


@compiled()
def _draw_to_back(order: UserIndexes, available: int, draws: Floats) -> None:
    """Shuffle by Fisher-Yates from the back of the available part, a draw in [0, 1) each step."""
    for step in range(len(draws)):
        last = available - 1 - step
        chosen = int(draws[step] * (last + 1))
        order[chosen], order[last] = order[last], order[chosen]
