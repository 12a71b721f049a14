"""A stream of true values, as histograms over time or user by user."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts, Floats, UserIndexes
from ldpstream.domain import Domain
from ldpstream.errors import Mistake, Problem

MOST_USERS = 10**12
"""Users of any stream, at most: sums of counts stay exact, as integers and as floats."""


def index_type(labels: int) -> type[np.uint8 | np.uint16]:
    """Return the smallest type that holds the index of a label."""
    return np.uint8 if labels <= 256 else np.uint16


class Snapshot(ABC):
    """The fleet at one timestamp."""

    @property
    @abstractmethod
    def counts(self) -> Counts:
        """How many users hold each label."""

    @abstractmethod
    def counts_of(self, users: UserIndexes, rng: np.random.Generator) -> Counts:
        """Return how many of `users` hold each label; no user may be passed twice per snapshot."""


class CountsSnapshot(Snapshot):
    """A snapshot with a histogram only: who holds what is drawn when it is asked for."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._left = counts

    @property
    def counts(self) -> Counts:
        return self._counts

    def counts_of(self, users: UserIndexes, rng: np.random.Generator) -> Counts:
        drawn: Counts = rng.multivariate_hypergeometric(self._left, len(users), method="marginals")
        self._left = self._left - drawn
        return drawn


class ValuesSnapshot(Snapshot):
    """A snapshot with each user's label index."""

    def __init__(self, values: NDArray[Any], labels: int) -> None:
        self._values = values
        self._labels = labels

    @property
    def values(self) -> NDArray[Any]:
        """The label of each user, by index. It may change with the next snapshot."""
        return self._values

    @property
    def counts(self) -> Counts:
        return np.bincount(self._values, minlength=self._labels)

    def counts_of(self, users: UserIndexes, rng: np.random.Generator) -> Counts:
        return np.bincount(self._values[users], minlength=self._labels)


def fingerprint_of(kind: str, domain: Domain, *content: object) -> str:
    """Return the fingerprint of a stream of this kind: SHA-256 over its labels and content."""
    digest = hashlib.sha256()
    for part in (kind, domain.labels, *content):
        raw = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()


def brief(stream: Stream) -> str:
    """Return a stream in one short line, for its repr."""
    return (
        f"{type(stream).__name__}({stream.name!r}: {stream.users:,} users, "
        f"{stream.timestamps:,} timestamps, {len(stream.domain):,} labels)"
    )


class Stream(Protocol):
    """A named, finite piece of a stream, for simulation."""

    @property
    def name(self) -> str: ...

    @property
    def domain(self) -> Domain: ...

    @property
    def users(self) -> int: ...

    @property
    def timestamps(self) -> int: ...

    @property
    def fingerprint(self) -> str:
        """A hash of all that a run sees of the stream, which is not its name."""
        ...

    def snapshots(self, rng: np.random.Generator) -> Iterator[Snapshot]:
        """Yield the fleet at t = 1 .. timestamps, in order; each is used before the next one."""
        ...


@dataclass(frozen=True, repr=False)
class CountsStream:
    """A stream given by its histograms: a row of counts for each timestamp, all with equal sums.

    >>> CountsStream("tiny", Domain.of(["a", "b"]), np.array([[3, 1], [2, 2]]))
    CountsStream('tiny': 4 users, 2 timestamps, 2 labels)
    """

    name: str
    domain: Domain
    table: Counts

    def __post_init__(self) -> None:
        if self.table.ndim != 2 or not len(self.table):
            self._refuse("rows", self.table.shape, "a row of counts per timestamp, at least one")
        if self.table.shape[1] != len(self.domain):
            self._refuse("columns", self.table.shape[1], f"one per label, {len(self.domain)}")
        if (self.table < 0).any():
            self._refuse("a count", int(self.table.min()), "0 or more")
        sums = self.table.sum(axis=1)
        if (sums != sums[0]).any():
            odd = int((sums != sums[0]).argmax())
            self._refuse(f"the sum of row {odd + 1}", int(sums[odd]), f"{sums[0]}, as in row 1")

    @classmethod
    def in_proportion(cls, name: str, domain: Domain, weights: Floats, users: int) -> CountsStream:
        """Return a stream whose counts are in proportion to each row of weights.

        >>> weights = np.array([[1.0, 2.0], [2.0, 2.0]])
        >>> CountsStream.in_proportion("s", Domain.numbered(2), weights, 10).table.tolist()
        [[3, 7], [5, 5]]
        """
        shares = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
        # Running totals are rounded, not counts, so that counts still sum to all users.
        totals = np.rint(shares * users).astype(np.int64)
        return cls(name, domain, np.diff(totals, axis=1, prepend=0))

    def __repr__(self) -> str:
        return brief(self)

    def _refuse(self, name: str, given: object, expected: str) -> None:
        raise Mistake(
            Problem.STREAM_PARAMETER, stream=self.name, name=name, given=given, expected=expected
        )

    @property
    def users(self) -> int:
        return int(self.table[0].sum())

    @property
    def timestamps(self) -> int:
        return len(self.table)

    @cached_property
    def fingerprint(self) -> str:
        table = np.ascontiguousarray(self.table, "<i8")
        return fingerprint_of("counts", self.domain, table.shape, table.tobytes())

    def first(self, timestamps: int) -> CountsStream:
        """Return the same stream, cut after so many timestamps."""
        if not 1 <= timestamps <= self.timestamps:
            self._refuse("timestamps", timestamps, f"1 to {self.timestamps}")
        return replace(self, table=self.table[:timestamps])

    def held_by(self, users: int) -> CountsStream:
        """Return a stream of the same histograms, held by another number of users.

        >>> small = CountsStream("small", Domain.numbered(2), np.array([[3, 1], [1, 3]]))
        >>> small.held_by(1000).table.tolist()
        [[750, 250], [250, 750]]
        """
        if not 1 <= users <= MOST_USERS:
            self._refuse("users", users, f"1 to {MOST_USERS:,}")
        totals = np.cumsum(self.table, axis=1)
        scaled = np.rint(totals * (users / self.users)).astype(np.int64)
        return replace(self, table=np.diff(scaled, axis=1, prepend=0))

    def snapshots(self, rng: np.random.Generator) -> Iterator[Snapshot]:
        for row in self.table:
            yield CountsSnapshot(row)


@dataclass(frozen=True)
class UsersOf:
    """A stream whose users hold the values of a stream of histograms."""

    source: CountsStream

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def domain(self) -> Domain:
        return self.source.domain

    @property
    def users(self) -> int:
        return self.source.users

    @property
    def timestamps(self) -> int:
        return self.source.timestamps


@dataclass(frozen=True)
class ShuffledUsers(UsersOf):
    """A stream of histograms with a value for each user, dealt anew at each timestamp."""

    @property
    def fingerprint(self) -> str:
        return fingerprint_of("shuffled", self.domain, self.source.fingerprint)

    def snapshots(self, rng: np.random.Generator) -> Iterator[Snapshot]:
        labels = len(self.domain)
        indexes = np.arange(labels, dtype=index_type(labels))
        for row in self.source.table:
            values = np.repeat(indexes, row)
            rng.shuffle(values)
            yield ValuesSnapshot(values, labels)
