"""The summaries of a stream's pruned releases, in either store.

Each row has a MAC of its own, and the stream's sealed row one over all of them in order. So nobody
who lacks the key of the chain can change, remove or add one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ldpstream.collector.store.chain import Chain, ChainEnds, Damage, SummaryRow
from ldpstream.collector.store.content import stored_text
from ldpstream.collector.store.contract import ReleaseSummary
from ldpstream.collector.store.statements import Execute

_COLUMNS = "first_t, last_t, start_ms, period_ms, CAST(content AS text)"


def select(run: Execute, stream: str, since_ms: int, limit: int) -> list[ReleaseSummary]:
    """At most `limit` summaries that begin at or after a time, in order."""
    rows = run(
        f"SELECT {_COLUMNS} FROM summary"  # nosec B608 # noqa: S608
        " WHERE stream = (SELECT id FROM stream WHERE name = %s) AND start_ms >= %s"
        " ORDER BY first_t LIMIT %s",
        stream,
        since_ms,
        limit,
    ).fetchall()
    return [
        ReleaseSummary(first_t, last_t, start_ms, period_ms, json.loads(content))
        for first_t, last_t, start_ms, period_ms, content in rows
    ]


def change(
    run: Execute,
    chain: Chain,
    name: str,
    key: int,
    added: Sequence[ReleaseSummary],
    gone: Sequence[int],
) -> bytes:
    """Remove summaries, by their first t, and add others; return what authenticates them all."""
    for first_t in gone:
        run("DELETE FROM summary WHERE stream = %s AND first_t = %s", key, first_t)
    for one in added:
        row = (one.first_t, one.last_t, one.start_ms, one.period_ms, stored_text(one.content))
        link = chain.summary_link(name, row)
        run("INSERT INTO summary VALUES (%s, %s, %s, %s, %s, %s, %s)", key, *row, link)
    return chain.summaries_link(name, _links(run, key))


def accept(run: Execute, chain: Chain, name: str, key: int) -> bytes:
    """Authenticate all summaries as they are."""
    for row, _ in _rows(run, key):
        link = chain.summary_link(name, row)
        run("UPDATE summary SET link = %s WHERE stream = %s AND first_t = %s", link, key, row[0])
    return chain.summaries_link(name, _links(run, key))


def find_damage(run: Execute, chain: Chain, name: str, key: int, ends: ChainEnds) -> Damage | None:
    """Return the first summary that is not as it was written."""
    links = []
    for row, link in _rows(run, key):
        if link != chain.summary_link(name, row):
            return Damage(row[0], "the summary that begins here was changed")
        links.append(link)
    if chain.summaries_link(name, links) != ends.summaries:
        return Damage(ends.checkpoint_t, "a summary of what was pruned up to here is missing")
    return None


def count(run: Execute, key: int) -> int:
    """Return how many summaries a stream has."""
    return int(run("SELECT count(*) FROM summary WHERE stream = %s", key).fetchone()[0])


def _rows(run: Execute, key: int) -> list[tuple[SummaryRow, bytes]]:
    rows = run(
        f"SELECT {_COLUMNS}, link FROM summary WHERE stream = %s ORDER BY first_t",  # nosec B608 # noqa: S608
        key,
    ).fetchall()
    return [(tuple(row), link) for *row, link in rows]


def _links(run: Execute, key: int) -> list[bytes]:
    rows = run("SELECT link FROM summary WHERE stream = %s ORDER BY first_t", key).fetchall()
    return [link for (link,) in rows]
