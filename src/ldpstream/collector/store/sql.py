"""How a store and an archive are read with SQL: with the same statements in both databases."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.collector.store import round_table, summary_table
from ldpstream.collector.store.admin_tables import check_log
from ldpstream.collector.store.chain import Chain, ChainCheck
from ldpstream.collector.store.chain_key import LOG
from ldpstream.collector.store.content import StoredContent
from ldpstream.collector.store.contract import (
    EVER,
    Archive,
    ReleaseSummary,
    Rests,
    Store,
    StoredRelease,
    StoredRound,
    StoredStream,
    TalliedRounds,
)
from ldpstream.collector.store.statements import Execute, Result, Tables, Work
from ldpstream.collector.store.versions import LOGGED, SUCCEEDED


class SqlStore(Store):
    """A store on a database: how it is read. The newest schema is taken for granted."""

    _tables: Tables

    def _read(self, work: Work[Result]) -> Result:
        return self._tables.read(work)

    def names(self) -> list[str]:
        rows = self._read(lambda run: run("SELECT name FROM stream ORDER BY name").fetchall())
        return [name for (name,) in rows]

    def stream(self, name: str) -> StoredStream | None:
        return self._read(lambda run: select_stream(run, name))

    def versions(self, stream: str) -> list[dict[str, Any]]:
        return self._read(lambda run: select_versions(run, stream))

    def enrolled(self, stream: str) -> int:
        # Numbers are dense, so this reads the ends of two indexes and not the whole roster.
        statement = (
            "SELECT max(number) FROM device WHERE stream = (SELECT id FROM stream WHERE name = %s)"
        )
        (last,) = self._read(lambda run: run(statement, stream).fetchone())
        return 0 if last is None else int(last) + 1 - len(self.left(stream))

    def rests(self, stream: str) -> Rests:
        return self._of_roster("number, unanswered, rests_until", "unanswered > 0", stream)

    def _of_roster(self, columns: str, which: str, stream: str) -> NDArray[np.int64]:
        statement = (
            f"SELECT {columns} FROM device"  # nosec B608 # noqa: S608
            f" WHERE stream = (SELECT id FROM stream WHERE name = %s) AND {which} ORDER BY number"
        )
        rows = self._read(lambda run: run(statement, stream).fetchall())
        return np.array(rows, np.int64).reshape(-1, columns.count(",") + 1)

    def rounds(self, stream: str, after_t: int, until_t: int = EVER) -> list[StoredRound]:
        return self._read(lambda run: round_table.select(run, stream, after_t, until_t))

    def tallied(self, stream: str, after_t: int, until_t: int) -> TalliedRounds:
        return self._read(lambda run: round_table.select_tallied(run, stream, after_t, until_t))

    def releases(self, stream: str, since: int, limit: int) -> list[StoredRelease]:
        return self._read(lambda run: select_releases(run, stream, since, limit))

    def summaries(self, stream: str, since_ms: int = 0, limit: int = EVER) -> list[ReleaseSummary]:
        return self._read(lambda run: summary_table.select(run, stream, since_ms, limit))

    def note(self, stream: str, name: str) -> dict[str, Any] | None:
        return self._read(lambda run: select_note(run, stream, name))


class SqlArchive(Archive):
    """An archive on a database that may have been written by an earlier release."""

    version: int
    """That of the schema."""

    @property
    @abstractmethod
    def _run(self) -> Execute: ...

    def terms(self) -> dict[str, dict[str, Any]]:
        rows = self._run("SELECT name, CAST(terms AS text) FROM stream").fetchall()
        return {name: json.loads(terms) for name, terms in rows}

    def versions(self, stream: str) -> list[dict[str, Any]]:
        return select_versions(self._run, stream, self.version)

    def stream(self, name: str) -> StoredStream | None:
        return select_stream(self._run, name, self.version)

    def note(self, stream: str, name: str) -> dict[str, Any] | None:
        return select_note(self._run, stream, name)

    def releases(self, stream: str, since: int, limit: int = EVER) -> list[StoredRelease]:
        return select_releases(self._run, stream, since, limit)

    def rounds(self, stream: str, after_t: int, until_t: int = EVER) -> list[StoredRound]:
        return round_table.select(self._run, stream, after_t, until_t)

    def tallied(self, stream: str, after_t: int, until_t: int) -> TalliedRounds:
        return round_table.select_tallied(self._run, stream, after_t, until_t)

    def check_log(self, chain: Chain) -> ChainCheck:
        return ChainCheck(LOG) if self.version < LOGGED else check_log(self._run, chain)


def select_versions(run: Execute, stream: str, schema: int = SUCCEEDED) -> list[dict[str, Any]]:
    """Return the terms of all versions, the first ones first; none if the stream is unknown.

    An older `schema` has the first ones only.
    """
    first = "SELECT id, CAST(terms AS text) FROM stream WHERE name = %s"
    row = run(first, stream).fetchone()
    if row is None:
        return []
    others = "SELECT CAST(terms AS text) FROM successor WHERE stream = %s ORDER BY version"
    rows = run(others, row[0]).fetchall() if schema >= SUCCEEDED else []
    return [json.loads(text) for text in (row[1], *(text for (text,) in rows))]


def select_stream(run: Execute, name: str, schema: int = SUCCEEDED) -> StoredStream | None:
    """Return a stream as it is stored; None if it is unknown."""
    statement = "SELECT serial, last_t, CAST(mechanism AS text) FROM stream WHERE name = %s"
    row = run(statement, name).fetchone()
    if row is None:
        return None
    serial, last_t, mechanism = row
    first, *successors = select_versions(run, name, schema)
    state = None if mechanism is None else json.loads(mechanism)
    return StoredStream(first, serial, last_t, state, tuple(successors))


def select_releases(run: Execute, stream: str, since: int, limit: int) -> list[StoredRelease]:
    """Return at most `limit` releases with t >= since, in order of t."""
    rows = run(
        "SELECT t, at_ms, CAST(content AS text), asked, received, missed FROM release"
        " WHERE stream = (SELECT id FROM stream WHERE name = %s) AND t >= %s ORDER BY t LIMIT %s",
        stream,
        since,
        limit,
    ).fetchall()
    return [
        StoredRelease(t, at_ms, StoredContent(text), asked, received, bool(missed))
        for t, at_ms, text, asked, received, missed in rows
    ]


def select_note(run: Execute, stream: str, name: str) -> dict[str, Any] | None:
    """Return the note of that name; None if there is none."""
    row = run(
        "SELECT CAST(content AS text) FROM note JOIN stream ON stream.id = note.stream"
        " WHERE stream.name = %s AND note.name = %s",
        stream,
        name,
    ).fetchone()
    return None if row is None else dict(json.loads(row[0]))
