"""How a collector counts the reports of texts: by group and column, sparsely."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from math import inf, lgamma, log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes
from ldpstream.oracles.collector_half import ReportReader, See, Support
from ldpstream.oracles.tagged.collector import TaggedReader
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.vocabulary.device import MOST_BITS
from ldpstream.vocabulary.evidence import ColumnCounts

_COLUMN = np.uint32((1 << MOST_BITS) - 1)
_COUNT_BITS = 32

FALSE_ALARM = 1e-6
"""The chance that any column of an honest round is counted less often than it was reported."""


class ColumnReader(TaggedReader):
    """A counter of which group has reported which column how often.

    Of 2^b columns few are reported in a round, so its support has one number for each that was: the
    group, the column and the count, packed. Such a support does not add up; `columns` unpacks it.

    >>> from ldpstream.oracles import Oracle
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> inner = Oracle.HADAMARD.collector(65535, Epsilon.of(1))
    >>> reader = ColumnReader(Tagged(inner.device, tags=2), inner)
    >>> rows = np.array([[1, 7, 0, 0, 1], [1, 7, 0, 0, 1], [1, 9, 0, 0, 0]], np.uint8)
    >>> [(one.places.tolist(), one.counts.tolist()) for one in reader.columns(reader.count([rows]))]
    [([9], [1]), ([7], [2])]
    """

    def __init__(self, device: Tagged[Any], inner: ReportReader) -> None:
        super().__init__(device, inner)
        self.counters = 0
        """None before anything was reported: a support is as long as its columns are many."""

    def count(self, tables: Iterable[Bytes], see: See | None = None) -> Support:
        found = ColumnCounts.summed(ColumnCounts.of(self._places(table, see)) for table in tables)
        places = found.places.astype(np.int64) << _COUNT_BITS
        return Support(places | found.counts, found.reports)

    def columns(self, support: Support) -> list[ColumnCounts]:
        """Return the columns that each group has reported, without those that tell nothing."""
        places = (support.counts >> _COUNT_BITS).astype(np.uint32)
        counts, groups = support.counts & (1 << _COUNT_BITS) - 1, places >> np.uint32(MOST_BITS)
        size = self.device.labels + 1
        ends = np.searchsorted(groups, np.arange(self.device.tags + 1))
        return [
            without_flood(ColumnCounts(places[start:end] & _COLUMN, counts[start:end]), size)
            for start, end in pairwise(ends)
        ]

    def _places(self, table: Bytes, see: See | None) -> NDArray[np.uint32]:
        reports = self.decode_table(table)
        if see is not None:
            see(reports)
        tags: NDArray[np.uint32] = table[:, -1].astype(np.uint32) << np.uint32(MOST_BITS)
        return reports.astype(np.uint32) | tags


def without_flood(columns: ColumnCounts, size: int) -> ColumnCounts:
    """Leave out what honest devices do not send: column 0, and more of one column than chance has.

    A column supports half of all texts, and column 0 supports every one: fakes that agree on one
    would raise them all at once. An honest device reports a column of `size` with a probability of
    at most 2 / `size`, whatever it holds, so that figures hardly change.

    >>> flooded = ColumnCounts(np.array([0, 5, 9], np.uint32), np.array([7, 100, 1]))
    >>> kept = without_flood(flooded, 1 << 16)
    >>> kept.places.tolist(), kept.counts.tolist()
    ([5, 9], [3, 1])
    """
    kept = columns.places != 0
    most = most_of_one(columns.reports, size)
    return ColumnCounts(columns.places[kept], np.minimum(columns.counts[kept], most))


@lru_cache(maxsize=1024)
def most_of_one(reports: int, size: int) -> int:
    """Return how often honest devices report any one column at most, but for a chance of 1e-6.

    The tail of a Poisson distribution of mean m beyond c is less than its next term times
    1 / (1 - m / (c + 2)); there are `size` columns that might exceed it.

    >>> most_of_one(2500, 1 << 20), most_of_one(1_000_000, 1 << 16)
    (4, 74)
    """
    mean = 2 * reports / size
    most = int(mean)
    while True:
        following = most + 1
        term = following * log(mean) - mean - lgamma(following + 1) if mean else -inf
        if log(size) + term - log1p(-mean / (following + 1)) < log(FALSE_ALARM):
            return most
        most = following
