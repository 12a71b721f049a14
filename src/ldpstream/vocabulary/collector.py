"""How a collector counts the reports of texts: by group and column, sparsely."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes
from ldpstream.oracles.collector_half import Reader, See, Support
from ldpstream.oracles.tagged.collector import TaggedReader
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.vocabulary.device import MOST_BITS
from ldpstream.vocabulary.evidence import Columns

_COLUMN = np.uint32((1 << MOST_BITS) - 1)
_COUNT_BITS = 32


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

    def __init__(self, device: Tagged[Any], inner: Reader) -> None:
        super().__init__(device, inner)
        self.counters = 0
        """None before anything was reported: a support is as long as its columns are many."""

    def count(self, tables: Iterable[Bytes], see: See | None = None) -> Support:
        found = Columns.summed(Columns.of(self._places(table, see)) for table in tables)
        places = found.places.astype(np.int64) << _COUNT_BITS
        return Support(places | found.counts, found.reports)

    def columns(self, support: Support) -> list[Columns]:
        """Return the columns that each group has reported, without those that tell nothing."""
        places = (support.counts >> _COUNT_BITS).astype(np.uint32)
        counts, groups = support.counts & (1 << _COUNT_BITS) - 1, places >> np.uint32(MOST_BITS)
        ends = np.searchsorted(groups, np.arange(self.device.tags + 1))
        return [
            without_flood(Columns(places[start:end] & _COLUMN, counts[start:end]))
            for start, end in pairwise(ends)
        ]

    def _places(self, table: Bytes, see: See | None) -> NDArray[np.uint32]:
        reports = self.decode_table(table)
        if see is not None:
            see(reports)
        tags: NDArray[np.uint32] = table[:, -1].astype(np.uint32) << np.uint32(MOST_BITS)
        return reports.astype(np.uint32) | tags


def without_flood(columns: Columns) -> Columns:
    """Leave out column 0, which supports every text and so speaks for none.

    An honest device reports it with probability 2p / 2^b, whatever it holds. Without it figures are
    off by no more than that, and fakes cannot raise all texts at once.

    >>> without_flood(Columns.of(np.array([0, 0, 5]))).places.tolist()
    [5]
    """
    kept = columns.places != 0
    return columns if kept.all() else Columns(columns.places[kept], columns.counts[kept])
