"""The shard of a round's devices that a device belongs to: shards are counted independently."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes
from ldpstream.collector.reports.records import Records
from ldpstream.compiled import compiled
from ldpstream.oracles.kernels.splitmix import mix

SHARDS = 32
"""A power of two. It must not change: each stored run belongs to one shard."""


def shards_of(devices: Bytes) -> Bytes:
    """The shard of each device, 16 bytes a row.

    >>> shards_of(np.arange(48, dtype=np.uint8).reshape(3, 16)).tolist()
    [17, 23, 5]
    """
    found = np.empty(len(devices), np.uint8)
    _find(np.ascontiguousarray(devices).view(np.uint64), found)
    return found


@compiled()
def _find(words: NDArray[np.uint64], found: Bytes) -> None:
    for i in range(len(found)):
        mixed = mix(mix(words[i, 0]) ^ words[i, 1])
        found[i] = np.uint8(mixed & np.uint64(SHARDS - 1))


def split(records: Records) -> Iterator[tuple[int, Records]]:
    """Yield each shard with its records, in the order in which they came."""
    shards = shards_of(records.devices)
    order = np.argsort(shards, kind="stable")
    table = records.table[order]
    borders = np.searchsorted(shards[order], np.arange(SHARDS + 1))
    for shard, (first, stop) in enumerate(pairwise(borders.tolist())):
        if first < stop:
            yield shard, Records(table[first:stop])
