"""The tasks that run in Spark's executors, through mapInArrow: scattering and counting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from ldpstream.collector.report_log.contract import LogEntry
from ldpstream.collector.report_log.counts import CountOutcome, LogCounts
from ldpstream.collector.report_log.messages import LoggedRound, Message, read_header
from ldpstream.collector.store.database import Database
from ldpstream.compiled import use_cores
from ldpstream.engines.batch import ends_within
from ldpstream.engines.counting import ShardCount, ShardPart, scatter
from ldpstream.oracles.collector_half import Support

Batches = Iterator[pa.RecordBatch]

PARTS = pa.schema(
    [
        ("stream", pa.string()),
        ("after", pa.int64()),
        ("last", pa.int64()),
        ("header", pa.binary()),
        ("shard", pa.int32()),
        ("sequence", pa.int64()),
        ("packed", pa.binary()),
        ("late", pa.int64()),
    ]
)
PARTS_DDL = (
    "stream string, after bigint, last bigint, header binary, shard int, sequence bigint,"
    " packed binary, late bigint"
)
COUNTED_DDL = (
    "stream string, after bigint, last bigint, header binary, shard int, sequence bigint,"
    " counts binary, reports bigint, repeated bigint, conflicting bigint, late bigint, run boolean"
)


@dataclass(frozen=True)
class BatchPlan:
    """What the driver tells all tasks of one attempt at a batch."""

    database: Database
    attempts: Mapping[str, UUID]
    ends: Mapping[str, dict[str, int]]
    """Where rounds end, by stream and name."""
    from_nothing: bool = False
    """Whether to count as if nobody had been counted before."""

    def scattering(self) -> Callable[[Batches], Batches]:
        return lambda batches: scatter_rows(batches, self)

    def counting(self) -> Callable[[Batches], Batches]:
        return lambda batches: count_rows(batches, self)


def scatter_rows(batches: Batches, plan: BatchPlan) -> Batches:
    """Turn the messages of a range into parts; a row without a header says which range it was."""
    rows = _rows(batches)
    for (stream, after, last), own in groupby(
        rows, key=lambda row: (row["stream"], row["after"], row["last"])
    ):
        there = {"stream": stream, "after": after, "last": last}
        yield _part_row(there, ShardPart(b"", 0, after))
        for part in scatter(_entries(own), plan.ends[stream]):
            yield _part_row(there, part)


def _entries(rows: Iterable[dict[str, Any]]) -> Iterator[LogEntry]:
    for row in rows:
        if row["payload"] is not None:
            yield LogEntry(row["sequence"], Message.of(row["payload"]))


def _part_row(there: dict[str, Any], part: ShardPart) -> pa.RecordBatch:
    row = there | {
        "header": part.header,
        "shard": part.shard,
        "sequence": part.sequence,
        "packed": part.packed,
        "late": part.late,
    }
    return pa.RecordBatch.from_pylist([row], schema=PARTS)


def count_rows(batches: Batches, plan: BatchPlan) -> Batches:
    """Turn parts, sorted by round, shard and sequence, into a row for each shard."""
    use_cores(1)  # Spark runs as many tasks as there are cores
    with closing(LogCounts(plan.database, make_tables=False)) as counts:
        for (stream, header, shard), own in groupby(
            _rows(batches), key=lambda row: (row["stream"], row["header"], row["shard"])
        ):
            if not header or shard < 0:
                for row in own:
                    yield _counted_row(
                        row, CountOutcome(Support.none(0), late=row["late"]), run=False
                    )
                continue
            yield _count_shard(own, read_header(header), stream, shard, plan, counts)


def _count_shard(
    rows: Iterator[dict[str, Any]],
    wanted: LoggedRound,
    stream: str,
    shard: int,
    plan: BatchPlan,
    counts: LogCounts,
) -> pa.RecordBatch:
    earlier = () if plan.from_nothing else counts.runs(stream, wanted.name, shard)
    table = ShardCount(wanted, earlier)
    for row in rows:
        table.add(row["packed"])
    over = ends_within(plan.ends[stream], wanted.name, row["last"])
    if keep := bool(table.run) and not over:
        counts.write_run(plan.attempts[stream], stream, wanted.name, shard, table.run)
    return _counted_row(row, table.outcome, run=keep)


def _counted_row(row: dict[str, Any], outcome: CountOutcome, *, run: bool) -> pa.RecordBatch:
    kept = {name: row[name] for name in ("stream", "after", "last", "header", "shard", "sequence")}
    counted = kept | {
        "counts": outcome.support.counts.astype("<i8").tobytes(),
        "reports": outcome.support.reports,
        "repeated": outcome.repeated,
        "conflicting": outcome.conflicting,
        "late": outcome.late,
        "run": run,
    }
    return pa.RecordBatch.from_pylist([counted], schema=COUNTED)


def outcome_of(row: Any) -> CountOutcome:
    """Return the outcome in a row of COUNTED."""
    support = Support(np.frombuffer(row["counts"], "<i8").astype(np.int64), row["reports"])
    return CountOutcome(support, row["repeated"], row["conflicting"], row["late"])


COUNTED = pa.schema(
    [
        *(PARTS.field(name) for name in ("stream", "after", "last", "header", "shard", "sequence")),
        ("counts", pa.binary()),
        ("reports", pa.int64()),
        ("repeated", pa.int64()),
        ("conflicting", pa.int64()),
        ("late", pa.int64()),
        ("run", pa.bool_()),
    ]
)


def _rows(batches: Batches) -> Iterator[dict[str, Any]]:
    """Yield row by row, so that no more than one batch of them is in memory."""
    for batch in batches:
        for place in range(batch.num_rows):
            yield {name: batch.column(name)[place].as_py() for name in batch.schema.names}
