"""Storing reports: each device's first one counts, whichever collectors they arrive at.

Nearly always no device of a batch has reported before, and a plain COPY is the fastest insert. If
one has, the primary key makes the whole COPY fail, and the batch goes through a staging table. If
the round is closed, its table refuses every row (schema.sql), or has been dropped.
"""

from __future__ import annotations

import numpy as np
import psycopg
from psycopg import errors, sql

from ldpstream.arrays import Bytes, Flags
from ldpstream.collector.kernels.device_table import ABSENT, DeviceTable, Numbers
from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import Verdict, Verdicts, all_of
from ldpstream.collector.store.postgres.connections import Connections, Transaction
from ldpstream.collector.store.postgres.copying import (
    binary_rows,
    first_of_each,
    in_order,
)
from ldpstream.protocol.limits import DEVICE_BYTES

ACCEPT = Transaction("accept", again=True)

_STAGING = (
    "CREATE TEMPORARY TABLE IF NOT EXISTS staging (device uuid, code uuid, report bytea)"
    " ON COMMIT DELETE ROWS;"
    # The tables have no statistics, and the planner might choose to scan the whole round.
    " SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
)
_INSERT = sql.SQL(
    "WITH fresh AS (INSERT INTO {} SELECT * FROM staging ON CONFLICT DO NOTHING RETURNING device)"
    " SELECT string_agg(uuid_send(device), '') FROM fresh"
)
_STORED = sql.SQL(
    "SELECT string_agg(uuid_send(device) || uuid_send(kept.code) || kept.report, '')"
    " FROM {} kept JOIN staging USING (device)"
)


def table_of(round_id: int) -> sql.Identifier:
    """The table with the reports of a round."""
    return sql.Identifier(f"report_{round_id}")


def accept(connections: Connections, stream: str, round_name: str, records: Records) -> Verdicts:
    """Store authentic records; say of each: accepted, repeated, in conflict, or too late."""
    try:
        try:
            taken = _take(connections, stream, round_name, _PlainCopy(in_order(records)))
            verdict = Verdict.ACCEPTED if taken else Verdict.CLOSED
            return all_of(verdict, len(records))
        except errors.UniqueViolation:
            first = first_of_each(records)
            chosen = _StagedInsert(in_order(records.where(first)))
            if not _take(connections, stream, round_name, chosen):
                return all_of(Verdict.CLOSED, len(records))
            return _judged(records, first, chosen)
    except (errors.CheckViolation, errors.UndefinedTable):  # it was closed, or tallied, just now
        return all_of(Verdict.CLOSED, len(records))


def end_intake(connection: psycopg.Connection, *, stream: str, round_name: str) -> None:
    """Terminate the database sessions that still insert reports into a round.

    A collector that was stopped in the middle of a COPY keeps the round from being closed. Its
    reports were not accepted yet, and it gets an error when it goes on.
    """
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_class ON pg_class.oid = relation"
        " JOIN round ON relname = 'report_' || round.id JOIN stream ON stream.id = round.stream"
        " WHERE granted AND pid <> pg_backend_pid() AND relnamespace = current_schema::regnamespace"
        " AND stream.name = %s AND round.name = %s",
        (stream, round_name),
    )


class _PlainCopy:
    """The usual insert: one COPY, which fails unless every row is new."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._rows = binary_rows(records)

    def insert(self, connection: psycopg.Connection, table: sql.Identifier) -> int:
        """Insert the rows into the table of a round; return how many."""
        _copy(connection, table, self._rows)
        return len(self._records)


class _StagedInsert:
    """The slower insert, through a staging table: it skips devices that have reported before.

    It offers their rows as well, so that the table of a closed round refuses them.
    """

    def __init__(self, records: Records) -> None:
        self._rows = binary_rows(records)
        self.fresh = self.stored = b""

    def insert(self, connection: psycopg.Connection, table: sql.Identifier) -> int:
        connection.execute(_STAGING)
        _copy(connection, sql.Identifier("staging"), self._rows)
        self.fresh = _packed(connection, _INSERT.format(table))
        self.stored = _packed(connection, _STORED.format(table))
        return len(self.fresh) // DEVICE_BYTES


def _take(
    connections: Connections, stream: str, round_name: str, rows: _PlainCopy | _StagedInsert
) -> bool:
    """Insert rows into an open round, and record how many; return False if it is not open."""

    def work(connection: psycopg.Connection) -> bool:
        row = connection.execute(
            "SELECT round.id FROM round JOIN stream ON stream.id = round.stream"
            " WHERE stream.name = %s AND round.name = %s AND state = 'open'",
            (stream, round_name),
        ).fetchone()
        if row is None:
            return False
        number = rows.insert(connection, table_of(row[0]))
        if number:
            connection.execute("INSERT INTO taken VALUES (%s, %s)", (row[0], number))
        return True

    return connections.do(ACCEPT, work)


def _judged(records: Records, first: Flags, taken: _StagedInsert) -> Verdicts:
    """The verdict on each record, given which devices were new and what the table has now."""
    fresh = np.frombuffer(taken.fresh, np.uint8).reshape(-1, DEVICE_BYTES)
    stored = Records.of(taken.stored, records.reports.shape[1])
    verdicts = all_of(Verdict.CONFLICT, len(records))
    prints = _mapped(stored.devices, stored.fingerprints).find(records.devices)
    verdicts[prints == records.fingerprints] = Verdict.REPEATED
    inserted = _mapped(fresh, np.ones(len(fresh), np.uint64)).find(records.devices) != ABSENT
    verdicts[first & inserted] = Verdict.ACCEPTED
    return verdicts


def _mapped(devices: Bytes, numbers: Numbers) -> DeviceTable:
    table = DeviceTable()
    table.add(devices, numbers)
    return table


def _copy(connection: psycopg.Connection, table: sql.Identifier, rows: bytes) -> None:
    statement = sql.SQL("COPY {} FROM STDIN (FORMAT binary)").format(table)
    with connection.cursor().copy(statement) as copy:
        copy.write(rows)


def _packed(connection: psycopg.Connection, statement: sql.Composed) -> bytes:
    row = connection.cursor(binary=True).execute(statement).fetchone()
    return b"" if row is None or row[0] is None else bytes(row[0])
