"""Populations in which the level of privacy that people choose goes with the value they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Counts, UserIndexes
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
class CorrelatedUsers(UsersOf):
    """A stream of histograms whose users come in groups, of `sizes`, that hold different values.

    Users are numbered group by group. In each group a share `correlation` of the users, always the
    same ones, hold values in the order of the groups: the first group has the first labels. All
    others draw theirs afresh at each timestamp. All users together have the histogram of the
    stream, exactly.

    >>> from ldpstream.domain import Domain
    >>> source = CountsStream("tiny", Domain.of(["a", "b"]), np.array([[6, 2]]))
    >>> [snapshot] = CorrelatedUsers(source, (4, 4), 1.0).snapshots(np.random.default_rng(1))
    >>> users, rng = np.arange(8, dtype=np.uint32), np.random.default_rng(1)
    >>> [snapshot.counts_of(group, rng).tolist() for group in (users[:4], users[4:])]
    [[4, 0], [2, 2]]
    """

    sizes: tuple[int, ...]
    correlation: float

    @property
    def fingerprint(self) -> str:
        made_of = self.source.fingerprint, self.sizes, self.correlation
        return fingerprint_of("correlated", self.domain, *made_of)

    def snapshots(self, rng: np.random.Generator) -> Iterator[Snapshot]:
        sizes = np.array(self.sizes)
        tied = np.rint(self.correlation * sizes).astype(np.int64)
        if not tied.any():
            yield from self.source.snapshots(rng)
            return
        starts = np.cumsum(sizes) - sizes
        table = self.source.held_by(int(tied.sum())).table
        for everyone, counts in zip(self.source.table, table, strict=True):
            yield _CorrelatedSnapshot(everyone, counts, starts, tied)


class _CorrelatedSnapshot(Snapshot):
    """The values of those who hold them by their group, and of those who draw theirs afresh."""

    def __init__(self, everyone: Counts, counts: Counts, starts: Counts, tied: Counts) -> None:
        self._everyone = everyone
        self._starts = starts
        self._tied = tied
        self._held = [CountsSnapshot(held) for held in _in_order(tied, counts)]
        self._afresh = CountsSnapshot(everyone - counts)

    @property
    def counts(self) -> Counts:
        return self._everyone

    def counts_of(self, users: UserIndexes, rng: np.random.Generator) -> Counts:
        group = np.searchsorted(self._starts, users, side="right") - 1
        by_group = users - self._starts[group] < self._tied[group]
        counts = self._afresh.counts_of(users[~by_group], rng)
        for place, held in enumerate(self._held):
            counts = counts + held.counts_of(users[by_group & (group == place)], rng)
        return counts


def _in_order(sizes: Counts, counts: Counts) -> Counts:
    """Return a row of counts for each group, when labels are dealt out in order.

    >>> _in_order(np.array([3, 3]), np.array([2, 4])).tolist()
    [[2, 1], [0, 3]]
    """
    ends, dealt = np.cumsum(sizes)[:, None], np.cumsum(counts)[None, :]
    last, first = np.minimum(ends, dealt), np.maximum(ends - sizes[:, None], dealt - counts)
    rows: Counts = np.maximum(last - first, 0)
    return rows


def correlated(stream: Stream, sizes: tuple[int, ...], correlation: float) -> Stream:
    """Return the stream with users in groups that hold different values; with 0, as it is."""
    if correlation == 0:
        return stream
    if not isinstance(stream, CountsStream):
        raise Mistake(
            Problem.OPTION,
            option="the correlation of levels",
            given=correlation,
            expected=f"0: the users of {stream.name} have values of their own",
        )
    return CorrelatedUsers(stream, sizes, correlation)
