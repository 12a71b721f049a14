"""The chain of releases in a SQLite file: its key, its ends, its links."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ldpstream.collector.store import summary_table
from ldpstream.collector.store.chain import (
    EVERY,
    PAGE,
    Chain,
    Checked,
    Ends,
    LinkedRow,
    Progress,
    Row,
)
from ldpstream.collector.store.chain_key import STREAMS, draw_chain, find_chain, key_missing
from ldpstream.collector.store.contract import Summary
from ldpstream.collector.store.sqlite.migrations import SUCCEEDED, SUMMARISED
from ldpstream.collector.store.sqlite.running import executing
from ldpstream.collector.store.summary_table import FORGET_ROUNDS

_COLUMNS = "t, at_ms, CAST(content AS BLOB), asked, received, missed"

_ENDS = (
    "SELECT id, CAST(terms AS BLOB), CAST(mechanism AS BLOB), checkpoint_t, checkpoint, last_t,"
    " head, seal"
)

_log = logging.getLogger(__name__)


def begin_chain(connection: sqlite3.Connection, master: bytes) -> None:
    """Chain what is in a store that never had a chain, within a transaction."""

    def put(name: str, value: str) -> None:
        connection.execute("INSERT INTO property VALUES (?, ?)", (name, value))

    drawn = draw_chain(lambda name: _property(connection, name), put, master)
    for name in _names(connection):
        _log.warning("the releases of stream %s are chained as they are now", name)
        accept(connection, drawn, name)
    accept(connection, drawn, EVERY)


def read_chain(connection: sqlite3.Connection, master: bytes, where: object) -> Chain:
    """Return the chain of a store: the key comes with the tables, so without it one is damaged."""
    known = find_chain(lambda name: _property(connection, name), master, where)
    if known is None:
        raise key_missing(where)
    return known


def read_ends(connection: sqlite3.Connection, stream: str) -> tuple[int, Ends] | None:
    """Return the id of a stream and the sealed part of its row; None if there is no such stream."""
    summaries = ", summaries" if _version(connection) >= SUMMARISED else ""
    row = connection.execute(f"{_ENDS}{summaries} FROM stream WHERE name = ?", (stream,)).fetchone()  # nosec B608
    if row is None:
        return None
    key, terms, *others = row
    return key, Ends(b"\n".join([terms, *successors(connection, key)]), *others)


def successors(connection: sqlite3.Connection, key: int) -> list[bytes]:
    """Return the texts of all terms of a stream but the first; an older file has no others."""
    if _version(connection) < SUCCEEDED:
        return []
    rows = connection.execute(
        "SELECT CAST(terms AS BLOB) FROM successor WHERE stream = ? ORDER BY version", (key,)
    )
    return [terms for (terms,) in rows]


def write_ends(connection: sqlite3.Connection, key: int, ends: Ends) -> None:
    """Put the ends of a chain, and the state after the last release, into the stream's row."""
    state = None if ends.mechanism is None else ends.mechanism.decode()
    connection.execute(
        "UPDATE stream SET mechanism = ?, checkpoint_t = ?, checkpoint = ?, last_t = ?, head = ?,"
        " seal = ?, summaries = ? WHERE id = ?",
        (
            state,
            ends.checkpoint_t,
            ends.checkpoint,
            ends.last_t,
            ends.head,
            ends.seal,
            ends.summaries,
            key,
        ),
    )


def check(connection: sqlite3.Connection, chain: Chain, stream: str, progress: Progress) -> Checked:
    """Follow the chain of a stream, in the transaction of the connection."""
    if stream == EVERY:
        return chain.check_names(_names(connection), _property(connection, STREAMS))
    known = read_ends(connection, stream)
    if known is None:
        return Checked(stream)
    key, ends = known
    found = chain.check(stream, ends, _linked(connection, key), progress)
    if _version(connection) < SUMMARISED:
        return found
    run = executing(connection)
    damage = found.damage or summary_table.find_damage(run, chain, stream, key, ends)
    return replace(found, damage=damage, summaries=summary_table.count(run, key))


def accept(connection: sqlite3.Connection, chain: Chain, stream: str) -> None:
    """Chain the releases of a stream as they are, within a transaction."""
    if stream == EVERY:
        seal = chain.seal_names(_names(connection))
        connection.execute("INSERT OR REPLACE INTO property VALUES (?, ?)", (STREAMS, seal))
        return
    found = read_ends(connection, stream)
    assert found is not None
    key, ends = found

    def page_after(t: int) -> Sequence[Row]:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM release"  # nosec B608 # noqa: S608
            " WHERE stream = ? AND t > ? ORDER BY t LIMIT ?",
            (key, t, PAGE),
        )
        return [Row(*row) for row in rows]

    def write(links: list[tuple[bytes, int]]) -> None:
        connection.executemany(
            "UPDATE release SET link = ? WHERE t = ? AND stream = ?",
            [(*one, key) for one in links],
        )

    summaries = summary_table.accept(executing(connection), chain, stream, key)
    ends = replace(ends, summaries=summaries)
    write_ends(connection, key, chain.accepted(stream, ends, page_after, write))


def prune(
    connection: sqlite3.Connection,
    chain: Chain,
    stream: str,
    before_t: int,
    added: Sequence[Summary],
    gone: Sequence[int],
) -> None:
    """Remove old releases and their rounds, within a transaction; the last release stays."""
    found = read_ends(connection, stream)
    assert found is not None
    key, ends = found
    last = connection.execute(
        "SELECT t, link FROM release WHERE stream = ? AND t < ? ORDER BY t DESC LIMIT 1",
        (key, min(before_t, ends.last_t)),
    ).fetchone()
    if last is not None:
        ends = chain.pruned(stream, ends, *last)
    if added or gone:
        run = executing(connection)
        summaries = summary_table.change(run, chain, stream, key, added, gone)
        ends = chain.summarised(stream, ends, summaries)
    write_ends(connection, key, ends)
    if last is not None:
        connection.execute("DELETE FROM release WHERE stream = ? AND t <= ?", (key, last[0]))
        connection.execute(FORGET_ROUNDS.replace("%s", "?"), (key, last[0]))


def _linked(connection: sqlite3.Connection, key: int) -> Iterator[LinkedRow]:
    return connection.execute(
        f"SELECT {_COLUMNS}, link FROM release WHERE stream = ? ORDER BY t",  # nosec B608 # noqa: S608
        (key,),
    )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _names(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM stream").fetchall()]


def _property(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM property WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])
