"""The output of the device commands: an object for JSON, and lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ldpstream.device.checking import Check
from ldpstream.device.status import Status

LAST_REPORTS = 10
BAR = 30
"""The width of the bar of a full window, in characters."""

Row = dict[str, Any]


def status_object(found: Status) -> Row:
    """Return everything in a status."""
    terms = found.terms
    return {
        "device": found.number,
        "collector": found.url,
        "stream": terms and terms.stream,
        "pin": terms and terms.pin,
        "epsilon_nano": terms and terms.epsilon_nano,
        "window": terms and terms.window,
        "t": found.t,
        "left_nano": found.left_nano,
        "full_in_seconds": None if found.full_in_ms is None else found.full_in_ms / 1000,
        "entries": [
            {
                "t": entry.t,
                "round": "(unknown past)" if entry.unknown else entry.round,
                "spent_nano": entry.nano,
                "at": _time(entry.at_ms),
            }
            for entry in found.entries
        ],
        "refusals": [
            {
                "code": one.code,
                "times": one.times,
                "last": _time(one.last_ms),
                "detail": one.detail,
            }
            for one in found.refusals
        ],
    }


def status_lines(found: Status) -> Iterator[str]:
    """Yield the status as lines: the budget, the last reports, and what was refused."""
    overview = status_object(found)
    entries, refusals = overview.pop("entries"), overview.pop("refusals")
    for name, value in overview.items():
        yield f"{name}: {_cell(value)}"
    for rows in (entries[-LAST_REPORTS:], refusals):
        if rows:
            yield ""
            yield from table(rows)


def check_object(check: Check) -> Row:
    """Return everything that a check of a ledger found."""
    book, fullest = check.book, check.fullest
    terms = book.terms
    return {
        "file": book.file,
        "stream": terms and terms.stream,
        "pin": terms and terms.pin,
        "epsilon_nano": terms and terms.epsilon_nano,
        "window": terms and terms.window,
        "reports": len(book.reports),
        "fullest": fullest
        and {"t": fullest.t, "from_own_ms": fullest.start_ms, "spent_nano": fullest.nano},
        "windows": [
            {
                "t": window.t,
                "round": window.first.round,
                "own_seconds": window.start_ms / 1000,
                "spent_nano": window.first.nano,
                "window_nano": window.nano,
            }
            for window in check.windows
        ],
        "faults": list(check.faults),
        "remarks": list(check.remarks),
    }


def check_lines(check: Check) -> Iterator[str]:
    """Yield the findings of a check as lines; the faults themselves go to standard error."""
    overview = check_object(check)
    for name in ("file", "stream", "pin", "epsilon_nano", "window", "reports"):
        yield f"{name}: {_cell(overview[name])}"
    most, windows = overview["epsilon_nano"], overview["windows"]
    for row in windows:
        share = row["window_nano"] / most
        row["of epsilon"] = f"{'#' * min(round(share * BAR), BAR):.<{BAR}} {share:.1%}"
    if windows:
        yield ""
        yield from table(windows)
        yield ""
    fullest = check.fullest
    if fullest is not None:
        yield f"fullest window: {fullest}, {fullest.nano} of {most} nano-epsilon"
    for remark in check.remarks:
        yield f"note: {remark}"
    yield "nothing wrong" if not check.faults else f"{len(check.faults)} faults"


def table(rows: Sequence[Row]) -> Iterator[str]:
    r"""Yield a header and a line for each row, with text aligned left and numbers aligned right.

    >>> print(*table([{"t": 9, "round": "9-a"}, {"t": 10, "round": "10-b"}]), sep="\n")
     t  round
     9  9-a
    10  10-b
    """
    names = list(rows[0])
    texts = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    words = [isinstance(rows[0][name], str) for name in names]
    for line in texts:
        cells = (
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(line, widths, words, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _cell(value: object) -> str:
    text = "-" if value is None else str(value)
    return "".join(sign if sign.isprintable() else "?" for sign in text)  # no terminal escapes


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
