from __future__ import annotations

from ldpstream.arrays import Bytes, Counts
from ldpstream.oracles.collector_half import CollectorHalf, Reports, check_all_below, little_endian
from ldpstream.oracles.kernels.labels import label_counts


class Collector(CollectorHalf):
    """The collector of reports that are label indexes; a report supports its own label.

    >>> import numpy as np
    >>> from ldpstream.oracles import Oracle
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> collector = Oracle.GRR.collector(3, Epsilon.of(1))
    >>> collector.support(np.array([0, 2, 2])).counts.tolist()
    [1, 0, 2]
    """

    def paper_variance(self, reports: int) -> float:
        """Return err, as printed in the paper, without the 1/d (docs/paper-corrections.md, 2)."""
        return (self._base + self._slope) / reports

    def _unpack(self, payloads: Bytes) -> Reports:
        reports = little_endian(payloads)
        check_all_below("label", reports, self.labels)
        return reports

    def _count(self, reports: Reports) -> Counts:
        return label_counts(reports, self.labels)
