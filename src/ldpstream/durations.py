"""Durations as people write them, in files and on the command line alike."""

from __future__ import annotations

import re

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
UNITS_MS = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": HOUR_MS,
    "d": DAY_MS,
    "w": 7 * DAY_MS,
}
_ALSO = {"sec": "s", "min": "m", "hour": "h", "day": "d", "week": "w"}
_LENGTH = re.compile(r"([0-9]{1,15}) ?([a-z]+)")

EXAMPLES = "500ms, 30s, 1min, 1h or 1d"


def milliseconds(text: str) -> int | None:
    """Parse a duration such as "10s" into milliseconds; return None if it is not one.

    >>> milliseconds("1min"), milliseconds("500 ms"), milliseconds("soon")
    (60000, 500, None)
    """
    match = _LENGTH.fullmatch(text.strip())
    unit = match and UNITS_MS.get(_ALSO.get(match[2], match[2]))
    return int(match[1]) * unit if match and unit else None


def spelled(length_ms: int) -> str:
    """Write a duration as a whole number of the largest possible unit, up to days.

    >>> spelled(60_000), spelled(90_000), spelled(1_500)
    ('1m', '90s', '1500ms')
    """
    units = {unit: ms for unit, ms in UNITS_MS.items() if unit != "w" and length_ms % ms == 0}
    unit = max(units, key=units.__getitem__)
    return f"{length_ms // units[unit]}{unit}"
