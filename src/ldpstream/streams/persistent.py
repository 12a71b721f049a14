"""Populations that persist: users who keep their values, as far as the histograms allow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts, UserIndexes
from ldpstream.compiled import compiled
from ldpstream.errors import Mistake, Problem
from ldpstream.streams.stream import (
    CountsSnapshot,
    CountsStream,
    Snapshot,
    Stream,
    UsersOf,
    fingerprint_of,
)


@dataclass(frozen=True)
class PersistentUsers(UsersOf):
    """A stream of histograms, a share `persistence` of whose users keep their values.

    These are settled: from one timestamp to the next, as few of them move as the counts allow, and
    the last to come to a label is the first to leave it. So with two labels each keeps its place in
    one ranking, and a cycle brings everybody back to where they were. All others draw their
    values afresh at each timestamp. The settled have the histogram of the stream, to within one
    user of each label, and all users together have it exactly.

    While the counts stand still, the sampling errors of one group of users at two timestamps are
    correlated by `persistence`.

    >>> from ldpstream.domain import Domain
    >>> source = CountsStream("tiny", Domain.of(["a", "b"]), np.array([[6, 4], [5, 5], [6, 4]]))
    >>> everyone = np.arange(10, dtype=np.uint32)
    >>> rng = np.random.default_rng(1)
    >>> for snapshot in PersistentUsers(source, 1.0).snapshots(rng):
    ...     print([int(snapshot.counts_of(everyone[[user]], rng)[1]) for user in everyone])
    [0, 0, 0, 1, 0, 1, 1, 0, 0, 1]
    [0, 0, 1, 1, 0, 1, 1, 0, 0, 1]
    [0, 0, 0, 1, 0, 1, 1, 0, 0, 1]
    """

    persistence: float

    @property
    def fingerprint(self) -> str:
        return fingerprint_of("persistent", self.domain, self.source.fingerprint, self.persistence)

    def snapshots(self, rng: np.random.Generator) -> Iterator[Snapshot]:
        number = round(self.persistence * self.users)
        if number == 0:
            yield from self.source.snapshots(rng)
            return
        table = self.source.held_by(number).table
        settled = _Settled(self.users, table[0], rng)
        for everyone, counts in zip(self.source.table, table, strict=True):
            settled.move(counts)
            yield _PersistentSnapshot(everyone, settled.values, everyone - counts)


class _PersistentSnapshot(Snapshot):
    """The values of the settled, and a histogram of those who draw theirs afresh."""

    def __init__(self, counts: Counts, values: NDArray[Any], afresh: Counts) -> None:
        self._counts = counts
        self._values = values
        self._afresh = CountsSnapshot(afresh)

    @property
    def counts(self) -> Counts:
        return self._counts

    def counts_of(self, users: UserIndexes, rng: np.random.Generator) -> Counts:
        values = self._values[users]
        labels = len(self._counts)
        others = users[values == labels]
        settled: Counts = np.bincount(values, minlength=labels)[:labels]
        return settled + self._afresh.counts_of(others, rng)


class _Settled:
    """The users who keep their values: for each label a stack of them, as a linked list."""

    def __init__(self, users: int, counts: Counts, rng: np.random.Generator) -> None:
        labels, ends = len(counts), np.cumsum(counts)
        order = rng.permutation(users)[: ends[-1]].astype(np.uint32)
        self.values = np.full(users, labels, np.min_scalar_type(labels))
        """The label of each user; one more than the last label for those who are not settled."""
        self.values[order] = np.repeat(np.arange(labels), counts)
        self._counts = counts
        self._top = order[ends - 1]
        self._below = np.empty(users, np.uint32)
        # The bottom of a stack points into another one, but no stack is popped below its bottom.
        self._below[order] = np.roll(order, 1)

    def move(self, counts: Counts) -> None:
        """Move as few users as it takes to get to these counts."""
        _move(self.values, self._below, self._top, counts - self._counts)
        self._counts = counts


@compiled()
def _move(values: NDArray[Any], below: UserIndexes, top: UserIndexes, change: Counts) -> None:
    """Pop users off the labels that lose some, and push them on those that gain some.

    Givers are taken from the first label on and takers from the last, so that a burst that is fed
    by several labels gives each of them its own users back.
    """
    to = len(change) - 1
    for label in range(len(change)):
        while change[label] < 0:
            while change[to] <= 0:
                to -= 1
            user = top[label]
            top[label] = below[user]
            below[user] = top[to]
            top[to] = user
            values[user] = to
            change[label] += 1
            change[to] -= 1


def persistent(stream: Stream, persistence: float) -> Stream:
    """Return the stream with this share of its users settled; with 0, the stream itself.

    Refuse a number that is no share, and a stream whose users have values of their own.
    """
    if persistence == 0:
        return stream
    if not 0 < persistence <= 1:
        expected = "a share of the users, 0 to 1"
    elif not isinstance(stream, CountsStream):
        expected = f"0: the users of {stream.name} have values of their own"
    else:
        return PersistentUsers(stream, persistence)
    raise Mistake(Problem.OPTION, option="persistence", given=persistence, expected=expected)
