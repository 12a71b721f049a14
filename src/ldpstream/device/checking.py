"""The audit of a device's ledger and its stored reports, from the file alone. It only reads."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ldpstream.device.migrations import MIGRATIONS
from ldpstream.device.schema import FORMAT
from ldpstream.device.store import COLUMNS, OLD, Entry
from ldpstream.durations import spelled
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Promise
from ldpstream.protocol.terms import Terms, TermsRefused
from ldpstream.sqlite_files import reading


@dataclass(frozen=True)
class Window:
    """A span of w intervals of own time from a debit on, and the epsilon spent in it."""

    first: Entry
    span_ms: int
    nano: int

    @property
    def t(self) -> int:
        return self.first.t

    @property
    def start_ms(self) -> int:
        return self.first.own_ms

    def __contains__(self, entry: Entry) -> bool:
        return self.start_ms <= entry.own_ms < self.start_ms + self.span_ms

    def __str__(self) -> str:
        return f"the {spelled(self.span_ms)} of own time from t={self.t} on"


@dataclass(frozen=True)
class Book:
    """The content of a device's file."""

    file: str
    terms: Terms | None
    terms_text: str
    entries: tuple[Entry, ...]
    ended: tuple[Promise, ...] = ()
    """The promises of streams that were left, which may still bind."""

    @property
    def reports(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.report is not None)

    @property
    def debits(self) -> tuple[Entry, ...]:
        """What was spent: reports, and those of streams that were left, whose bytes are gone."""
        return tuple(entry for entry in self.entries if not entry.unknown)


@dataclass(frozen=True)
class Check:
    """The result of a check: faults break the promise, remarks are for information."""

    book: Book
    windows: tuple[Window, ...]
    """One window for each report, which starts with that report."""
    faults: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def fullest(self) -> Window | None:
        return max(self.windows, key=lambda window: window.nano, default=None)


def check_ledger(path: Path) -> Check:
    """Read a device's file and check everything in it."""
    book = read_book(path)
    if book.terms is None:
        faults = ("there are reports, but no terms that they were made under",)
        return Check(book, (), faults if book.reports else (), ("the device is not enrolled",))
    windows = tuple(_windows(book, book.terms))
    return Check(
        book,
        windows,
        tuple(_faults(book, book.terms, windows)),
        tuple(_remarks(book, book.terms)),
    )


def read_book(path: Path) -> Book:
    """Return the content of the file; refuse one that is damaged or not a device's."""
    if not path.is_file():
        raise _no_ledger(path, "no such file")
    try:
        with reading(path) as connection:
            ((found,),) = connection.execute("PRAGMA user_version")
            ((whole,),) = connection.execute("PRAGMA integrity_check(1)")
            if whole != "ok":
                raise _no_ledger(path, f"it is damaged ({whole})")
            if found in MIGRATIONS:
                raise _no_ledger(path, OLD)
            if found != FORMAT:
                raise _no_ledger(path, f"it is not a device's file of format {FORMAT}")
            enrolled = connection.execute("SELECT terms FROM enrolment").fetchone()
            rows = _rows(connection)
            ended = connection.execute("SELECT epsilon_nano, span_ms, until_ms FROM ended")
            promises = tuple(Promise(*row) for row in ended)
    except sqlite3.Error as error:
        raise _no_ledger(path, f"it cannot be read as a device's file ({error})") from None
    (text,) = enrolled or ("",)
    entries = (_entry(path, row) for row in rows)
    ordered = tuple(sorted(entries, key=lambda entry: (entry.own_ms, entry.t, entry.round)))
    return Book(path.name, _terms(path, text) if enrolled else None, text, ordered, promises)


def _rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return all entries, those of the table `history` too, if a ledger was made to keep them."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    kept = ["ledger", "history"] if ("history",) in tables else ["ledger"]
    return [
        row
        for table in kept
        for row in connection.execute(f"SELECT {COLUMNS} FROM {table}")  # nosec B608 # noqa: S608
    ]


def _entry(path: Path, row: tuple[Any, ...]) -> Entry:
    kinds = (int, str, int, bytes | None, int, int)
    if not all(map(isinstance, row, kinds)):
        raise _no_ledger(path, f"its entry {row[:2]} is not a valid entry of a ledger")
    return Entry(*row)


def _terms(path: Path, text: str) -> Terms:
    try:
        return Terms.read(json.loads(text))
    except (ValueError, TypeError, RecursionError, TermsRefused) as error:
        raise _no_ledger(path, f"its terms cannot be read ({error})") from None


def _no_ledger(path: Path, what: str) -> Mistake:
    return Mistake(
        Problem.DATA_FILE, file=path, what=what, fix="give the complete file of one device"
    )


def _windows(book: Book, terms: Terms) -> Iterator[Window]:
    """Yield the window that starts at each report; the fullest window is among them.

    So are those that start with a debit of another stream and have a report of this one in them.
    """
    for first in book.debits:
        empty = Window(first, terms.promise.span, 0)
        if any(entry in empty for entry in book.reports):
            yield replace(empty, nano=sum(entry.nano for entry in book.debits if entry in empty))


def _faults(book: Book, terms: Terms, windows: tuple[Window, ...]) -> Iterator[str]:
    if terms.canonical != book.terms_text:
        yield "the terms are not written as they were pinned: they have another hash"
    for window in windows:
        if window.nano > terms.epsilon_nano:
            yield (
                f"{window}: {window.nano} nano-epsilon were spent, and"
                f" {terms.epsilon_nano} are allowed in any {spelled(terms.promise.span)}"
            )
    yield from _broken_ends(book)
    for (t, name), times in Counter((entry.t, entry.round) for entry in book.reports).items():
        if times > 1:
            yield f"t={t}: round {name} has {times} entries, and one is allowed"
    for entry in book.entries:
        yield from _faults_of(entry, terms)
    yield from _broken_silences(book, terms)


def _broken_ends(book: Book) -> Iterator[str]:
    """Yield the reports that a promise of a stream that was left did not allow."""
    for promise in book.ended:
        for report in (entry for entry in book.reports if promise.binds(entry.own_ms)):
            begin_ms = report.own_ms - promise.span
            spent = sum(one.nano for one in book.debits if begin_ms < one.own_ms <= report.own_ms)
            if spent > promise.epsilon_nano:
                yield (
                    f"t={report.t}: {spent} nano-epsilon in {spelled(promise.span)}, and the stream"
                    f" that was left allowed {promise.epsilon_nano}"
                )


def _faults_of(entry: Entry, terms: Terms) -> Iterator[str]:
    if entry.unknown and entry.report is not None:
        yield f"t={entry.t}: round {entry.round or '(none)'}: a round or its report is missing"
    if entry.nano < 1:
        yield f"t={entry.t}: the report of round {entry.round} left without a debit"
    elif entry.report is not None and (fault := _malformed(entry, entry.report, terms)):
        yield f"t={entry.t}: round {entry.round}: {fault}"


def _malformed(entry: Entry, report: bytes, terms: Terms) -> str:
    """Say why a report cannot have been drawn with the epsilon debited for it; "" if it can."""
    try:
        terms.randomiser(Epsilon(entry.nano)).decode(report)
    except LdpStreamError as fault:
        return str(fault)
    return ""


def _broken_silences(book: Book, terms: Terms) -> Iterator[str]:
    """Yield the reports that were made while an unknown past required silence."""
    for unknown in (entry for entry in book.entries if entry.unknown):
        silence = Window(unknown, terms.promise.span, unknown.nano)
        for entry in book.reports:
            if entry in silence and entry.own_ms > unknown.own_ms:
                yield f"t={entry.t}: round {entry.round} was answered after an unknown past"


def _remarks(book: Book, terms: Terms) -> Iterator[str]:
    for entry in book.entries:
        if entry.unknown:
            span = spelled(terms.promise.span)
            yield f"the past was unknown at own time {entry.own_ms} ms: silent for {span} from then"
    if left := len(book.debits) - len(book.reports):
        yield f"{left} reports of a stream that was left: their debits count, their bytes are gone"
    for earlier, later in pairwise(book.reports):
        if later.at_ms < earlier.at_ms:
            yield (
                f"t={later.t} was entered before t={earlier.t} by the wall clock, which can be set"
                " back; the device itself goes by another clock"
            )
