"""Reading the file of a collector that may be running: without its lock, and without writing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldpstream.collector.store.admin_tables import check_log
from ldpstream.collector.store.chain import Chain, Checked, Progress, ignore
from ldpstream.collector.store.chain_key import LOG
from ldpstream.collector.store.content import StoredContent
from ldpstream.collector.store.contract import EVER, Archive, Release, Round, Stream, TalliedRounds
from ldpstream.collector.store.damage import reading_store
from ldpstream.collector.store.round_rows import ROUND_COLUMNS, round_of
from ldpstream.collector.store.sqlite import chained
from ldpstream.collector.store.sqlite.migrations import NOTED, version_of
from ldpstream.collector.store.sqlite.running import executing
from ldpstream.collector.store.sqlite.soundness import check_content
from ldpstream.collector.store.versions import CHAINED, LOGGED
from ldpstream.errors import Mistake, Problem


def select_releases(
    connection: sqlite3.Connection, stream: str, since: int, limit: int
) -> list[Release]:
    """At most `limit` releases (all: -1) with t >= since, in order of t."""
    rows = connection.execute(
        "SELECT t, at_ms, content, asked, received, missed FROM release"
        " WHERE stream = (SELECT id FROM stream WHERE name = ?) AND t >= ?"
        " ORDER BY t LIMIT ?",
        (stream, since, limit),
    )
    return [
        Release(t, at_ms, StoredContent(content), asked, received, bool(missed))
        for t, at_ms, content, asked, received, missed in rows
    ]


def select_rounds(
    connection: sqlite3.Connection, stream: str, after_t: int, until_t: int
) -> list[Round]:
    """The rounds of timestamps after `after_t`, up to `until_t`, in the order of opening."""
    rows = connection.execute(
        f"SELECT {ROUND_COLUMNS} FROM round"  # nosec B608 # noqa: S608
        " WHERE stream = (SELECT id FROM stream WHERE name = ?) AND t > ? AND t <= ?"
        " ORDER BY id",
        (stream, after_t, until_t),
    )
    return [round_of(row) for row in rows]


def select_tallied(
    connection: sqlite3.Connection, stream: str, after_t: int, until_t: int
) -> TalliedRounds:
    """The counts of the rounds that are tallied, of the same timestamps."""
    rows = connection.execute(
        f"SELECT {TalliedRounds.COLUMNS} FROM round"  # nosec B608 # noqa: S608
        " WHERE stream = (SELECT id FROM stream WHERE name = ?) AND t > ? AND t <= ?"
        " AND counts IS NOT NULL ORDER BY id",
        (stream, after_t, until_t),
    )
    return TalliedRounds.of(rows)


def select_versions(connection: sqlite3.Connection, stream: str) -> list[dict[str, Any]]:
    """The terms of all versions of a stream, the first ones first; none if it is unknown."""
    row = connection.execute("SELECT id, terms FROM stream WHERE name = ?", (stream,)).fetchone()
    if row is None:
        return []
    key, first = row
    return [json.loads(terms) for terms in (first, *chained.successors(connection, key))]


def select_stream(connection: sqlite3.Connection, name: str) -> Stream | None:
    """A stream as it is stored; None if it is unknown."""
    row = connection.execute(
        "SELECT serial, last_t, mechanism FROM stream WHERE name = ?", (name,)
    ).fetchone()
    if row is None:
        return None
    first, *successors = select_versions(connection, name)
    serial, last_t, mechanism = row
    state = None if mechanism is None else json.loads(mechanism)
    return Stream(first, serial, last_t, state, tuple(successors))


def select_note(connection: sqlite3.Connection, stream: str, name: str) -> dict[str, Any] | None:
    """The note of that name; None if there is none."""
    row = connection.execute(
        "SELECT content FROM note JOIN stream ON stream.id = note.stream"
        " WHERE stream.name = ? AND note.name = ?",
        (stream, name),
    ).fetchone()
    return None if row is None else dict(json.loads(row[0]))


@dataclass(frozen=True)
class SqliteArchive(Archive):
    """The releases in a file."""

    file: Path
    connection: sqlite3.Connection
    version: int

    def terms(self) -> dict[str, dict[str, Any]]:
        rows = self.connection.execute("SELECT name, terms FROM stream").fetchall()
        return {name: json.loads(terms) for name, terms in rows}

    def versions(self, stream: str) -> list[dict[str, Any]]:
        return select_versions(self.connection, stream)

    def stream(self, name: str) -> Stream | None:
        return select_stream(self.connection, name)

    def note(self, stream: str, name: str) -> dict[str, Any] | None:
        return select_note(self.connection, stream, name) if self.version >= NOTED else None

    def releases(self, stream: str, since: int, limit: int | None = None) -> list[Release]:
        return select_releases(self.connection, stream, since, -1 if limit is None else limit)

    def rounds(self, stream: str, after_t: int, until_t: int = EVER) -> list[Round]:
        return select_rounds(self.connection, stream, after_t, until_t)

    def tallied(self, stream: str, after_t: int, until_t: int) -> TalliedRounds:
        return select_tallied(self.connection, stream, after_t, until_t)

    def chain(self, master: bytes) -> Chain | None:
        if self.version < CHAINED:
            return None
        return chained.read_chain(self.connection, master, self.file)

    def check_releases(self, chain: Chain, stream: str, progress: Progress = ignore) -> Checked:
        return chained.check(self.connection, chain, stream, progress)

    def check_log(self, chain: Chain) -> Checked:
        if self.version < LOGGED:
            return Checked(LOG)
        return check_log(executing(self.connection), chain)


@contextmanager
def open_archive(file: Path) -> Iterator[Archive]:
    """Open the file of a collector for reading."""
    try:
        if not file.is_file():
            raise sqlite3.OperationalError("there is no such file")
        uri = f"{file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("BEGIN")  # what is checked is what is read
            version = version_of(connection, file)
            with reading_store(file):
                check_content(connection, version)
                yield SqliteArchive(file, connection, version)
    except sqlite3.Error as error:
        fix = "give the store of a collector"
        raise Mistake(Problem.DATA_FILE, file=file, what=error, fix=fix) from None
