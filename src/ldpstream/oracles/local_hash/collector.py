from __future__ import annotations

import numpy as np

from ldpstream.arrays import Bytes, Counts
from ldpstream.oracles.collector_half import CollectorHalf, Reports, check_all_below, little_endian
from ldpstream.oracles.kernels.local_hash import hashed_counts
from ldpstream.oracles.local_hash.device import LocalHashDevice


class Collector(CollectorHalf):
    """A collector that counts, for each label, the reports in whose bucket it falls.

    Reports are rows of multiplier, increment and bucket; each is checked against every label.

    >>> from ldpstream.oracles import Oracle
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = Oracle.OLH.device(3, Epsilon.of(1))
    >>> report = device.perturb(1, SystemSource())
    >>> collector = Oracle.OLH.collector(3, Epsilon.of(1))
    >>> counts = collector.support(collector.decode([device.encode(report)])).counts
    >>> counts.tolist() == [device.supports(report, label) for label in range(3)]
    True
    """

    device: LocalHashDevice

    def _unpack(self, payloads: Bytes) -> Reports:
        fields = (payloads[:, :4], payloads[:, 4:8], payloads[:, 8:])
        reports = np.stack([little_endian(field) for field in fields], axis=1)
        check_all_below("bucket", reports[:, 2], self.device.buckets)
        return reports

    def _count(self, reports: Reports) -> Counts:
        return hashed_counts(reports, self.labels, self.device.buckets)
