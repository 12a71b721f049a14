"""Kernels over millions of texts: their buckets, and the transform of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes, Counts
from ldpstream.compiled import compiled, in_chunks
from ldpstream.oracles.kernels.splitmix import GAMMA, mix
from ldpstream.oracles.walsh import walsh
from ldpstream.vocabulary.device import bucket_of


@dataclass(frozen=True)
class Texts:
    """Many texts in one buffer: text i is the bytes from `ends[i-1]` to `ends[i]`."""

    data: Bytes
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Texts:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return cls(np.frombuffer(b"".join(texts), np.uint8), np.cumsum(lengths))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, place: int) -> bytes:
        start = int(self.ends[place - 1]) if place else 0
        return self.data[start : int(self.ends[place])].tobytes()

    def buckets(self, seed: int, buckets: int, length: int | None = None) -> NDArray[np.uint32]:
        """Return the bucket of each text, or of its prefix of `length` bytes."""
        out = np.empty(len(self), np.uint32)
        most = np.int64(length if length is not None else 1 << 30)
        in_chunks(
            len(self),
            lambda start, stop: _hash(
                self.data, self.ends, out, start, stop, most, np.uint64(seed), np.uint64(buckets)
            ),
        )
        return out


def _hash_slowly(
    data: Bytes,
    ends: NDArray[np.int64],
    out: NDArray[np.uint32],
    start: int,
    stop: int,
    most: np.int64,
    seed: np.uint64,
    buckets: np.uint64,
) -> None:
    texts = Texts(data, ends)
    for i in range(start, stop):
        out[i] = bucket_of(texts[i][: int(most)], int(seed), int(buckets))


@compiled(_hash_slowly)
def _hash(
    data: Bytes,
    ends: NDArray[np.int64],
    out: NDArray[np.uint32],
    start: int,
    stop: int,
    most: np.int64,
    seed: np.uint64,
    buckets: np.uint64,
) -> None:
    for i in range(start, stop):
        begin = ends[i - 1] if i > 0 else np.int64(0)
        end = min(ends[i], begin + most)
        state = mix(seed ^ np.uint64(end - begin))
        for place in range(begin, end, 8):
            word = np.uint64(0)
            for k in range(min(8, end - place)):
                word |= np.uint64(data[place + k]) << np.uint64(8 * k)
            state = mix((state ^ word) + GAMMA)
        out[i] = np.uint32(((state >> np.uint64(32)) * buckets) >> np.uint64(32))


def transformed(columns: Counts) -> NDArray[np.int32]:
    """Return the excess of supporting over opposing reports for every row of the matrix.

    `walsh` in place and in 32 bits: a collector transforms a million columns at a time.

    >>> transformed(np.array([1, 2, 3, 4])).tolist()
    [10, -2, -4, 0]
    """
    rows = columns.astype(np.int32)
    _transform(rows)
    return rows


def _transform_slowly(rows: NDArray[np.int32]) -> None:
    rows[:] = walsh(rows.astype(np.int64))


@compiled(_transform_slowly)
def _transform(rows: NDArray[np.int32]) -> None:
    size = len(rows)
    half = 1
    while half < size:
        for start in range(0, size, 2 * half):
            for i in range(start, start + half):
                a = rows[i]
                b = rows[i + half]
                rows[i] = a + b
                rows[i + half] = a - b
        half *= 2


def opposing(
    rows: NDArray[np.uint32], places: NDArray[np.uint32], counts: Counts
) -> NDArray[np.int64]:
    """Return, for each of a few rows, how many reports of these columns oppose it.

    >>> opposing(np.array([1, 3], np.uint32), np.array([1, 2, 3], np.uint32), np.array([5, 7, 9]))
    array([14, 12])
    """
    out = np.zeros(len(rows), np.int64)
    _oppose(rows, places, counts, out)
    return out


def _oppose_slowly(
    rows: NDArray[np.uint32],
    places: NDArray[np.uint32],
    counts: Counts,
    out: NDArray[np.int64],
) -> None:
    for i, row in enumerate(rows):
        out[i] = (np.bitwise_count(places & row) & 1) @ counts


@compiled(_oppose_slowly)
def _oppose(
    rows: NDArray[np.uint32],
    places: NDArray[np.uint32],
    counts: Counts,
    out: NDArray[np.int64],
) -> None:
    for i in range(len(rows)):
        against = np.int64(0)
        for j in range(len(places)):
            bits = rows[i] & places[j]
            bits ^= bits >> np.uint32(16)
            bits ^= bits >> np.uint32(8)
            bits ^= bits >> np.uint32(4)
            bits ^= bits >> np.uint32(2)
            bits ^= bits >> np.uint32(1)
            against += counts[j] * np.int64(bits & np.uint32(1))
        out[i] = against
