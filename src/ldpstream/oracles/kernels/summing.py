"""Counts over chunks of reports, added up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ldpstream.compiled import in_chunks

Counts = NDArray[np.int64]


def summed(rows: int, count: Callable[[int, int], Counts]) -> Counts:
    """The sum of `count(start, stop)` over chunks that make up 0 .. rows.

    >>> summed(5, lambda start, stop: np.array([stop - start])).tolist()
    [5]
    """
    total: Counts = np.stack(in_chunks(rows, count)).sum(axis=0)
    return total
