"""The chain of releases in the tables of either store: what the two do with the same statements."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ldpstream.collector.store import summary_table
from ldpstream.collector.store.chain import (
    EVERY,
    Chain,
    ChainCheck,
    ChainEnds,
    ChainRow,
    LinkedRow,
    Progress,
)
from ldpstream.collector.store.chain_key import STREAMS, draw_chain
from ldpstream.collector.store.content import stored_text
from ldpstream.collector.store.contract import ReleaseSummary, StoredRelease
from ldpstream.collector.store.round_table import FORGET_ASKED
from ldpstream.collector.store.statements import (
    Execute,
    id_of,
    next_serial,
    read_property,
    write_property,
)
from ldpstream.collector.store.versions import SUMMARISED

FORGET_ROUNDS = "DELETE FROM round WHERE stream = %s AND t <= %s AND state = 'tallied'"

_log = logging.getLogger(__name__)


def names(run: Execute) -> list[str]:
    return [name for (name,) in run("SELECT name FROM stream").fetchall()]


def chain_all(run: Execute, master: bytes, accept: Callable[[Chain, str], None]) -> Chain:
    """Generate the key of a store that never had a chain, and accept all that is in it."""

    def put(name: str, value: str) -> None:
        run("INSERT INTO property VALUES (%s, %s)", name, value)

    drawn = draw_chain(lambda name: read_property(run, name), put, master)
    for name in names(run):
        _log.warning("the releases of stream %s are chained as they are now", name)
        accept(drawn, name)
    accept(drawn, EVERY)
    return drawn


def accept_names(run: Execute, chain: Chain) -> None:
    """Authenticate the list of streams as it is."""
    write_property(run, STREAMS, chain.seal_names(names(run)))


def accept(
    run: Execute,
    chain: Chain,
    stream: str,
    find: Callable[[], tuple[int, ChainEnds] | None],
    page_after: Callable[[int, int], Sequence[ChainRow]],
    write: Callable[[int, list[tuple[bytes, int]]], None],
) -> None:
    """Chain the releases of a stream as they are, or of EVERY the list of names.

    `find` reads the stream's id and ends, `page_after` the releases of an id after a timestamp, and
    `write` stores their links; see `Chain.accepted`.
    """
    if stream == EVERY:
        accept_names(run, chain)
        return
    known = find()
    assert known is not None
    key, ends = known
    ends = replace(ends, summaries=summary_table.accept(run, chain, stream, key))
    accepted = chain.accepted(stream, ends, partial(page_after, key), partial(write, key))
    write_ends(run, key, accepted)


def create_stream(run: Execute, chain: Chain, name: str, terms: dict[str, Any]) -> None:
    """Add a stream to a list of streams that is as it was left."""
    check_names(run, chain).refuse_damage()
    text = stored_text(terms)
    run("INSERT INTO stream (name, terms) VALUES (%s, %s)", name, text)
    write_ends(run, id_of(run, name), chain.begun(name, text.encode()))
    accept_names(run, chain)


def succeed(
    run: Execute,
    chain: Chain,
    stream: str,
    known: tuple[int, ChainEnds] | None,
    terms: dict[str, Any],
) -> int:
    """Add terms that follow the latest ones of a stream; return its new serial."""
    assert known is not None
    key, ends = known
    text = stored_text(terms)
    run("INSERT INTO successor VALUES (%s, %s, %s)", key, terms["succeeds"]["version"], text)
    write_ends(run, key, chain.succeeded(stream, ends, text.encode()))
    return next_serial(run, key)


def release(
    run: Execute,
    chain: Chain,
    stream: str,
    known: tuple[int, ChainEnds] | None,
    releases: Sequence[StoredRelease],
    mechanism: dict[str, Any],
    forget_t: int,
    insert: Callable[[list[tuple[Any, ...]]], object],
) -> None:
    """Add releases and the state after them; `insert` adds rows to the table of releases."""
    assert known is not None
    key, before = known
    rows = [one.row for one in releases]
    links, after = chain.extended(stream, before, rows, stored_text(mechanism).encode())
    insert(
        [
            (key, t, at_ms, content.decode(), asked, received, missed, link)
            for (t, at_ms, content, asked, received, missed), link in zip(rows, links, strict=True)
        ]
    )
    write_ends(run, key, after)
    run(FORGET_ASKED, key, forget_t)


def write_ends(run: Execute, key: int, ends: ChainEnds) -> None:
    """Put the ends of a chain, and the state after the last release, into the stream's row."""
    run(
        "UPDATE stream SET mechanism = %s, checkpoint_t = %s, checkpoint = %s, last_t = %s,"
        " head = %s, seal = %s, summaries = %s WHERE id = %s",
        None if ends.mechanism is None else ends.mechanism.decode(),
        ends.checkpoint_t,
        ends.checkpoint,
        ends.last_t,
        ends.head,
        ends.seal,
        ends.summaries,
        key,
    )


def check_names(run: Execute, chain: Chain) -> ChainCheck:
    """Compare the streams of a store with the authenticated list of their names."""
    return chain.check_names(names(run), read_property(run, STREAMS))


def check(
    run: Execute,
    chain: Chain,
    stream: str,
    find: Callable[[], tuple[int, ChainEnds] | None],
    linked: Callable[[int], Iterable[LinkedRow]],
    version: int,
    progress: Progress,
) -> ChainCheck:
    """Follow the chain of a stream, or check the list of names of EVERY.

    `find` reads the stream's id and ends, `linked` the releases of an id, in order of t.
    """
    if stream == EVERY:
        return check_names(run, chain)
    known = find()
    if known is None:
        return ChainCheck(stream)
    key, ends = known
    found = chain.check(stream, ends, linked(key), progress)
    if version < SUMMARISED:
        return found
    damage = found.damage or summary_table.find_damage(run, chain, stream, key, ends)
    return replace(found, damage=damage, summaries=summary_table.count(run, key))


def prune(
    run: Execute,
    chain: Chain,
    stream: str,
    known: tuple[int, ChainEnds] | None,
    before_t: int,
    added: Sequence[ReleaseSummary],
    gone: Sequence[int],
) -> None:
    """Remove old releases and their rounds, within a transaction; the last release stays."""
    assert known is not None
    key, ends = known
    last = run(
        "SELECT t, link FROM release WHERE stream = %s AND t < %s ORDER BY t DESC LIMIT 1",
        key,
        min(before_t, ends.last_t),
    ).fetchone()
    if last is not None:
        ends = chain.pruned(stream, ends, *last)
    if added or gone:
        summaries = summary_table.change(run, chain, stream, key, added, gone)
        ends = chain.summarised(stream, ends, summaries)
    write_ends(run, key, ends)
    if last is not None:
        run("DELETE FROM release WHERE stream = %s AND t <= %s", key, last[0])
        run(FORGET_ROUNDS, key, last[0])
