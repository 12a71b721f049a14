"""The shared store: PostgreSQL, used by several collectors at once."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg import errors

from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import Verdicts
from ldpstream.collector.store import chain_tables, round_table
from ldpstream.collector.store.admin_tables import AdminTables
from ldpstream.collector.store.chain import ChainCheck, Progress, ignore
from ldpstream.collector.store.contract import (
    NO_RESTS,
    Change,
    Lease,
    NewRound,
    Places,
    Pulse,
    ReleaseSummary,
    Rests,
    Store,
    StoredRelease,
    StoredStream,
    observed,
)
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres import chained, leases
from ldpstream.collector.store.postgres.accepting import accept, end_intake
from ldpstream.collector.store.postgres.connections import (
    MOST_CONNECTIONS,
    Connections,
    Result,
    Transaction,
    Work,
)
from ldpstream.collector.store.postgres.migrations import take_turns
from ldpstream.collector.store.postgres.reading import (
    select_reports,
)
from ldpstream.collector.store.postgres.running import PostgresTables, executing
from ldpstream.collector.store.sql import SqlStore
from ldpstream.collector.store.statements import id_of, next_serial, write_note
from ldpstream.errors import Mistake, Problem
from ldpstream.oracles.collector_half import Support

CREATE_STREAM = Transaction("create_stream", again=False)
SUCCEED = Transaction("succeed", again=False)
ENROL = Transaction("enrol", again=True)
LEAVE = Transaction("leave", again=True)
OPEN_ROUND = Transaction("open_round", again=False)
CLOSE_ROUND = Transaction("close_round", again=True)
TALLY = Transaction("tally", again=False)
RELEASE = Transaction("release", again=False)
WRITE_NOTE = Transaction("write_note", again=True)
CHANGE_SETTING = Transaction("change_setting", again=False)
BEGIN_CHAIN = Transaction("begin_chain", again=True)
CHECK_RELEASES = Transaction("check_releases", again=True)
ACCEPT_RELEASES = Transaction("accept_releases", again=True)
PRUNE = Transaction("prune", again=False)

_INSERT_RELEASE = "INSERT INTO release VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"


class PostgresStore(SqlStore):
    """A store on one database. What only a stream's leader may do is done `under` its lease."""

    shared = True
    at_once = MOST_CONNECTIONS - 2  # leases and readers find a connection, too

    def __init__(self, database: Database, master: bytes, patience_ms: int = 5000) -> None:
        self._connections = Connections.to_tables(database, patience_ms)
        self._lease: Lease | None = None
        try:
            self._chain = self._connections.do(
                BEGIN_CHAIN, partial(chained.begin_chain, master=master, where=database)
            )
        except BaseException:
            self._connections.close()
            raise
        self._tables = PostgresTables(self._connections)
        self.admin = AdminTables(self._tables, self._chain)

    def close(self) -> None:
        self._connections.close()

    # Leases

    def lease(self, stream: str, holder: str, seconds: float) -> Lease | None:
        return leases.take(self._connections, stream, holder, seconds)

    def renew(self, leases_: Sequence[Lease], seconds: float) -> set[Lease]:
        return leases.renew(self._connections, leases_, seconds)

    def give_back(self, lease: Lease) -> None:
        leases.give_back(self._connections, lease)

    def under(self, lease: Lease) -> Store:
        held = copy.copy(self)
        held._lease = lease
        return held

    def _as_leader(self, transaction: Transaction, stream: str, work: Work[Result]) -> Result:
        """Do what only the holder of the stream's lease may do."""
        lease = self._lease
        if lease is None or lease.stream != stream:
            raise RuntimeError(f"{transaction.name} of stream {stream} needs its lease")

        def fenced(connection: psycopg.Connection) -> Result:
            leases.check(connection, lease)
            return work(connection)

        return self._connections.do(transaction, fenced)

    # Streams and devices

    def clock_ms(self) -> int:
        rows = self._rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        return int(rows[0][0])

    def pulse(self, stream: str) -> tuple[int, int]:
        rows = self._rows("SELECT serial, last_t FROM stream WHERE name = %s", stream)
        return rows[0] if rows else (0, 0)

    def pulses(self) -> dict[str, Pulse]:
        rows = self._rows(
            "SELECT name, serial, last_t, coalesce(expires <= clock_timestamp(), true)"
            " FROM stream LEFT JOIN lease ON lease.stream = stream.id"
        )
        return {name: Pulse(*pulse) for name, *pulse in rows}

    def create_stream(self, name: str, terms: dict[str, Any]) -> StoredStream:
        def work(connection: psycopg.Connection) -> None:
            take_turns(connection)
            chain_tables.create_stream(executing(connection), self._chain, name, terms)

        self._connections.do(CREATE_STREAM, work)
        return StoredStream(terms, 0, 0, None)

    @observed
    def succeed(self, stream: str, terms: dict[str, Any]) -> int:
        def work(connection: psycopg.Connection) -> int:
            known = chained.read_ends(connection, stream, change=True)
            return chain_tables.succeed(executing(connection), self._chain, stream, known, terms)

        return self._connections.do(SUCCEED, work)

    @observed
    def enrol(self, stream: str, device: bytes) -> int:
        def work(connection: psycopg.Connection) -> int:
            key = id_of(executing(connection), stream)
            known = _number_of(connection, key, device)
            if known is not None:
                return known
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (key,))  # one number at a time
            known = _number_of(connection, key, device)
            if known is not None:
                return known
            added = connection.execute(
                "INSERT INTO device (stream, number, device)"
                " SELECT %(stream)s, coalesce(max(number) + 1, 0), %(device)s::uuid"
                " FROM device WHERE stream = %(stream)s RETURNING number",
                {"stream": key, "device": device.hex()},
            ).fetchone()
            assert added is not None
            return int(added[0])

        return self._connections.do(ENROL, work)

    def roster(self, stream: str, first: int = 0) -> bytes:
        def work(connection: psycopg.Connection) -> bytes:
            row = (
                connection.cursor(binary=True)
                .execute(
                    "SELECT string_agg(uuid_send(device), '' ORDER BY number) FROM device"
                    " WHERE stream = (SELECT id FROM stream WHERE name = %s) AND number >= %s",
                    (stream, first),
                )
                .fetchone()
            )
            return b"" if row is None or row[0] is None else bytes(row[0])

        return self._connections.read(work)

    @observed
    def leave(self, stream: str, device: bytes) -> None:
        def work(connection: psycopg.Connection) -> None:
            connection.execute(
                "UPDATE device SET has_left = true WHERE stream = %s AND device = %s",
                (id_of(executing(connection), stream), device.hex()),
            )

        self._connections.do(LEAVE, work)

    def left(self, stream: str) -> Places:
        return self._of_roster("number", "has_left", stream).reshape(-1)

    # Rounds

    @observed
    def open_round(self, stream: str, *new: NewRound) -> int:
        def work(connection: psycopg.Connection) -> int:
            run = executing(connection)
            key = id_of(run, stream)
            for one in new:
                round_table.insert(run, key, one)
            return next_serial(run, key)

        return self._as_leader(OPEN_ROUND, stream, work)

    @observed
    def accept(self, stream: str, round_name: str, records: Records) -> Verdicts:
        return accept(self._connections, stream, round_name, records)

    def received(self, stream: str, round_name: str) -> int:
        rows = self._rows(
            "SELECT coalesce(sum(number), 0)::bigint FROM taken WHERE round ="
            " (SELECT round.id FROM round JOIN stream ON stream.id = round.stream"
            " WHERE stream.name = %s AND round.name = %s AND state = 'open')",
            stream,
            round_name,
        )
        return int(rows[0][0])

    @observed
    def close_round(self, stream: str, round_name: str, at_ms: int) -> int:
        def work(connection: psycopg.Connection) -> int:
            run = executing(connection)
            run("SELECT set_config('lock_timeout', %s, true)", patience)
            return round_table.close(run, id_of(run, stream), round_name, at_ms)

        patience = f"{self._connections.patience_ms}ms"
        try:
            return self._as_leader(CLOSE_ROUND, stream, work)
        except errors.LockNotAvailable:
            self._connections.read(partial(end_intake, stream=stream, round_name=round_name))
            return self._as_leader(CLOSE_ROUND, stream, work)

    def reports(self, stream: str, round_name: str) -> Iterator[Records]:
        rows = self._rows(
            "SELECT round.id, report_bytes FROM round JOIN stream ON stream.id = round.stream"
            " WHERE stream.name = %s AND round.name = %s AND state <> 'tallied'",
            stream,
            round_name,
        )
        for round_id, report_bytes in rows:
            with self._connections.use() as connection:
                try:
                    yield from select_reports(connection, round_id, report_bytes)
                except errors.UndefinedTable:  # another collector has counted them by now
                    raise Mistake(Problem.LEASE_LOST, stream=stream) from None

    @observed
    def tally(self, stream: str, supports: Mapping[str, Support], rests: Rests = NO_RESTS) -> None:
        def work(connection: psycopg.Connection) -> None:
            run = executing(connection)
            key = id_of(run, stream)
            for name, support in supports.items():
                round_table.tally(run, key, name, support)
            if len(rests):
                connection.execute(
                    "UPDATE device SET unanswered = times, rests_until = until FROM"
                    " unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS new (place, times, until)"
                    " WHERE stream = %s AND number = place",
                    (*rests.T.tolist(), key),
                )

        self._as_leader(TALLY, stream, work)

    # Releases

    @observed
    def release(
        self,
        stream: str,
        releases: Sequence[StoredRelease],
        mechanism: dict[str, Any],
        forget_t: int,
    ) -> None:
        def work(connection: psycopg.Connection) -> None:
            chain_tables.release(
                executing(connection),
                self._chain,
                stream,
                chained.read_ends(connection, stream, change=True),
                releases,
                mechanism,
                forget_t,
                partial(connection.cursor().executemany, _INSERT_RELEASE),
            )

        self._as_leader(RELEASE, stream, work)

    def check_releases(self, stream: str, progress: Progress = ignore) -> ChainCheck:
        def work(connection: psycopg.Connection) -> ChainCheck:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return chained.check(connection, self._chain, stream, progress)

        return self._connections.do(CHECK_RELEASES, work)

    def accept_releases(self, stream: str) -> None:
        self._connections.do(
            ACCEPT_RELEASES, lambda connection: chained.accept(connection, self._chain, stream)
        )

    @observed
    def prune(
        self,
        stream: str,
        before_t: int,
        added: Sequence[ReleaseSummary] = (),
        gone: Sequence[int] = (),
    ) -> None:
        def work(connection: psycopg.Connection) -> None:
            known = chained.read_ends(connection, stream, change=True)
            run = executing(connection)
            chain_tables.prune(run, self._chain, stream, known, before_t, added, gone)

        self._as_leader(PRUNE, stream, work)

    # Notes

    @observed
    def write_note(self, stream: str, name: str, content: dict[str, Any]) -> None:
        def work(connection: psycopg.Connection) -> None:
            write_note(executing(connection), stream, name, content)

        self._as_leader(WRITE_NOTE, stream, work)

    @observed
    def change_setting(self, stream: str, name: str, change: Change) -> dict[str, Any]:
        def work(connection: psycopg.Connection) -> dict[str, Any]:
            key = id_of(executing(connection), stream)
            # There must be a row to lock, so that two collectors that set it first take turns.
            connection.execute(
                "INSERT INTO note VALUES (%s, %s, 'null') ON CONFLICT DO NOTHING", (key, name)
            )
            row = connection.execute(
                "SELECT content FROM note WHERE stream = %s AND name = %s FOR UPDATE", (key, name)
            ).fetchone()
            assert row is not None
            content = change(row[0])
            write_note(executing(connection), stream, name, content)
            return content

        return self._connections.do(CHANGE_SETTING, work)

    def _rows(self, statement: str, *given: object) -> list[tuple[Any, ...]]:
        return self._connections.read(
            lambda connection: connection.execute(statement.encode(), given).fetchall()
        )


def _number_of(connection: psycopg.Connection, stream: int, device: bytes) -> int | None:
    row = connection.execute(
        "SELECT number FROM device WHERE stream = %s AND device = %s", (stream, device.hex())
    ).fetchone()
    return None if row is None else int(row[0])
