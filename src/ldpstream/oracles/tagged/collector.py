from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ldpstream.arrays import Bytes
from ldpstream.oracles.collector_half import ReportReader, Reports, See, Support, check_all_below
from ldpstream.oracles.tagged.device import Tagged


class TaggedReader:
    """A decoder and counter of tagged reports, which counts those of each tag by themselves.

    A support has, for one tag after the other, the counts of the reader within, and how many
    reports had this tag. Supports of one round add up like any others.

    >>> from ldpstream.oracles import Oracle
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> inner = Oracle.GRR.collector(2, Epsilon.of(1))
    >>> reader = TaggedReader(Tagged(inner.device, tags=2), inner)
    >>> support = reader.count([np.array([[1, 0, 0], [1, 1, 1], [1, 1, 1]], np.uint8)])
    >>> support.counts.tolist(), together(support, 2, [0, 1]).counts.tolist()
    ([1, 0, 1, 0, 2, 2], [1, 2])
    """

    def __init__(self, device: Tagged[Any], inner: ReportReader) -> None:
        self.device, self.inner = device, inner
        self.counters = device.tags * (inner.counters + 1)
        """The number of counts in a support."""

    def count(self, tables: Iterable[Bytes], see: See | None = None) -> Support:
        """Count encoded reports, as `ReportReader.count` does; `see` gets them untagged."""
        counted = np.zeros((self.device.tags, self.inner.counters + 1), np.int64)
        for table in tables:
            reports, tags = self.decode_table(table), table[:, -1]
            for tag in np.unique(tags):
                part = self.inner.support(reports[tags == tag])
                counted[tag] += np.append(part.counts, part.reports)
            if see is not None:
                see(reports)
        return Support(counted.ravel(), int(counted[:, -1].sum()))

    def decode_table(self, table: Bytes) -> Reports:
        """Decode a table of reports, one in each row, and check their tags."""
        check_all_below("tag", table[:, -1], self.device.tags)
        return self.inner.decode_table(table[:, :-1])


def together(support: Support, of: int, tags: Sequence[int]) -> Support:
    """Return the support of all reports that have some of the `of` tags that it tells apart."""
    rows = support.counts.reshape(of, -1)[list(tags)].sum(axis=0)
    return Support(rows[:-1], int(rows[-1]))
