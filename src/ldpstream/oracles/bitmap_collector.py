"""The common collector half of the oracles whose report is a set of labels."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Bytes, Counts
from ldpstream.errors import MalformedReport, Problem
from ldpstream.oracles.collector_half import CollectorHalf, Reports
from ldpstream.oracles.kernels.bitmaps import bit_counts, words_for


class BitmapCollector(CollectorHalf):
    """A collector of reports as rows of 64-bit words: label v is bit v % 64 of word v // 64."""

    def _unpack(self, payloads: Bytes) -> Reports:
        padding = payloads[:, -1] >> np.uint8((self.labels - 1) % 8) >> np.uint8(1)
        if padding.any():
            first = int(padding[(padding != 0).argmax()])
            raise MalformedReport(
                Problem.REPORT_RANGE, field="padding", given=first, expected="zero"
            )
        table = np.zeros((len(payloads), 8 * words_for(self.labels)), np.uint8)
        table[:, : payloads.shape[1]] = payloads
        return table.view("<u8").astype(np.uint64, copy=False)

    def _count(self, reports: Reports) -> Counts:
        return bit_counts(reports, self.labels)
