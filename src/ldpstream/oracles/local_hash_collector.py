"""What the local-hashing oracles, BLH and OLH, share on the collector."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts
from ldpstream.oracles.collector_half import CollectorHalf, Reports, check_all_below, little_endian
from ldpstream.oracles.kernels.local_hash import hashed_counts
from ldpstream.oracles.local_hash_device import LocalHashDevice


class LocalHashCollector(CollectorHalf):
    """Reports are rows of multiplier, increment and bucket; each is tried on every label."""

    device: LocalHashDevice

    def _unpack(self, payloads: NDArray[np.uint8]) -> Reports:
        fields = (payloads[:, :4], payloads[:, 4:8], payloads[:, 8:])
        reports = np.stack([little_endian(field) for field in fields], axis=1)
        check_all_below("bucket", reports[:, 2], self.device.buckets)
        return reports

    def _count(self, reports: Reports) -> Counts:
        return hashed_counts(reports, self.labels, self.device.buckets)
