"""The chain of releases in a SQLite file: its key, its ends, its links."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial

from ldpstream.collector.store import chain_tables
from ldpstream.collector.store.chain import (
    PAGE,
    Chain,
    ChainCheck,
    ChainEnds,
    ChainRow,
    LinkedRow,
    Progress,
)
from ldpstream.collector.store.chain_key import find_chain, key_missing
from ldpstream.collector.store.sqlite.running import executing
from ldpstream.collector.store.statements import read_property
from ldpstream.collector.store.versions import SUCCEEDED, SUMMARISED

_COLUMNS = "t, at_ms, CAST(content AS BLOB), asked, received, missed"

_ENDS = (
    "SELECT id, CAST(terms AS BLOB), CAST(mechanism AS BLOB), checkpoint_t, checkpoint, last_t,"
    " head, seal"
)


def begin_chain(connection: sqlite3.Connection, master: bytes) -> None:
    """Chain what is in a store that never had a chain, within a transaction."""
    chain_tables.chain_all(
        executing(connection), master, lambda chain, name: accept(connection, chain, name)
    )


def read_chain(connection: sqlite3.Connection, master: bytes, where: object) -> Chain:
    """Return the chain of a store: the key comes with the tables, so without it one is damaged."""
    known = find_chain(partial(read_property, executing(connection)), master, where)
    if known is None:
        raise key_missing(where)
    return known


def read_ends(connection: sqlite3.Connection, stream: str) -> tuple[int, ChainEnds] | None:
    """Return the id of a stream and the sealed part of its row; None if there is no such stream."""
    summaries = ", summaries" if _version(connection) >= SUMMARISED else ""
    row = connection.execute(f"{_ENDS}{summaries} FROM stream WHERE name = ?", (stream,)).fetchone()  # nosec B608
    if row is None:
        return None
    key, terms, *others = row
    return key, ChainEnds(b"\n".join([terms, *successors(connection, key)]), *others)


def successors(connection: sqlite3.Connection, key: int) -> list[bytes]:
    """Return the texts of all terms of a stream but the first; an older file has no others."""
    if _version(connection) < SUCCEEDED:
        return []
    rows = connection.execute(
        "SELECT CAST(terms AS BLOB) FROM successor WHERE stream = ? ORDER BY version", (key,)
    )
    return [terms for (terms,) in rows]


def check(
    connection: sqlite3.Connection, chain: Chain, stream: str, progress: Progress
) -> ChainCheck:
    """Follow the chain of a stream, in the transaction of the connection."""
    run, version = executing(connection), _version(connection)
    find, linked = partial(read_ends, connection, stream), partial(_linked, connection)
    return chain_tables.check(run, chain, stream, find, linked, version, progress)


def accept(connection: sqlite3.Connection, chain: Chain, stream: str) -> None:
    """Chain the releases of a stream as they are, within a transaction."""
    find = partial(read_ends, connection, stream)
    page_after, write = partial(_page_after, connection), partial(_write_links, connection)
    chain_tables.accept(executing(connection), chain, stream, find, page_after, write)


def _page_after(connection: sqlite3.Connection, key: int, t: int) -> Sequence[ChainRow]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM release"  # nosec B608 # noqa: S608
        " WHERE stream = ? AND t > ? ORDER BY t LIMIT ?",
        (key, t, PAGE),
    )
    return [ChainRow(*row) for row in rows]


def _write_links(connection: sqlite3.Connection, key: int, links: list[tuple[bytes, int]]) -> None:
    connection.executemany(
        "UPDATE release SET link = ? WHERE t = ? AND stream = ?", [(*one, key) for one in links]
    )


def _linked(connection: sqlite3.Connection, key: int) -> Iterator[LinkedRow]:
    return connection.execute(
        f"SELECT {_COLUMNS}, link FROM release WHERE stream = ? ORDER BY t",  # nosec B608 # noqa: S608
        (key,),
    )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
