"""A collector's store, read by its tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ldpstream.arrays import Counts
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.limits import HEAD_BYTES
from ldpstream.protocol.terms import Terms
from ldpstream.sqlite_files import reading


@dataclass(frozen=True)
class StoredRound:
    """A round, with what was counted in it or waits to be."""

    t: int
    name: str
    epsilon_nano: int
    deadline_ms: int
    counts: Counts
    reports: int


ReleaseRow = tuple[Any, ...]
"""t, at_ms, content, asked, received, missed."""
MISSED = 5


@dataclass(frozen=True)
class Books:
    """One stream of a collector, as it is stored."""

    terms: Terms
    rounds: tuple[StoredRound, ...]
    releases: dict[int, ReleaseRow]

    def support(self, epsilon_nano: int, reports: list[bytes]) -> Counts:
        """Return how many of these reports support each label."""
        return _support(self.terms, epsilon_nano, reports)


def read_books(store: Path, stream: str) -> Books:
    with reading(store) as connection:
        ((key, written),) = connection.execute(
            "SELECT id, terms FROM stream WHERE name = ?", (stream,)
        )
        terms = Terms.read(json.loads(written))
        rows = connection.execute(
            "SELECT id, t, name, epsilon_nano, deadline_ms, report_bytes, counts, reports"
            " FROM round WHERE stream = ? ORDER BY id",
            (key,),
        ).fetchall()
        rounds = tuple(_round(connection, terms, *row) for row in rows)
        return Books(terms, rounds, _releases(connection, key))


def read_releases(store: Path, stream: str) -> dict[int, ReleaseRow]:
    """The releases as they are now; the collector may be running."""
    with reading(store) as connection:
        found = connection.execute("SELECT id FROM stream WHERE name = ?", (stream,)).fetchone()
        return {} if found is None else _releases(connection, found[0])


def _releases(connection: sqlite3.Connection, stream: int) -> dict[int, ReleaseRow]:
    rows = connection.execute(
        "SELECT t, at_ms, content, asked, received, missed FROM release WHERE stream = ?", (stream,)
    )
    return {row[0]: row for row in rows}


def _round(
    connection: sqlite3.Connection,
    terms: Terms,
    key: int,
    t: int,
    name: str,
    epsilon_nano: int,
    deadline_ms: int,
    report_bytes: int,
    counts: bytes | None,
    reports: int | None,
) -> StoredRound:
    if counts is None or reports is None:  # not tallied: its reports are still there
        waiting = [
            report
            for (records,) in connection.execute(
                "SELECT records FROM report_batch WHERE round = ?", (key,)
            )
            for report in _reports_in(records, report_bytes)
        ]
        counted, reports = _support(terms, epsilon_nano, waiting), len(waiting)
    else:
        counted = np.frombuffer(counts, "<i8").astype(np.int64)
    return StoredRound(t, name, epsilon_nano, deadline_ms, counted, reports)


def _reports_in(records: bytes, report_bytes: int) -> Iterator[bytes]:
    size = HEAD_BYTES + report_bytes
    for first in range(0, len(records), size):
        yield records[first + HEAD_BYTES : first + size]


def _support(terms: Terms, epsilon_nano: int, reports: list[bytes]) -> Counts:
    half = terms.oracle.collector(len(terms.values), Epsilon(epsilon_nano))
    if not reports:
        return np.zeros(half.counters, np.int64)
    return half.support(half.decode(reports)).counts
