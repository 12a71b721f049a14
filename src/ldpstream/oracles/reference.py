"""The kernels again, in NumPy: the fallback where Numba is missing, and what tests hold them to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def randomise_labels(
    values: NDArray[Any],
    out: NDArray[np.uint16],
    start: int,
    stop: int,
    labels: np.uint64,
    keep: np.uint64,
    seed: np.uint64,
) -> None:
    draws = mix(np.arange(start, stop, dtype=np.uint64) * _GAMMA + seed)
    others = ((mix(draws ^ seed) >> np.uint64(32)) * labels) >> np.uint64(32)
    out[start:stop] = np.where(draws < keep, values[start:stop], others)


def count_labels(reports: NDArray[Any], start: int, stop: int, labels: int) -> NDArray[np.int64]:
    return np.bincount(reports[start:stop], minlength=labels)
