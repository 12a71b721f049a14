"""The output of the device commands: an object for JSON, and lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ldpstream.device.checking import FileCheck, StreamCheck
from ldpstream.device.memory import LEFT, LedgerEntry
from ldpstream.device.status import LimitStatus, Status, StreamStatus
from ldpstream.durations import spelled
from ldpstream.protocol.promise import lasting, plain

LAST_REPORTS = 10
BAR = 30
"""The width of the bar of a full window, in characters."""

Row = dict[str, Any]


def status_object(found: Status) -> Row:
    """Return everything in a status."""
    names = {one.id: one.terms.stream for one in found.streams}
    return {
        "streams": [_stream_object(one) for one in found.streams],
        "limit": found.limit and _limit_object(found.limit),
        "earlier_limits": [
            _limit_object(one) | {"until": _time(one.until_ms or 0)} for one in found.earlier_limits
        ],
        "entries": [
            {
                "stream": names.get(entry.first_id, "-"),
                "t": entry.t or None,
                "round": "(unknown past)" if entry.unknown else _round(entry),
                "spent_nano": entry.nano,
                "at": _time(entry.at_ms) if entry.at_ms else None,
            }
            for entry in found.entries
        ],
        "refusals": [
            {
                "stream": names.get(one.enrolment, "-"),
                "code": one.code,
                "times": one.times,
                "last": _time(one.last_ms),
                "detail": one.detail,
            }
            for one in found.refusals
        ],
    }


def _limit_object(found: LimitStatus) -> Row:
    return {
        "epsilon_nano": found.epsilon_nano,
        "span": spelled(found.span_ms),
        "used_nano": found.used_nano,
        "silences": list(found.silences),
    }


def _stream_object(found: StreamStatus) -> Row:
    terms = found.terms
    return {
        "stream": terms.stream,
        "collector": found.url,
        "device": found.number,
        "pin": terms.pin,
        "version": terms.version,
        "level": terms.level or "standard",
        "epsilon_nano": terms.epsilon_nano,
        "window": terms.window,
        "successor": found.successor and found.successor.pin,
        "t": found.t,
        "left_nano": found.left_nano,
        "full_in_seconds": None if found.full_in_ms is None else found.full_in_ms / 1000,
        "used_nano": found.used_nano,
        "reserve_nano": found.reserve_nano,
    }


def status_lines(found: Status) -> Iterator[str]:
    """Yield the status as lines: the limit, each stream, the last reports, and what was refused."""
    overview, limit = status_object(found), found.limit
    if limit is not None:
        yield f"limit: {_size(limit)}, {_epsilon(limit.used_nano)} used"
    yield from limit_remarks(found)
    if not overview["streams"]:
        yield "not enrolled in any stream"
    for place, stream in enumerate(overview["streams"]):
        if place or limit is not None:
            yield ""
        for name, value in _in_epsilon(stream).items():
            yield f"{name}: {_cell(value)}"
    for rows in (overview["entries"][-LAST_REPORTS:], overview["refusals"]):
        if rows:
            yield ""
            yield from table([_in_epsilon(row) for row in rows])


def limit_remarks(found: Status) -> Iterator[str]:
    """Yield a sentence for each limit that binds beside the one in force, or silences a stream."""
    limit = found.limit
    if limit is not None and limit.silences:
        yield (
            f"a report costs more than the limit in {', '.join(limit.silences)}: "
            "the device is silent there until the limit is raised"
        )
    for one in found.earlier_limits:
        told = f"an earlier limit of {_size(one)} binds until {_time(one.until_ms or 0)}"
        silent = f": until then the device is silent in {', '.join(one.silences)}"
        yield told + (silent if one.silences else "")


def _in_epsilon(row: Row) -> Row:
    """Return a row for people: epsilon in place of nano-epsilon."""
    return {
        name.removesuffix("_nano"): _epsilon(value)
        if name.endswith("_nano") and value is not None
        else value
        for name, value in row.items()
    }


def _size(limit: LimitStatus) -> str:
    return f"epsilon {_epsilon(limit.epsilon_nano)} in any {lasting(limit.span_ms)}"


def _epsilon(nano: int) -> str:
    return plain(nano / 10**9)


def check_object(check: FileCheck) -> Row:
    """Return everything that a check of a ledger found."""
    limit, fullest = check.limit, check.fullest_of_limit
    return {
        "file": check.file,
        "streams": [_book_object(one) for one in check.streams],
        "limit": limit
        and {
            "epsilon_nano": limit.epsilon_nano,
            "span": spelled(limit.span),
            "fullest_nano": 0 if fullest is None else fullest.nano,
        },
        "faults": list(check.faults),
        "remarks": list(check.remarks),
    }


def _book_object(found: StreamCheck) -> Row:
    terms, fullest = found.record.newest, found.fullest
    return {
        "stream": terms.stream,
        "pin": terms.pin,
        "level": terms.level or "standard",
        "epsilon_nano": terms.epsilon_nano,
        "window": terms.window,
        "reports": len(found.record.reports),
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
            for window in found.windows
        ],
    }


def check_lines(check: FileCheck) -> Iterator[str]:
    """Yield the findings of a check as lines; the faults themselves go to standard error."""
    yield f"file: {check.file}"
    for one in check.streams:
        yield from _book_lines(one)
    limit, fullest = check.limit, check.fullest_of_limit
    if limit is not None:
        spent = 0 if fullest is None else fullest.nano
        yield (
            f"fullest {spelled(limit.span)} over all streams: {spent} of {limit.epsilon_nano}"
            " nano-epsilon"
        )
    for remark in check.remarks:
        yield f"note: {remark}"
    yield "nothing wrong" if not check.faults else f"{len(check.faults)} faults"


def _book_lines(found: StreamCheck) -> Iterator[str]:
    overview = _book_object(found)
    for name in ("stream", "pin", "level", "epsilon_nano", "window", "reports"):
        yield f"{name}: {_cell(overview[name])}"
    most, windows = overview["epsilon_nano"], overview["windows"]
    for row in windows:
        share = row["window_nano"] / most
        row["of epsilon"] = f"{'#' * min(round(share * BAR), BAR):.<{BAR}} {share:.1%}"
    if windows:
        yield ""
        yield from table(windows)
        yield ""
    if found.fullest is not None:
        yield f"fullest window: {found.fullest}, {found.fullest.nano} of {most} nano-epsilon"


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


def _round(entry: LedgerEntry) -> str:
    """Return the round that a debit was for; of a stream that was left nothing else is kept."""
    return "(spent before leaving)" if entry.round == LEFT else entry.round


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
