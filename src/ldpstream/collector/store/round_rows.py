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
_NAMES = ROUND_COLUMNS.split(", ")


def round_of(row: tuple[Any, ...]) -> Round:
    """Return the round in a row of `ROUND_COLUMNS`."""
    known = dict(zip(_NAMES, row, strict=True))
    counts, reports = known.pop("counts"), known.pop("reports")
    return Round(
        rate=(known.pop("rate_share"), known.pop("rate_whole")),
        state=RoundState(known.pop("state")),
        support=None if counts is None else Support(np.frombuffer(counts, "<i8"), reports),
        **known,
    )
