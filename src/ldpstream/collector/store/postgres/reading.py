"""Reading rows of the database into the types of the contract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import errors, sql

from ldpstream.collector.reports.records import Records
from ldpstream.collector.store.content import StoredContent
from ldpstream.collector.store.contract import EVER, Release, Round, Stream, TalliedRounds
from ldpstream.collector.store.postgres.accepting import table_of
from ldpstream.collector.store.postgres.chained import successors
from ldpstream.collector.store.round_rows import ROUND_COLUMNS, round_of

PAGES_AT_ONCE = 1024
"""Pages of 8 KB that are read in one go: some hundred thousand reports."""


def select_releases(
    connection: psycopg.Connection, stream: str, since: int, limit: int | None
) -> list[Release]:
    """At most `limit` releases (all: None) with t >= since, in order of t."""
    rows = connection.execute(
        "SELECT t, at_ms, content::text, asked, received, missed FROM release"
        " WHERE stream = (SELECT id FROM stream WHERE name = %s) AND t >= %s"
        " ORDER BY t LIMIT %s",
        (stream, since, limit),
    )
    return [Release(t, at_ms, StoredContent(text), *others) for t, at_ms, text, *others in rows]


def select_versions(connection: psycopg.Connection, *, stream: str) -> list[dict[str, Any]]:
    """The terms of all versions of a stream, the first ones first; none if it is unknown."""
    row = connection.execute("SELECT id, terms FROM stream WHERE name = %s", (stream,)).fetchone()
    if row is None:
        return []
    key, first = row
    return [first, *map(json.loads, successors(connection, key))]


def select_stream(connection: psycopg.Connection, *, name: str) -> Stream | None:
    """A stream as it is stored; None if it is unknown."""
    row = connection.execute(
        "SELECT serial, last_t, mechanism FROM stream WHERE name = %s", (name,)
    ).fetchone()
    if row is None:
        return None
    serial, last_t, mechanism = row
    first, *successors = select_versions(connection, stream=name)
    return Stream(first, serial, last_t, mechanism, tuple(successors))


def select_note(connection: psycopg.Connection, *, stream: str, name: str) -> dict[str, Any] | None:
    """The note of that name; None if there is none."""
    row = connection.execute(
        "SELECT content FROM note JOIN stream ON stream.id = note.stream"
        " WHERE stream.name = %s AND note.name = %s",
        (stream, name),
    ).fetchone()
    return None if row is None else dict(row[0])


def select_rounds(
    connection: psycopg.Connection, stream: str, after_t: int, until_t: int = EVER
) -> list[Round]:
    """The rounds of timestamps after `after_t`, up to `until_t`, in the order of opening."""
    rows = connection.execute(
        f"SELECT {ROUND_COLUMNS} FROM round"  # nosec B608 # noqa: S608
        " WHERE stream = (SELECT id FROM stream WHERE name = %s) AND t > %s AND t <= %s"
        " ORDER BY id",
        (stream, after_t, until_t),
    )
    return [round_of(row) for row in rows]


def select_tallied(
    connection: psycopg.Connection, stream: str, after_t: int, until_t: int
) -> TalliedRounds:
    """The counts of the rounds that are tallied, of the same timestamps."""
    rows = connection.execute(
        f"SELECT {TalliedRounds.COLUMNS} FROM round"  # nosec B608 # noqa: S608
        " WHERE stream = (SELECT id FROM stream WHERE name = %s) AND t > %s AND t <= %s"
        " AND counts IS NOT NULL ORDER BY id",
        (stream, after_t, until_t),
    )
    return TalliedRounds.of(rows)


def select_reports(
    connection: psycopg.Connection, round_id: int, report_bytes: int
) -> Iterator[Records]:
    """The records of a round, in the order in which they lie on disk.

    The server packs them, a range of pages at a time. That is ten times as fast as COPY, which
    sends a message for each row.
    """
    table = table_of(round_id)
    size = sql.SQL("SELECT pg_relation_size({}::regclass) / current_setting('block_size')::int")
    row = connection.execute(size.format(sql.Literal(table.as_string(connection)))).fetchone()
    if row is None or row[0] is None:
        raise errors.UndefinedTable(f"the reports of round {round_id} were dropped just now")
    part = sql.SQL(
        "SELECT string_agg(uuid_send(device) || uuid_send(code) || report, '') FROM {}"
        " WHERE ctid >= %s::tid AND ctid < %s::tid"
    ).format(table)
    cursor = connection.cursor(binary=True)
    for first in range(0, row[0], PAGES_AT_ONCE):
        pages = (f"({first},0)", f"({first + PAGES_AT_ONCE},0)")
        packed = cursor.execute(part, pages).fetchone()
        if packed is not None and packed[0] is not None:
            yield Records.of(packed[0], report_bytes)
