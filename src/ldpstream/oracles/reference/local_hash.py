from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.oracles.hashing import FAMILY
from ldpstream.oracles.reference.splitmix import below, draw, starts_of

Rows = NDArray[np.uint32]

_SHIFT = np.uint32(FAMILY.word_bits - FAMILY.hash_bits)
_HASH_BITS = np.uint32(FAMILY.hash_bits)


def buckets_of(
    multipliers: NDArray[np.uint32],
    increments: NDArray[np.uint32],
    keys: NDArray[np.uint32],
    buckets: int,
) -> NDArray[np.uint32]:
    """Return `MultiplyShift.bucket` of the full family: 32-bit arrays wrap around by themselves."""
    hashes = (multipliers * keys + increments) >> _SHIFT
    return (hashes * np.uint32(buckets)) >> _HASH_BITS


def hash_values(
    values: NDArray[Any],
    out: Rows,
    start: int,
    stop: int,
    keys: NDArray[np.uint32],
    buckets: np.uint64,
    keep: np.uint64,
    seed: np.uint64,
) -> None:
    firsts = starts_of(seed, start, stop)
    seeds = draw(firsts, 1)
    multipliers, increments = seeds.astype(np.uint32), (seeds >> np.uint64(32)).astype(np.uint32)
    truths = buckets_of(multipliers, increments, keys[values[start:stop]], int(buckets))
    others = below(draw(firsts, 2), buckets)
    out[start:stop, 0] = multipliers
    out[start:stop, 1] = increments
    out[start:stop, 2] = np.where(firsts < keep, truths, others)


def count_hashed(
    rows: Rows, start: int, stop: int, keys: NDArray[np.uint32], edges: NDArray[np.uint32]
) -> NDArray[np.int64]:
    buckets = len(edges) - 1
    multipliers, increments, given = (rows[start:stop, column] for column in range(3))
    counts = [
        np.count_nonzero(
            buckets_of(multipliers, increments, keys[label : label + 1], buckets) == given
        )
        for label in range(len(keys))
    ]
    return np.array(counts, np.int64)
