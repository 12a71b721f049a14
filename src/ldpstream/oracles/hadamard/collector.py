from __future__ import annotations

from ldpstream.arrays import Bytes, Counts
from ldpstream.oracles.collector_half import CollectorHalf, Reports, check_all_below, little_endian
from ldpstream.oracles.hadamard.device import Device
from ldpstream.oracles.kernels.labels import label_counts
from ldpstream.oracles.walsh import walsh


class Collector(CollectorHalf):
    """A collector that counts columns and transforms them once, in O(reports + K log K).

    >>> import numpy as np
    >>> from ldpstream.oracles import Oracle
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> collector = Oracle.HADAMARD.collector(3, Epsilon.of(1))
    >>> collector.support(np.array([0, 1])).counts.tolist()
    [1, 2, 1]
    """

    device: Device

    def _unpack(self, payloads: Bytes) -> Reports:
        reports = little_endian(payloads)
        check_all_below("column", reports, self.device.columns)
        return reports

    def _count(self, reports: Reports) -> Counts:
        return column_support(label_counts(reports, self.device.columns), self.labels)


def column_support(columns: Counts, labels: int) -> Counts:
    """Return how many reports support each label, given how often each column was reported."""
    excess = walsh(columns)  # supporting minus opposing reports, by row
    supporting: Counts = (excess[0] + excess[1 : labels + 1]) // 2
    return supporting
