"""Records in the format of PostgreSQL's binary COPY, laid out by NumPy and not row by row."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Bytes, Flags
from ldpstream.collector.kernels.device_table import ABSENT, DeviceTable
from ldpstream.collector.reports.records import Records

_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TAIL = b"\xff\xff"


def binary_rows(records: Records) -> bytes:
    """Return a row for each record: device, MAC, report, each after its length (see COPY)."""
    fields = (records.devices, records.macs, records.reports)
    columns = [_repeated(len(fields).to_bytes(2, "big"), len(records))]
    for field in fields:
        columns += [_repeated(field.shape[1].to_bytes(4, "big"), len(records)), field]
    return _HEAD + np.concatenate(columns, axis=1).tobytes() + _TAIL


def _repeated(content: bytes, times: int) -> Bytes:
    return np.broadcast_to(np.frombuffer(content, np.uint8), (times, len(content)))


def in_order(records: Records) -> Records:
    """Sort records by device: locks are taken in one order, so that collectors cannot deadlock."""
    keys = np.ascontiguousarray(records.devices).view("S16")[:, 0]
    return Records(records.table[np.argsort(keys, kind="stable")])


def first_of_each(records: Records) -> Flags:
    """Return which records are the first of their device in this batch."""
    before = DeviceTable().add(records.devices, np.ones(len(records), np.uint64))
    first: Flags = before == ABSENT
    return first
