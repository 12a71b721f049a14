"""The length of a timestamp, as people write it and as a collector's file has it."""

from __future__ import annotations

import re

from ldpstream.errors import Mistake, Problem

SPELLINGS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""What a collector's file understands."""
_ALSO = {"sec": "s", "min": "m", "day": "d"}


def milliseconds(text: str) -> int:
    """Read a length.

    >>> milliseconds("1min"), milliseconds("500 ms")
    (60000, 500)
    """
    match = re.fullmatch(r"([1-9]\d{0,8}) ?([a-z]+)", text.strip())
    unit = match and SPELLINGS.get(_ALSO.get(match[2], match[2]))
    if match is None or unit is None:
        expected = "a length like 500ms, 30s, 1min, 1h or 1d"
        raise Mistake(Problem.OPTION, option="--interval", given=repr(text), expected=expected)
    return int(match[1]) * unit


def spelled(interval_ms: int) -> str:
    """Write it in the largest unit that it is a whole number of.

    >>> spelled(60_000), spelled(90_000), spelled(1_500)
    ('1m', '90s', '1500ms')
    """
    unit = max((u for u in SPELLINGS if interval_ms % SPELLINGS[u] == 0), key=SPELLINGS.__getitem__)
    return f"{interval_ms // SPELLINGS[unit]}{unit}"
