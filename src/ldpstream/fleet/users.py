"""What each user holds at each timestamp of a collector, as a stream says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts
from ldpstream.errors import Mistake, Problem
from ldpstream.lab.parts import Parts
from ldpstream.streams.stream import CountsStream, ShuffledUsers, Stream, ValuesSnapshot

REMEMBERED = 3
"""Timestamps whose values are kept: a round may be answered a little late."""


class Users:
    """The values of a fleet's users. The first timestamp asked for is the stream's first.

    A stream that ends starts again.

    >>> from ldpstream.streams.synthetic import constant
    >>> users = Users(constant(users=10, timestamps=2, p=0.3), devices=10, seed=1)
    >>> sum(users.value(user, 1_000_005) for user in range(10)), users.counts(1_000_005).tolist()
    (3, [7, 3])
    """

    def __init__(self, stream: Stream, devices: int, seed: int, parts: Parts | None = None) -> None:
        if devices > stream.users:
            expected = f"at most {stream.users}, the users of this stream"
            raise Mistake(Problem.OPTION, option="devices", given=devices, expected=expected)
        self._stream = ShuffledUsers(stream) if isinstance(stream, CountsStream) else stream
        self._devices = devices
        self.parts = parts
        self.combinations = np.zeros(devices, np.uint8)
        """The combination of attributes of each user; each holds labels shifted by its own."""
        if parts is not None:
            sizes = parts.sizes(devices)
            self.combinations = np.repeat(np.arange(len(sizes), dtype=np.uint8), sizes)
        self._rng = np.random.default_rng(seed)
        self._snapshots = self._endless()
        self._values: dict[int, NDArray[Any]] = {}
        self._counts: dict[int, Counts] = {}
        self._last: int | None = None

    def described(self, combination: int) -> dict[str, str]:
        """Return what users of a combination say of themselves: nothing without attributes."""
        return {} if self.parts is None else self.parts.attributes.values_of(combination)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of what users hold."""
        return self._stream.domain.labels

    def value(self, user: int, t: int) -> int | None:
        """Return the label of a user at t, or None if that is too long ago."""
        values = self.values(t)
        return None if values is None else int(values[user])

    def values(self, t: int) -> NDArray[Any] | None:
        """Return the label of each user at t, or None if that is too long ago."""
        if t not in self._values:
            self._advance_to(t)
        return self._values.get(t)

    @property
    def first_t(self) -> int | None:
        """The first timestamp that was asked for, if there was one."""
        return min(self._counts, default=None)

    def counts(self, t: int) -> Counts | None:
        """Return how many users hold each label at t; None before the first t asked for."""
        by_part = self.counts_by_part(t)
        return None if by_part is None else np.asarray(by_part.sum(axis=0))

    def counts_by_part(self, t: int) -> Counts | None:
        """Return the same with a row for each combination of attributes that users have."""
        if self._last is not None and t > self._last:
            self._advance_to(t)  # no device answered at t, but t has passed
        return self._counts.get(t)

    def _advance_to(self, t: int) -> None:
        start = t if self._last is None else self._last + 1
        for now in range(start, t + 1):
            values = next(self._snapshots)[: self._devices].copy()
            if self.parts is not None:
                shifted = values.astype(np.int64) + self.combinations
                values = (shifted % len(self._stream.domain)).astype(values.dtype)
            self._values[now] = values
            self._values.pop(now - REMEMBERED, None)
            labels, parts = len(self._stream.domain), int(self.combinations.max(initial=0)) + 1
            places = self.combinations.astype(np.int64) * labels + values
            self._counts[now] = np.bincount(places, minlength=parts * labels).reshape(parts, -1)
            self._last = now

    def _endless(self) -> Iterator[NDArray[Any]]:
        while True:
            for snapshot in self._stream.snapshots(self._rng):
                assert isinstance(snapshot, ValuesSnapshot)
                yield snapshot.values
