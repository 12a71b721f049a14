"""Kernels over arrays of reports. Values pass through 32- and 64-bit casts on purpose: Numba widens
mixed integer arithmetic silently, and an estimate from a widened hash is silently wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.compiled import compiled, in_chunks
from ldpstream.oracles import reference

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


@compiled()
def _mix(state: np.uint64) -> np.uint64:
    """The output function of SplitMix64 (Steele, Lea and Flood 2014)."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled(reference.randomise_labels)
def _randomise_labels(
    values: NDArray[Any],
    out: NDArray[np.uint16],
    start: int,
    stop: int,
    labels: np.uint64,
    keep: np.uint64,
    seed: np.uint64,
) -> None:
    for i in range(start, stop):
        u = _mix(seed + np.uint64(i) * _GAMMA)
        other = ((_mix(u ^ seed) >> np.uint64(32)) * labels) >> np.uint64(32)
        out[i] = np.uint16(values[i]) if u < keep else np.uint16(other)


def randomised_labels(
    values: NDArray[Any], labels: int, keep: np.uint64, seed: np.uint64
) -> NDArray[np.uint16]:
    """Each value, or if its draw is not below `keep` a uniform label."""
    out = np.empty(len(values), np.uint16)
    in_chunks(
        len(values),
        lambda start, stop: _randomise_labels(
            values, out, start, stop, np.uint64(labels), keep, seed
        ),
    )
    return out


@compiled(reference.count_labels)
def _count_labels(reports: NDArray[Any], start: int, stop: int, labels: int) -> NDArray[np.int64]:
    # Four tables, so that runs of one label do not wait for the store before.
    table = np.zeros((4, labels), np.int64)
    body = start + (stop - start) // 4 * 4
    for i in range(start, body, 4):
        table[0, reports[i]] += 1
        table[1, reports[i + 1]] += 1
        table[2, reports[i + 2]] += 1
        table[3, reports[i + 3]] += 1
    for i in range(body, stop):
        table[0, reports[i]] += 1
    return table.sum(axis=0)


def label_counts(reports: NDArray[Any], labels: int) -> NDArray[np.int64]:
    """How often each of 0 .. labels-1 stands in `reports`."""
    parts = in_chunks(
        len(reports), lambda start, stop: _count_labels(reports, start, stop, labels)
    )
    return np.sum(parts, axis=0, dtype=np.int64)
