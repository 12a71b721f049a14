"""Simulated fleets whose devices have public attributes, and different values by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import NoReturn

import numpy as np

from ldpstream.arrays import Counts, Floats, UserIndexes
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.attributes import Attribute, Attributes
from ldpstream.streams.stream import (
    CountsSnapshot,
    CountsStream,
    Snapshot,
    Stream,
    UsersOf,
    fingerprint_of,
)

FORM = "NAME=VALUE:SHARE,..., such as country=de:0.6,fr:0.3, with shares of at most 1 in all"


@dataclass(frozen=True)
class Parts:
    """The attributes of a fleet's users, and the share of the users that has each value.

    Users of no declared value are `OTHER`. Attributes are independent of each other.

    >>> parts = Parts.read(["country=de:0.6,fr:0.3", "model=a:0.5"])
    >>> parts.attributes.groups[:3]
    (('country', 'de'), ('country', 'fr'), ('country', 'other'))
    >>> parts.sizes(100).tolist()
    [30, 30, 15, 15, 5, 5]
    """

    attributes: Attributes
    shares: tuple[tuple[float, ...], ...]
    """Of the values of each attribute, that of `OTHER` last."""

    @classmethod
    def read(cls, written: Sequence[str]) -> Parts:
        """Parse attributes as `--attribute` gives them."""
        read = [_attribute(one) for one in written]
        attributes = Attributes(tuple(one for one, _ in read))
        if attributes.fault is not None:
            _refuse(" ".join(written), attributes.fault)
        return cls(attributes, tuple(shares for _, shares in read))

    @cached_property
    def combined(self) -> Floats:
        """The share of the users that has each combination of values."""
        return np.array([prod(shares) for shares in product(*self.shares)])

    def sizes(self, users: int) -> Counts:
        """Return how many users have each combination; they are numbered in this order."""
        ends = np.rint(np.cumsum(self.combined) * users).astype(np.int64)
        return np.diff(ends, prepend=0)


def _attribute(written: str) -> tuple[Attribute, tuple[float, ...]]:
    name, _, values = written.partition("=")
    parts = [part.rpartition(":") for part in values.split(",")]
    declared = tuple(value.strip() for value, _, _ in parts)
    try:
        shares = [float(share) for _, _, share in parts]
    except ValueError:
        _refuse(written, FORM)
    if not all(0 <= share <= 1 for share in shares) or sum(shares) > 1 + 1e-9:
        _refuse(written, FORM)
    return Attribute(name.strip(), declared), (*shares, max(0.0, 1 - sum(shares)))


def _refuse(given: str, expected: str) -> NoReturn:
    raise Mistake(Problem.OPTION, option="--attribute", given=given, expected=expected)


@dataclass(frozen=True)
class PartedUsers(UsersOf):
    """A stream of histograms, shifted by `shift` labels from each combination to the next.

    So what a group holds differs from what the fleet does, and moves with it.

    >>> from ldpstream.domain import Domain
    >>> source = CountsStream("tiny", Domain.of(["a", "b", "c"]), np.array([[6, 2, 0]]))
    >>> parted = PartedUsers(source, Parts.read(["country=de:0.5"]))
    >>> [snapshot] = parted.snapshots(np.random.default_rng(1))
    >>> snapshot.parts.tolist(), snapshot.counts.tolist()
    ([[3, 1, 0], [0, 3, 1]], [3, 4, 1])
    """

    parts: Parts
    shift: int = 1

    @property
    def fingerprint(self) -> str:
        made_of = self.source.fingerprint, self.parts, self.shift
        return fingerprint_of("parted", self.domain, *made_of)

    def snapshots(self, rng: np.random.Generator) -> Iterator[PartedSnapshot]:
        sizes = self.parts.sizes(self.users)
        tables = [
            np.roll(self.source.held_by(int(size)).table, self.shift * place, axis=1)
            if size
            else np.zeros_like(self.source.table)
            for place, size in enumerate(sizes)
        ]
        for rows in zip(*tables, strict=True):
            yield PartedSnapshot(np.array(rows), np.cumsum(sizes))


class PartedSnapshot(Snapshot):
    """A snapshot whose users are numbered combination by combination."""

    def __init__(self, parts: Counts, ends: Counts) -> None:
        self.parts = parts
        """How many users of each combination hold each label."""
        self._ends = ends
        self._held = [CountsSnapshot(part) for part in parts]

    @property
    def counts(self) -> Counts:
        summed: Counts = self.parts.sum(axis=0)
        return summed

    def counts_of(self, users: UserIndexes, rng: np.random.Generator) -> Counts:
        summed: Counts = self.counts_by_part(users, rng).sum(axis=0)
        return summed

    def counts_by_part(self, users: UserIndexes, rng: np.random.Generator) -> Counts:
        """Return how many of `users` hold each label, a row for each combination."""
        place = np.searchsorted(self._ends, users, side="right")
        return np.array(
            [held.counts_of(users[place == part], rng) for part, held in enumerate(self._held)]
        )


def parted(stream: Stream, parts: Parts, shift: int = 1) -> PartedUsers:
    """Return the stream with users of these attributes, whose values differ by so many labels."""
    if not isinstance(stream, CountsStream):
        expected = f"left out: the users of {stream.name} have values of their own"
        raise Mistake(Problem.OPTION, option="--attribute", given="given", expected=expected)
    return PartedUsers(stream, parts, shift)
