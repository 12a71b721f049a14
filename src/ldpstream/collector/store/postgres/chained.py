"""The chain of releases in a database: its key, its ends, its links.

All of it runs within a transaction of the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import psycopg

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
from ldpstream.collector.store.postgres.migrations import take_turns, version_of
from ldpstream.collector.store.postgres.running import executing
from ldpstream.collector.store.statements import read_property
from ldpstream.collector.store.versions import SUCCEEDED, SUMMARISED

_COLUMNS = "t, at_ms, content::text, asked, received, missed"

_ENDS = "SELECT id, terms::text, mechanism::text, checkpoint_t, checkpoint, last_t, head, seal"
_CHAINED = (
    "SELECT 1 FROM stream WHERE seal <> '' UNION ALL SELECT 1 FROM release WHERE link <> '' LIMIT 1"
)


def begin_chain(connection: psycopg.Connection, master: bytes, where: object) -> Chain:
    """Return the chain of a store; at its first use, chain what is there as it is."""
    take_turns(connection)
    known = read_chain(connection, master, where)
    if known is not None:
        return known
    return chain_tables.chain_all(
        executing(connection), master, lambda chain, name: accept(connection, chain, name)
    )


def read_chain(connection: psycopg.Connection, master: bytes, where: object) -> Chain | None:
    """Return the chain of a store; None if it was not used with one yet.

    An engine that counts reports makes the tables, too, and has no secret to make a key with.
    """
    known = find_chain(partial(read_property, executing(connection)), master, where)
    if known is None and connection.execute(_CHAINED).fetchone() is not None:
        raise key_missing(where)
    return known


def read_ends(
    connection: psycopg.Connection, stream: str, *, change: bool = False
) -> tuple[int, ChainEnds] | None:
    """Return the id of a stream and the sealed part of its row; None if there is no such stream.

    With `change` the row stays locked until the transaction ends.
    """
    summaries = ", summaries" if version_of(connection) >= SUMMARISED else ""
    lock = " FOR NO KEY UPDATE" if change else ""
    statement = f"{_ENDS}{summaries} FROM stream WHERE name = %s{lock}"  # nosec B608
    row = connection.execute(statement.encode(), (stream,)).fetchone()
    if row is None:
        return None
    key, terms, mechanism, *others = row
    texts = "\n".join([terms, *successors(connection, key)])
    return key, ChainEnds(
        texts.encode(), None if mechanism is None else mechanism.encode(), *others
    )


def successors(connection: psycopg.Connection, key: int) -> list[str]:
    """Return the texts of all terms of a stream but the first; an older database has no others."""
    if version_of(connection) < SUCCEEDED:
        return []
    rows = connection.execute(
        "SELECT terms::text FROM successor WHERE stream = %s ORDER BY version", (key,)
    )
    return [terms for (terms,) in rows.fetchall()]


def check(
    connection: psycopg.Connection, chain: Chain, stream: str, progress: Progress
) -> ChainCheck:
    """Follow the chain of a stream, in the snapshot of a transaction of repeatable reads."""
    run, version = executing(connection), version_of(connection)
    find, linked = partial(read_ends, connection, stream), partial(_linked, connection)
    return chain_tables.check(run, chain, stream, find, linked, version, progress)


def accept(connection: psycopg.Connection, chain: Chain, stream: str) -> None:
    """Chain the releases of a stream as they are."""
    find = partial(read_ends, connection, stream, change=True)
    page_after, write = partial(_page_after, connection), partial(_write_links, connection)
    chain_tables.accept(executing(connection), chain, stream, find, page_after, write)


def _page_after(connection: psycopg.Connection, key: int, t: int) -> Sequence[ChainRow]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM release"  # nosec B608 # noqa: S608
        " WHERE stream = %s AND t > %s ORDER BY t LIMIT %s",
        (key, t, PAGE),
    )
    return [
        ChainRow(t, at_ms, text.encode(), *others) for t, at_ms, text, *others in rows.fetchall()
    ]


def _write_links(connection: psycopg.Connection, key: int, links: list[tuple[bytes, int]]) -> None:
    connection.execute(
        "UPDATE release SET link = new.link FROM unnest(%s::bytea[], %s::bigint[])"
        " AS new (link, t) WHERE release.stream = %s AND release.t = new.t",
        ([link for link, _ in links], [t for _, t in links], key),
    )


def _linked(connection: psycopg.Connection, key: int) -> Iterator[LinkedRow]:
    """Yield the releases of a stream, some thousands at a time."""
    with connection.cursor("releases") as cursor:
        cursor.itersize = PAGE
        cursor.execute(
            f"SELECT {_COLUMNS}, link FROM release WHERE stream = %s ORDER BY t",  # nosec B608 # noqa: S608
            (key,),
        )
        for t, at_ms, text, asked, received, missed, link in cursor:
            yield t, at_ms, text.encode(), asked, received, missed, link
