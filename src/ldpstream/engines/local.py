"""The engine in one process: for use without a cluster, and the reference for other engines."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from ldpstream.collector.report_log.contract import ReportLog
from ldpstream.collector.report_log.counts import LogCounts
from ldpstream.engines.batch import BatchBuilder, ends_within
from ldpstream.engines.batch_size import Heartbeat, batch_end
from ldpstream.engines.counting import ControlMarker, ShardCount, ShardPart, scatter
from ldpstream.errors import Mistake

IDLE_SECONDS = 0.1

_log = logging.getLogger(__name__)

Tables = dict[tuple[bytes, int], ShardCount]
"""By round and shard."""


def run(log: ReportLog, counts: LogCounts, streams: Sequence[str], stop: threading.Event) -> None:
    """Count reports as they come, until stopped; while a server is unreachable, wait for it."""
    heartbeat = Heartbeat(counts, streams)
    while not stop.is_set():
        try:
            heartbeat.beat()
            progress = [advance(log, counts, stream) for stream in streams]
        except Mistake as mistake:
            _log.warning("%s", mistake)
            progress = []
        if not any(progress):
            stop.wait(IDLE_SECONDS)


def advance(log: ReportLog, counts: LogCounts, stream: str) -> bool:
    """Count the next batch of a stream, if it is time for one."""
    counted = counts.counted(stream)
    last = batch_end(log, stream, counted)
    return last > counted and count(log, counts, stream, counted, last)


def count(log: ReportLog, counts: LogCounts, stream: str, after: int, last: int) -> bool:
    """Count `after` < sequence <= `last`; return False if another engine was faster."""
    batch = BatchBuilder(stream, after, last)
    ends = known_ends(log, counts, stream, after)
    tables: Tables = {}
    for part in scatter(log.read(stream, after, last), ends):
        _take(part, batch, tables, counts)
    for (_, shard), table in tables.items():
        batch.add(table.wanted, table.outcome)
        if table.run and not ends_within(ends, table.wanted.name, last):
            counts.write_run(batch.attempt, stream, table.wanted.name, shard, table.run)
            batch.runs += 1
    return counts.commit(batch.finish())


def known_ends(log: ReportLog, counts: LogCounts, stream: str, after: int) -> dict[str, int]:
    """Return where rounds end: those that are counted, and those that follow in the log."""
    return counts.ended(stream) | log.ends(stream, after)


def _take(part: ShardPart, batch: BatchBuilder, tables: Tables, counts: LogCounts) -> None:
    wanted = part.round
    if part.shard == ControlMarker.END:
        batch.end(wanted, part.sequence)
    elif part.shard == ControlMarker.LATE:
        batch.late(wanted, part.late)
    else:
        key = (part.header, part.shard)
        if key not in tables:
            earlier = counts.runs(wanted.stream, wanted.name, part.shard)
            tables[key] = ShardCount(wanted, earlier)
        tables[key].add(part.packed)
