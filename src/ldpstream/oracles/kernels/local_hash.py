"""Kernels of the local-hashing oracles: rows of multiplier, increment and bucket (`hashing.py`)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.compiled import compiled, in_chunks
from ldpstream.oracles.hashing import FAMILY, scatter
from ldpstream.oracles.kernels.splitmix import below, draw, start_of
from ldpstream.oracles.kernels.summing import summed
from ldpstream.oracles.reference import local_hash as reference
from ldpstream.oracles.reference.local_hash import Rows

_SHIFT = np.uint32(FAMILY.word_bits - FAMILY.hash_bits)
_HASH_BITS = np.uint32(FAMILY.hash_bits)


@cache
def scattered(labels: int) -> NDArray[np.uint32]:
    """Return `scatter` of each of 0 .. labels-1."""
    table = np.array([scatter(label) for label in range(labels)], np.uint32)
    table.flags.writeable = False
    return table


@compiled(reference.hash_values)
def _hash_values(
    values: NDArray[Any],
    out: Rows,
    start: int,
    stop: int,
    keys: NDArray[np.uint32],
    buckets: np.uint64,
    keep: np.uint64,
    seed: np.uint64,
) -> None:
    for i in range(start, stop):
        first = start_of(seed, i)
        hash_seed = draw(first, 1)
        multiplier = np.uint32(hash_seed)
        increment = np.uint32(hash_seed >> np.uint64(32))
        word = np.uint32(np.uint32(multiplier * keys[values[i]]) + increment)
        truth = np.uint32(np.uint32(word >> _SHIFT) * np.uint32(buckets)) >> _HASH_BITS
        other = below(draw(first, 2), buckets)
        out[i, 0] = multiplier
        out[i, 1] = increment
        out[i, 2] = np.uint32(truth) if first < keep else np.uint32(other)


def hashed_values(
    values: NDArray[Any], labels: int, buckets: int, keep: np.uint64, seed: np.uint64
) -> Rows:
    """Return fresh seeds with the value's bucket or, if a draw is not below `keep`, any bucket."""
    out = np.empty((len(values), 3), np.uint32)
    keys = scattered(labels)
    in_chunks(
        len(values),
        lambda start, stop: _hash_values(
            values, out, start, stop, keys, np.uint64(buckets), keep, seed
        ),
    )
    return out


@cache
def _edges(buckets: int) -> NDArray[np.uint32]:
    """Return where the words of each bucket start, and where the last one ends: 2^32, that is 0."""
    lowest_hashes = [-((-bucket << FAMILY.hash_bits) // buckets) for bucket in range(buckets)]
    table = np.array([*lowest_hashes, 0], np.uint32) << _SHIFT
    table.flags.writeable = False
    return table


@compiled()
def _span(row: NDArray[np.uint32], edges: NDArray[np.uint32]) -> tuple[np.uint32, np.uint32]:
    """Return increment and width with `multiplier * key + increment < width` in the row's bucket.

    Moving the lower edge of the bucket to 0 turns the shifts and the multiplication that find a
    bucket into one comparison. It is exact, since edges are whole hashes.
    """
    low = edges[row[2]]
    return np.uint32(row[1] - low), np.uint32(edges[row[2] + 1] - low)


@compiled(reference.count_hashed)
def _count_hashed(
    rows: Rows, start: int, stop: int, keys: NDArray[np.uint32], edges: NDArray[np.uint32]
) -> NDArray[np.int64]:
    labels = len(keys)
    counts = np.zeros(labels, np.uint32)
    body = start + (stop - start) // 4 * 4
    for i in range(start, body, 4):
        # Four reports at a time, so that keys and counts are loaded a quarter as often.
        m0, m1, m2, m3 = rows[i, 0], rows[i + 1, 0], rows[i + 2, 0], rows[i + 3, 0]
        b0, w0 = _span(rows[i], edges)
        b1, w1 = _span(rows[i + 1], edges)
        b2, w2 = _span(rows[i + 2], edges)
        b3, w3 = _span(rows[i + 3], edges)
        for label in range(labels):
            key = keys[label]
            counts[label] += np.uint32(
                np.uint32(np.uint32(np.uint32(m0 * key) + b0) < w0)
                + np.uint32(np.uint32(np.uint32(m1 * key) + b1) < w1)
                + np.uint32(np.uint32(np.uint32(m2 * key) + b2) < w2)
                + np.uint32(np.uint32(np.uint32(m3 * key) + b3) < w3)
            )
    for i in range(body, stop):
        increment, width = _span(rows[i], edges)
        for label in range(labels):
            word = np.uint32(np.uint32(rows[i, 0] * keys[label]) + increment)
            counts[label] += np.uint32(word < width)
    return counts.astype(np.int64)


def hashed_counts(rows: Rows, labels: int, buckets: int) -> NDArray[np.int64]:
    """Return, for each label, the number of rows in whose bucket it falls."""
    keys, edges = scattered(labels), _edges(buckets)
    return summed(len(rows), lambda start, stop: _count_hashed(rows, start, stop, keys, edges))
