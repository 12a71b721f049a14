from __future__ import annotations

import numpy as np

from ldpstream.arrays import Bytes
from ldpstream.errors import MalformedReport, Problem
from ldpstream.oracles.bitmap_collector import BitmapCollector
from ldpstream.oracles.collector_half import Reports
from ldpstream.oracles.subset.device import Device


class Collector(BitmapCollector):
    """A collector that counts bits and checks that each report has exactly k of them.

    >>> from ldpstream.oracles import Oracle
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> collector = Oracle.SUBSET.collector(8, Epsilon.of(1))
    >>> reports = collector.decode([bytes([1, 0b101]), bytes([1, 0b110])])
    >>> collector.support(reports).counts.tolist()
    [1, 1, 2, 0, 0, 0, 0, 0]
    """

    device: Device

    def _unpack(self, payloads: Bytes) -> Reports:
        reports = super()._unpack(payloads)
        sizes = np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
        wrong = sizes != self.device.size
        if wrong.any():
            raise MalformedReport(
                Problem.REPORT_RANGE,
                field="number of labels",
                given=int(sizes[wrong.argmax()]),
                expected=self.device.size,
            )
        return reports
