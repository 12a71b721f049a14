"""Counts of report logs, in PostgreSQL: exactly-once, whichever process dies.

An engine takes the messages after `counted(stream)`, writes which devices it has counted, under the
id of its attempt (`write_run`), and commits tallies, runs and progress in one transaction. The
commit succeeds only if nobody has moved the progress in between: a batch that is replayed, or that
two engines count at the same time, changes nothing the second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import psycopg

from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.connections import Connections, Result, Transaction, Work
from ldpstream.oracles.collector_half import Support

COUNT = Transaction("count", again=True)

ENDED_REMEMBERED = 1000
"""The latest ended rounds that an engine is told of; reports for older ones do not count either."""

LATEST_ENDS = (
    "SELECT round, ended FROM log_tally WHERE stream = %s AND ended IS NOT NULL"
    " ORDER BY ended DESC LIMIT %s"
)

Connection = psycopg.Connection


@dataclass(frozen=True)
class CountOutcome:
    """What became of some reports of a round. Outcomes of one round add up."""

    support: Support
    repeated: int = 0
    conflicting: int = 0
    late: int = 0

    def __add__(self, other: CountOutcome) -> CountOutcome:
        return CountOutcome(
            self.support + other.support,
            self.repeated + other.repeated,
            self.conflicting + other.conflicting,
            self.late + other.late,
        )

    @classmethod
    def none(cls, labels: int) -> CountOutcome:
        return cls(Support.none(labels))


HEARTBEAT = "engine"
"""The note by which an engine shows that it is there."""
BEAT_SECONDS = 5.0
DEAD_SECONDS = 4 * BEAT_SECONDS
"""After so long without a sign an engine counts as gone."""


@dataclass(frozen=True)
class LogTally:
    """The counts of a round so far."""

    outcome: CountOutcome
    ended: int | None
    """The position of its end, once that is counted: then the tally is final."""


@dataclass(frozen=True)
class BatchCount:
    """What an engine has counted in the messages `after` < sequence <= `last` of a stream."""

    attempt: UUID
    stream: str
    after: int
    last: int
    outcomes: Mapping[str, CountOutcome]
    """By round."""
    ends: Mapping[str, tuple[int, int]]
    """By round that ends within the batch: the position of its end, and its number of labels."""
    runs: int
    """How many runs were written under the attempt."""


class LogCounts:
    """The tables of counts, in the database of the store."""

    def __init__(
        self, database: Database, patience_ms: int = 5000, *, make_tables: bool = True
    ) -> None:
        connections = Connections.to_tables if make_tables else Connections
        self._connections = connections(database, patience_ms)

    def close(self) -> None:
        self._connections.close()

    def counted(self, stream: str) -> int:
        """The sequence number up to which all messages are counted."""
        return self._do(lambda connection: _counted(connection, stream))

    def tally(self, stream: str, round_name: str) -> LogTally | None:
        """The counts of a round so far, or None if there are none."""
        row = self._row(f"{_TALLY} WHERE stream = %s AND round = %s", (stream, round_name))
        return None if row is None else _tally(row)

    def ended(self, stream: str) -> dict[str, int]:
        """The positions of the ends of the latest rounds, by name."""

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            return connection.execute(LATEST_ENDS, (stream, ENDED_REMEMBERED)).fetchall()

        return dict(self._do(work))

    def runs(self, stream: str, round_name: str, shard: int) -> Iterator[bytes]:
        """The devices that committed batches have counted in a shard of a round, run by run."""

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            return connection.execute(
                "SELECT devices FROM log_run JOIN log_batch USING (attempt)"
                " WHERE log_run.stream = %s AND round = %s AND shard = %s",
                (stream, round_name, shard),
                binary=True,
            ).fetchall()

        return (devices for (devices,) in self._do(work))

    def write_run(
        self, attempt: UUID, stream: str, round_name: str, shard: int, devices: bytes
    ) -> None:
        """Write which devices an attempt has counted. Idempotent, since tasks are retried."""

        def work(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO log_run VALUES (%s, %s, %s, %s, %b) ON CONFLICT DO NOTHING",
                (stream, round_name, shard, attempt, devices),
            )

        self._do(work)

    def commit(self, batch: BatchCount) -> bool:
        """Add a batch to the tallies; return False if the progress is not where it began."""
        return self._do(lambda connection: _commit(connection, batch))

    def show(self, streams: Iterable[str]) -> None:
        """Show that an engine counts these streams: a note of each gets the database's time."""

        def work(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO note SELECT id, %s, json_build_object('at_ms',"
                " (extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM stream"
                " WHERE name = ANY(%s)"
                " ON CONFLICT (stream, name) DO UPDATE SET content = excluded.content",
                (HEARTBEAT, list(streams)),
            )

        self._do(work)

    def _row(self, query: str, given: Iterable[object]) -> Any:
        return self._do(lambda connection: connection.execute(query, tuple(given)).fetchone())

    def _do(self, work: Work[Result]) -> Result:
        """Run idempotent work in one transaction."""
        return self._connections.do(COUNT, work)


_TALLY = "SELECT counts, reports, repeated, conflicting, late, ended FROM log_tally"


def _counted(connection: Connection, stream: str, how: str = "") -> int:
    row = connection.execute(
        f"SELECT counted FROM log_progress WHERE stream = %s {how}",  # nosec B608 # noqa: S608
        (stream,),
    ).fetchone()
    return 0 if row is None else int(row[0])


def _tally(row: Any) -> LogTally:
    counts, reports, repeated, conflicting, late, ended = row
    support = Support(np.frombuffer(counts, "<i8").astype(np.int64), reports)
    return LogTally(CountOutcome(support, repeated, conflicting, late), ended)


def _commit(connection: Connection, batch: BatchCount) -> bool:
    connection.execute(
        "INSERT INTO log_progress VALUES (%s, 0) ON CONFLICT DO NOTHING", (batch.stream,)
    )
    if _counted(connection, batch.stream, "FOR UPDATE") != batch.after:
        return False
    (runs,) = connection.execute(
        "SELECT count(*) FROM log_run WHERE attempt = %s", (batch.attempt,)
    ).fetchone() or (0,)
    if runs != batch.runs:
        raise psycopg.DataError(f"{runs} runs of the batch are stored, and {batch.runs} were made")
    connection.execute(
        "INSERT INTO log_batch VALUES (%s, %s, %s, %s)",
        (batch.attempt, batch.stream, batch.after, batch.last),
    )
    for name, outcome in batch.outcomes.items():
        _add(connection, batch.stream, name, outcome)
    for name, (sequence, labels) in batch.ends.items():
        _end(connection, batch.stream, name, sequence, labels)
    connection.execute(
        "UPDATE log_progress SET counted = %s WHERE stream = %s", (batch.last, batch.stream)
    )
    return True


def _add(connection: Connection, stream: str, name: str, outcome: CountOutcome) -> None:
    row = connection.execute(
        f"{_TALLY} WHERE stream = %s AND round = %s FOR UPDATE", (stream, name)
    ).fetchone()
    if row is not None:
        before = _tally(row)
        if before.ended is not None:  # what comes now is late, whatever it was counted as
            dropped = outcome.late + outcome.support.reports
            outcome = CountOutcome(Support.none(len(outcome.support.counts)), late=dropped)
        outcome = before.outcome + outcome
    connection.execute(
        "INSERT INTO log_tally VALUES (%s, %s, %s, %s, %s, %s, %s)"
        " ON CONFLICT (stream, round) DO UPDATE SET counts = excluded.counts,"
        " reports = excluded.reports, repeated = excluded.repeated,"
        " conflicting = excluded.conflicting, late = excluded.late",
        (
            stream,
            name,
            outcome.support.counts.astype("<i8").tobytes(),
            outcome.support.reports,
            outcome.repeated,
            outcome.conflicting,
            outcome.late,
        ),
    )


def _end(connection: Connection, stream: str, name: str, sequence: int, labels: int) -> None:
    """Make a round's tally final, and forget which devices were counted in it."""
    connection.execute(
        "INSERT INTO log_tally VALUES (%s, %s, %s, 0, 0, 0, 0, %s)"
        " ON CONFLICT (stream, round) DO UPDATE SET ended = excluded.ended",
        (stream, name, bytes(8 * labels), sequence),
    )
    connection.execute(
        "DELETE FROM log_run USING log_tally WHERE log_run.stream = %s AND ended IS NOT NULL"
        " AND log_tally.stream = log_run.stream AND log_tally.round = log_run.round",
        (stream,),
    )
    connection.execute(
        "DELETE FROM log_batch WHERE stream = %s"
        " AND attempt NOT IN (SELECT attempt FROM log_run WHERE stream = %s)",
        (stream, stream),
    )
