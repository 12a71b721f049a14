"""Counting of the messages of a log: the first report of each device in a round counts.

There are two steps, which an engine may run anywhere. `scatter` sorts records into shards of
devices, each message by itself. `ShardCount` counts the records of one shard of one round in the
order of the log; it knows which devices earlier batches have counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from ldpstream.arrays import Bytes
from ldpstream.collector.kernels.device_table import ABSENT, DeviceTable
from ldpstream.collector.report_log.contract import LogEntry
from ldpstream.collector.report_log.counts import CountOutcome
from ldpstream.collector.report_log.messages import LoggedRound, MessageKind, read_header
from ldpstream.collector.reports.records import Records
from ldpstream.engines.shards import split
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.limits import DEVICE_BYTES

GATHERED_BYTES = 256 << 10
"""The size at which the records of a shard, gathered from several messages, become a part."""

_RUN_ROW = np.dtype([("device", np.uint8, DEVICE_BYTES), ("print", "<u8")])


class ControlMarker(IntEnum):
    """A marker in place of the shard of a part that has no records to count."""

    LATE = -1
    END = -2


@dataclass(frozen=True)
class ShardPart:
    """The records of one shard of a round; or how many of its records were late, or its end."""

    header: bytes
    shard: int
    sequence: int
    """The sequence of the first message that they are from; it orders the parts of a shard."""
    packed: bytes = b""
    late: int = 0

    @property
    def round(self) -> LoggedRound:
        return read_header(self.header)


@dataclass
class _Gathering:
    sequence: int
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0


def scatter(entries: Iterable[LogEntry], ends: Mapping[str, int]) -> Iterator[ShardPart]:
    """Yield the parts of a range of the log, given where rounds end, by name.

    Reports after their round's end do not count, though a collector may have appended them.
    """
    gathering: dict[tuple[bytes, int], _Gathering] = {}
    for entry in entries:
        message = entry.message
        if message.kind is MessageKind.END:
            yield ShardPart(message.header, ControlMarker.END, entry.sequence)
            continue
        if entry.sequence > ends.get(message.round.name, entry.sequence):
            late = len(message.records)
            yield ShardPart(message.header, ControlMarker.LATE, entry.sequence, late=late)
            continue
        for shard, records in split(message.records):
            key = (message.header, shard)
            gathered = gathering.setdefault(key, _Gathering(entry.sequence))
            gathered.pieces.append(records.packed)
            gathered.size += len(gathered.pieces[-1])
            if gathered.size >= GATHERED_BYTES:
                yield _part(key, gathering.pop(key))
    for key, gathered in gathering.items():
        yield _part(key, gathered)


def _part(key: tuple[bytes, int], gathered: _Gathering) -> ShardPart:
    return ShardPart(*key, gathered.sequence, b"".join(gathered.pieces))


class ShardCount:
    """The count of one shard of one round, in one batch."""

    def __init__(self, wanted: LoggedRound, earlier: Iterable[bytes]) -> None:
        self.wanted = wanted
        self._collector = wanted.collector()
        self._seen = DeviceTable()
        for run in earlier:
            rows = np.frombuffer(run, _RUN_ROW)
            self._seen.add(rows["device"], rows["print"])
        self.outcome = CountOutcome.none(wanted.counters)
        self._fresh: list[bytes] = []

    def add(self, packed: bytes) -> None:
        """Count records that come after all those added before."""
        records = Records.of(packed, self.wanted.report_bytes)
        prints = records.fingerprints
        before = self._seen.add(records.devices, prints)
        fresh = before == ABSENT
        repeated = int(np.count_nonzero(before == prints))
        new = records if fresh.all() else records.where(fresh)
        support = Support.none(self.wanted.counters)
        if len(new):
            support = self._collector.count([new.reports])
            self._fresh.append(_run(new.devices, new.fingerprints))
        others = len(records) - len(new) - repeated
        self.outcome += CountOutcome(support, repeated=repeated, conflicting=others)

    @property
    def run(self) -> bytes:
        """The devices that this batch has counted, for the next batch."""
        return b"".join(self._fresh)


def _run(devices: Bytes, prints: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> bytes:
    rows = np.empty(len(devices), _RUN_ROW)
    rows["device"] = devices
    rows["print"] = prints
    return rows.tobytes()
