"""Rounds as rows: the same columns in both stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpstream.collector.store.contract import Round, RoundState
from ldpstream.oracles.collector_half import Support

NEW_ROUND_COLUMNS = (
    "t, name, purpose, epsilon_nano, users, rate_share, rate_whole, report_bytes, opened_ms,"
    " deadline_ms, roster_size, asked"
)
ROUND_COLUMNS = f"{NEW_ROUND_COLUMNS}, state, counts, reports, closed_ms"


def round_of(row: tuple[Any, ...]) -> Round:
    """Return the round in a row of `ROUND_COLUMNS`."""
    t, name, purpose, epsilon_nano, users, share, whole, size, *announced = row[:-4]
    state, counts, reports, closed_ms = row[-4:]
    opened_ms, deadline_ms, roster_size, asked = announced
    support = None if counts is None else Support(np.frombuffer(counts, "<i8"), reports)
    return Round(
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
