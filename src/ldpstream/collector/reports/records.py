"""The layout of an incoming report: device, MAC and report, all of fixed length.

It is the layout of a batch on the wire (docs/protocol.md), of what waits in memory, and of what the
store keeps while a round is open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes, Flags
from ldpstream.protocol.limits import DEVICE_BYTES, HEAD_BYTES


@dataclass(frozen=True)
class Records:
    """Records of one round, one in each row.

    >>> records = Records.of(bytes(16) + bytes(16) + b"AB", report_bytes=2)
    >>> len(records), records.reports.tobytes()
    (1, b'AB')
    """

    table: Bytes

    @classmethod
    def of(cls, packed: bytes, report_bytes: int) -> Records:
        return cls(np.frombuffer(packed, np.uint8).reshape(-1, HEAD_BYTES + report_bytes))

    def __len__(self) -> int:
        return len(self.table)

    def where(self, chosen: Flags) -> Records:
        return Records(self.table[chosen])

    @property
    def packed(self) -> bytes:
        return self.table.tobytes()

    @property
    def devices(self) -> Bytes:
        return self.table[:, :DEVICE_BYTES]

    @property
    def macs(self) -> Bytes:
        return self.table[:, DEVICE_BYTES:HEAD_BYTES]

    @property
    def reports(self) -> Bytes:
        return self.table[:, HEAD_BYTES:]

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        """Fingerprints, never 0: two records of a device have the same only for the same report.

        They are eight bytes of the MAC, a keyed hash of the report: no need for another hash.
        """
        prints = np.ascontiguousarray(self.macs[:, :8]).view(np.uint64)[:, 0]
        return np.maximum(prints, np.uint64(1))
