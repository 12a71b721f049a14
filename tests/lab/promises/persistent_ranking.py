"""Users of a binary stream who keep their values as long as the counts allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Counts, Flags
from ldpstream.streams.stream import CountsStream


@dataclass(frozen=True)
class PersistentRanking:
    """The users as a ranking: those of the first ranks hold label 1, as many as the counts say.

    With two labels this is what `streams/persistent.py` does, with the values at hand.
    """

    ranks: Counts
    counts: Counts
    """Of label 1, by timestamp."""

    @classmethod
    def of(cls, stream: CountsStream, rng: np.random.Generator) -> PersistentRanking:
        return cls(rng.permutation(stream.users), stream.table[:, 1])

    @property
    def users(self) -> int:
        return len(self.ranks)

    @property
    def timestamps(self) -> int:
        return len(self.counts)

    def holds(self, t: int) -> Flags:
        """Return whether each user holds label 1 at t, from 1 on; nobody does at 0."""
        if t == 0:
            return np.zeros(self.users, np.bool_)
        held: Flags = self.ranks < self.counts[t - 1]
        return held

    def most_changes(self) -> int:
        """Return the largest number of times that a user's value changes; a first 1 counts.

        >>> from ldpstream.streams.synthetic import step
        >>> stream = step(users=100, timestamps=9, every=3)
        >>> PersistentRanking.of(stream, np.random.default_rng(1)).most_changes()
        2
        """
        changes = np.zeros(self.users, np.int64)
        for t in range(1, self.timestamps + 1):
            changes += self.holds(t) != self.holds(t - 1)
        return int(changes.max())
