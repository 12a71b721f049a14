from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.oracles.reference.splitmix import below, draw, starts_of


def randomise_labels(
    values: NDArray[Any],
    out: NDArray[np.uint16],
    start: int,
    stop: int,
    labels: np.uint64,
    keep: np.uint64,
    seed: np.uint64,
) -> None:
    firsts = starts_of(seed, start, stop)
    others = below(draw(firsts, 1), labels)
    out[start:stop] = np.where(firsts < keep, values[start:stop], others)


def draw_columns(
    values: NDArray[Any],
    out: NDArray[np.uint32],
    start: int,
    stop: int,
    column_bits: int,
    support: np.uint64,
    seed: np.uint64,
) -> None:
    firsts = starts_of(seed, start, stop)
    columns = (draw(firsts, 1) >> np.uint64(64 - column_bits)).astype(np.int64)
    rows = values[start:stop].astype(np.int64) + 1
    wrong = np.bitwise_count(columns & rows) % 2 != (firsts >= support)
    out[start:stop] = np.where(wrong, columns ^ (rows & -rows), columns)


def count_labels(reports: NDArray[Any], start: int, stop: int, labels: int) -> NDArray[np.int64]:
    return np.bincount(reports[start:stop], minlength=labels)
