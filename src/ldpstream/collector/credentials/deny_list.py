"""The deny list of a stream: devices whose reports and enrolments are refused."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ldpstream.arrays import Bytes, Flags
from ldpstream.collector.kernels.device_table import ABSENT, DeviceTable
from ldpstream.protocol.limits import DEVICE_BYTES


class DenyList:
    """The numbers of the devices that are denied, looked up for a whole batch at once.

    >>> denied = DenyList([bytes(16)])
    >>> bytes(16) in denied, b"another's number" in denied, len(denied)
    (True, False, 1)
    """

    def __init__(self, devices: Iterable[bytes] = ()) -> None:
        self._table = DeviceTable()
        listed = _rows(b"".join(devices))
        if len(listed):  # an empty table needs no kernel, which takes time to load
            self._table.add(listed, np.ones(len(listed), np.uint64))

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, device: bytes) -> bool:
        return bool(self.contains(_rows(device))[0])

    def contains(self, devices: Bytes) -> Flags:
        """Return which devices are denied; `devices` has one in each row."""
        if not len(self):
            return np.zeros(len(devices), np.bool_)
        found: Flags = self._table.find(devices) != ABSENT
        return found


def _rows(devices: bytes) -> Bytes:
    return np.frombuffer(devices, np.uint8).reshape(-1, DEVICE_BYTES)


NOBODY = DenyList()
