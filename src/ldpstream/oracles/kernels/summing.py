"""The sum of counts over chunks of reports."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldpstream.arrays import Counts
from ldpstream.compiled import in_chunks


def summed(rows: int, count: Callable[[int, int], Counts]) -> Counts:
    """Return the sum of `count(start, stop)` over chunks that make up 0 .. rows.

    >>> summed(5, lambda start, stop: np.array([stop - start])).tolist()
    [5]
    """
    total: Counts = np.stack(in_chunks(rows, count)).sum(axis=0)
    return total
