"""The rounds of a stream, in either store."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpstream.collector.store.contract import NewRound, RoundState, StoredRound, TalliedRounds
from ldpstream.collector.store.statements import Execute, next_serial
from ldpstream.oracles.collector_half import Support

_NEW_COLUMNS = (
    "t, name, purpose, epsilon_nano, users, rate_share, rate_whole, report_bytes, opened_ms,"
    " deadline_ms, roster_size, asked"
)
_COLUMNS = f"{_NEW_COLUMNS}, state, counts, reports, closed_ms"
_OF_TIMES = (
    "FROM round WHERE stream = (SELECT id FROM stream WHERE name = %s) AND t > %s AND t <= %s"
)
FORGET_ASKED = "UPDATE round SET asked = NULL WHERE stream = %s AND t <= %s AND asked IS NOT NULL"


def select(run: Execute, stream: str, after_t: int, until_t: int) -> list[StoredRound]:
    """Return the rounds of timestamps after `after_t`, up to `until_t`, in the order of opening."""
    rows = run(f"SELECT {_COLUMNS} {_OF_TIMES} ORDER BY id", stream, after_t, until_t)  # nosec B608
    return [_round_of(row) for row in rows.fetchall()]


def select_tallied(run: Execute, stream: str, after_t: int, until_t: int) -> TalliedRounds:
    """Return the counts of the rounds that are tallied, of the same timestamps."""
    rows = run(
        f"SELECT {TalliedRounds.COLUMNS} {_OF_TIMES}"  # nosec B608
        " AND counts IS NOT NULL ORDER BY id",
        stream,
        after_t,
        until_t,
    )
    return TalliedRounds.of(rows.fetchall())


def insert(run: Execute, key: int, new: NewRound) -> int:
    """Add a round that takes reports; return its id."""
    given = vars(new) | {"rate_share": new.rate[0], "rate_whole": new.rate[1]}
    values = [given[name] for name in _NEW_COLUMNS.split(", ")]
    places = ", ".join(["%s"] * (1 + len(values)))
    row = run(
        f"INSERT INTO round (stream, {_NEW_COLUMNS}) VALUES ({places}) RETURNING id",  # nosec B608 # noqa: S608
        key,
        *values,
    ).fetchone()
    return int(row[0])


def close(run: Execute, key: int, name: str, at_ms: int) -> int:
    """Let a round take no more reports; return the stream's serial after it. Idempotent."""
    done = run(
        "UPDATE round SET state = 'closed', closed_ms = %s"
        " WHERE stream = %s AND name = %s AND state = 'open'",
        at_ms,
        key,
        name,
    )
    return next_serial(run, key, step=done.rowcount)


def tally(run: Execute, key: int, name: str, support: Support) -> None:
    """Store the counts of a closed round."""
    run(
        "UPDATE round SET state = 'tallied', counts = %s, reports = %s"
        " WHERE stream = %s AND name = %s",
        support.counts.astype("<i8").tobytes(),
        support.reports,
        key,
        name,
    )


def _round_of(row: tuple[Any, ...]) -> StoredRound:
    t, name, purpose, epsilon_nano, users, share, whole, size, *announced = row[:-4]
    state, counts, reports, closed_ms = row[-4:]
    opened_ms, deadline_ms, roster_size, asked = announced
    support = None if counts is None else Support(np.frombuffer(counts, "<i8"), reports)
    return StoredRound(
        t,
        name,
        purpose,
        epsilon_nano,
        users,
        (share, whole),
        size,
        opened_ms,
        deadline_ms,
        roster_size,
        asked,
        RoundState(state),
        support,
        closed_ms,
    )
