"""The shared store: PostgreSQL, used by several collectors at once."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import psycopg
from psycopg import errors, sql

from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import Verdicts
from ldpstream.collector.store import summary_table
from ldpstream.collector.store.admin_tables import AdminTables
from ldpstream.collector.store.chain import EVERY, Checked, Progress, ignore
from ldpstream.collector.store.chain_tables import write_ends
from ldpstream.collector.store.content import stored_text
from ldpstream.collector.store.contract import (
    EVER,
    NO_RESTS,
    Change,
    Lease,
    NewRound,
    Places,
    Pulse,
    Release,
    Rests,
    Round,
    Store,
    Stream,
    Summary,
    TalliedRounds,
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
    select_note,
    select_releases,
    select_reports,
    select_rounds,
    select_stream,
    select_tallied,
    select_versions,
)
from ldpstream.collector.store.postgres.running import PostgresTables, executing
from ldpstream.collector.store.round_rows import NEW_ROUND_COLUMNS
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

FORGET_ASKED = "UPDATE round SET asked = NULL WHERE stream = %s AND t <= %s AND asked IS NOT NULL"


class PostgresStore(Store):
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
        self.admin = AdminTables(PostgresTables(self._connections), self._chain)

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

    def names(self) -> list[str]:
        return [name for (name,) in self._rows("SELECT name FROM stream ORDER BY name")]

    def pulses(self) -> dict[str, Pulse]:
        rows = self._rows(
            "SELECT name, serial, last_t, coalesce(expires <= clock_timestamp(), true)"
            " FROM stream LEFT JOIN lease ON lease.stream = stream.id"
        )
        return {name: Pulse(*pulse) for name, *pulse in rows}

    def stream(self, name: str) -> Stream | None:
        return self._connections.read(partial(select_stream, name=name))

    def versions(self, stream: str) -> list[dict[str, Any]]:
        return self._connections.read(partial(select_versions, stream=stream))

    def create_stream(self, name: str, terms: dict[str, Any]) -> Stream:
        def work(connection: psycopg.Connection) -> None:
            text = stored_text(terms)
            take_turns(connection)
            chained.check(connection, self._chain, EVERY, ignore).refuse_damage()
            connection.execute("INSERT INTO stream (name, terms) VALUES (%s, %s)", (name, text))
            ends = self._chain.begun(name, text.encode())
            write_ends(executing(connection), _stream_id(connection, name), ends)
            chained.accept(connection, self._chain, EVERY)

        self._connections.do(CREATE_STREAM, work)
        return Stream(terms, 0, 0, None)

    @observed
    def succeed(self, stream: str, terms: dict[str, Any]) -> int:
        def work(connection: psycopg.Connection) -> int:
            found = chained.read_ends(connection, stream, change=True)
            assert found is not None
            key, ends = found
            text = stored_text(terms)
            connection.execute(
                "INSERT INTO successor VALUES (%s, %s, %s)",
                (key, terms["succeeds"]["version"], text),
            )
            after = self._chain.succeeded(stream, ends, text.encode())
            write_ends(executing(connection), key, after)
            return _next_serial(connection, key)

        return self._connections.do(SUCCEED, work)

    @observed
    def enrol(self, stream: str, device: bytes) -> int:
        def work(connection: psycopg.Connection) -> int:
            key = _stream_id(connection, stream)
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
                (_stream_id(connection, stream), device.hex()),
            )

        self._connections.do(LEAVE, work)

    def left(self, stream: str) -> Places:
        rows = self._rows(
            "SELECT number FROM device"
            " WHERE stream = (SELECT id FROM stream WHERE name = %s) AND has_left ORDER BY number",
            stream,
        )
        return np.array(rows, np.int64).reshape(-1)

    def enrolled(self, stream: str) -> int:
        # Numbers are dense, so this reads the ends of two indexes and not the whole roster.
        rows = self._rows(
            "SELECT coalesce(max(number) + 1, 0) FROM device"
            " WHERE stream = (SELECT id FROM stream WHERE name = %s)",
            stream,
        )
        return int(rows[0][0]) - len(self.left(stream))

    def rests(self, stream: str) -> Rests:
        rows = self._rows(
            "SELECT number, unanswered, rests_until FROM device"
            " WHERE stream = (SELECT id FROM stream WHERE name = %s) AND unanswered > 0"
            " ORDER BY number",
            stream,
        )
        return np.array(rows, np.int64).reshape(-1, 3)

    # Rounds

    @observed
    def open_round(self, stream: str, *new: NewRound) -> int:
        def work(connection: psycopg.Connection) -> int:
            names = NEW_ROUND_COLUMNS.split(", ")
            key = _stream_id(connection, stream)
            insert = sql.SQL("INSERT INTO round (stream, {}) VALUES ({})").format(
                sql.SQL(NEW_ROUND_COLUMNS),
                sql.SQL(", ").join([sql.Placeholder()] * (len(names) + 1)),
            )
            for one in new:
                given = vars(one) | {"rate_share": one.rate[0], "rate_whole": one.rate[1]}
                connection.execute(insert, (key, *(given[name] for name in names)))
            return _next_serial(connection, key)

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
            key = _stream_id(connection, stream)
            connection.execute("SELECT set_config('lock_timeout', %s, true)", (patience,))
            done = connection.execute(
                "UPDATE round SET state = 'closed', closed_ms = %s"
                " WHERE stream = %s AND name = %s AND state = 'open'",
                (at_ms, key, round_name),
            )
            return _next_serial(connection, key, step=done.rowcount)

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
            key = _stream_id(connection, stream)
            for name, support in supports.items():
                counts = support.counts.astype("<i8").tobytes()
                connection.execute(
                    "UPDATE round SET state = 'tallied', counts = %s, reports = %s"
                    " WHERE stream = %s AND name = %s",
                    (counts, support.reports, key, name),
                )
            if len(rests):
                connection.execute(
                    "UPDATE device SET unanswered = times, rests_until = until FROM"
                    " unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS new (place, times, until)"
                    " WHERE stream = %s AND number = place",
                    (*rests.T.tolist(), key),
                )

        self._as_leader(TALLY, stream, work)

    def rounds(self, stream: str, after_t: int, until_t: int = EVER) -> list[Round]:
        return self._connections.read(
            partial(select_rounds, stream=stream, after_t=after_t, until_t=until_t)
        )

    def tallied(self, stream: str, after_t: int, until_t: int) -> TalliedRounds:
        return self._connections.read(
            lambda connection: select_tallied(connection, stream, after_t, until_t)
        )

    # Releases

    @observed
    def release(
        self, stream: str, releases: Sequence[Release], mechanism: dict[str, Any], forget_t: int
    ) -> None:
        def work(connection: psycopg.Connection) -> None:
            found = chained.read_ends(connection, stream, change=True)
            assert found is not None
            key, before = found
            rows = [one.row for one in releases]
            state = stored_text(mechanism).encode()
            links, after = self._chain.extended(stream, before, rows, state)
            connection.cursor().executemany(
                "INSERT INTO release VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                [
                    (key, t, at_ms, content.decode(), asked, received, missed, link)
                    for (t, at_ms, content, asked, received, missed), link in zip(
                        rows, links, strict=True
                    )
                ],
            )
            write_ends(executing(connection), key, after)
            connection.execute(FORGET_ASKED, (key, forget_t))

        self._as_leader(RELEASE, stream, work)

    def check_releases(self, stream: str, progress: Progress = ignore) -> Checked:
        def work(connection: psycopg.Connection) -> Checked:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return chained.check(connection, self._chain, stream, progress)

        return self._connections.do(CHECK_RELEASES, work)

    def accept_releases(self, stream: str) -> None:
        self._connections.do(
            ACCEPT_RELEASES, lambda connection: chained.accept(connection, self._chain, stream)
        )

    @observed
    def prune(
        self, stream: str, before_t: int, added: Sequence[Summary] = (), gone: Sequence[int] = ()
    ) -> None:
        def work(connection: psycopg.Connection) -> None:
            chained.prune(connection, self._chain, stream, before_t, added, gone)

        self._as_leader(PRUNE, stream, work)

    def summaries(self, stream: str, since_ms: int = 0, limit: int = EVER) -> list[Summary]:
        return self._connections.read(
            lambda connection: summary_table.select(executing(connection), stream, since_ms, limit)
        )

    def releases(self, stream: str, since: int, limit: int) -> list[Release]:
        return self._connections.read(
            lambda connection: select_releases(connection, stream, since, limit)
        )

    # Notes

    def note(self, stream: str, name: str) -> dict[str, Any] | None:
        return self._connections.read(partial(select_note, stream=stream, name=name))

    @observed
    def write_note(self, stream: str, name: str, content: dict[str, Any]) -> None:
        self._as_leader(
            WRITE_NOTE, stream, lambda connection: _write_note(connection, stream, name, content)
        )

    @observed
    def change_setting(self, stream: str, name: str, change: Change) -> dict[str, Any]:
        def work(connection: psycopg.Connection) -> dict[str, Any]:
            key = _stream_id(connection, stream)
            # There must be a row to lock, so that two collectors that set it first take turns.
            connection.execute(
                "INSERT INTO note VALUES (%s, %s, 'null') ON CONFLICT DO NOTHING", (key, name)
            )
            row = connection.execute(
                "SELECT content FROM note WHERE stream = %s AND name = %s FOR UPDATE", (key, name)
            ).fetchone()
            assert row is not None
            content = change(row[0])
            _write_note(connection, stream, name, content)
            return content

        return self._connections.do(CHANGE_SETTING, work)

    def _rows(self, statement: str, *given: object) -> list[tuple[Any, ...]]:
        return self._connections.read(
            lambda connection: connection.execute(statement.encode(), given).fetchall()
        )


def _write_note(
    connection: psycopg.Connection, stream: str, name: str, content: dict[str, Any]
) -> None:
    connection.execute(
        "INSERT INTO note VALUES (%s, %s, %s)"
        " ON CONFLICT (stream, name) DO UPDATE SET content = excluded.content",
        (_stream_id(connection, stream), name, stored_text(content)),
    )


def _stream_id(connection: psycopg.Connection, name: str) -> int:
    row = connection.execute("SELECT id FROM stream WHERE name = %s", (name,)).fetchone()
    assert row is not None
    return int(row[0])


def _number_of(connection: psycopg.Connection, stream: int, device: bytes) -> int | None:
    row = connection.execute(
        "SELECT number FROM device WHERE stream = %s AND device = %s", (stream, device.hex())
    ).fetchone()
    return None if row is None else int(row[0])


def _next_serial(connection: psycopg.Connection, stream: int, step: int = 1) -> int:
    row = connection.execute(
        "UPDATE stream SET serial = serial + %s WHERE id = %s RETURNING serial", (step, stream)
    ).fetchone()
    assert row is not None
    return int(row[0])
