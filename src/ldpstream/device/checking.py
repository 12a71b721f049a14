"""The audit of a device's ledger and its stored reports, from the file alone. It only reads."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ldpstream.device.memory import COLUMNS, LIMIT, LedgerEntry, Scope, StoredPromise, TermsInForce
from ldpstream.device.migrations import MIGRATIONS
from ldpstream.device.schema import FORMAT
from ldpstream.device.store import OLD
from ldpstream.durations import spelled
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Terms, TermsRefused
from ldpstream.sqlite_files import reading


@dataclass(frozen=True)
class Window:
    """A span of own time from a debit on, and the epsilon spent in it."""

    first: LedgerEntry
    span_ms: int
    nano: int
    allowed_nano: int = 0

    @property
    def t(self) -> int:
        return self.first.t

    @property
    def start_ms(self) -> int:
        return self.first.own_ms

    def __contains__(self, entry: LedgerEntry) -> bool:
        return self.start_ms <= entry.own_ms < self.start_ms + self.span_ms

    def __str__(self) -> str:
        return f"the {spelled(self.span_ms)} of own time from t={self.t} on"


def _fullest(windows: Iterable[Window]) -> Window | None:
    return max(windows, key=lambda window: window.nano, default=None)


def _debits(entries: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """Return what was spent: reports, and those whose bytes are gone."""
    return tuple(entry for entry in entries if not entry.unknown)


@dataclass(frozen=True)
class StreamRecord(TermsInForce):
    """What a device's file holds of one stream."""

    id: int
    terms: Terms
    """At the level that was chosen."""
    successor: Terms | None
    """Terms that were accepted, for timestamps from their start on."""
    terms_text: str
    reserve_nano: int
    reserved_ms: int
    entries: tuple[LedgerEntry, ...]
    """All that counts for this stream: what it inherited from streams that were left too."""
    ended: tuple[StoredPromise, ...]
    """The promises that have ended, and may still bind this stream."""

    @property
    def reports(self) -> tuple[LedgerEntry, ...]:
        return tuple(entry for entry in self.entries if entry.report is not None)

    @property
    def newest(self) -> Terms:
        """The terms of the newest stored report."""
        return self.terms_of(self.reports[-1]) if self.reports else self.terms

    def terms_of(self, entry: LedgerEntry) -> Terms:
        """Return the terms that a stored report was made under, which its timestamp says."""
        return self.terms_at(entry.t)

    @property
    def own(self) -> tuple[LedgerEntry, ...]:
        """What this stream itself has spent."""
        return tuple(entry for entry in self.entries if entry.scope == Scope.of(self.id))

    @property
    def debits(self) -> tuple[LedgerEntry, ...]:
        return _debits(self.entries)


@dataclass(frozen=True)
class StreamCheck:
    """What was found out about one stream."""

    record: StreamRecord
    windows: tuple[Window, ...]
    """One window for each report, which starts with that report."""

    @property
    def fullest(self) -> Window | None:
        return _fullest(self.windows)


@dataclass(frozen=True)
class FileCheck:
    """The result of a check: faults break the promise, remarks are for information."""

    file: str
    streams: tuple[StreamCheck, ...]
    limit: StoredPromise | None
    fullest_of_limit: Window | None
    """The fullest span of the limit, over all streams."""
    faults: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def windows(self) -> tuple[Window, ...]:
        return tuple(window for one in self.streams for window in one.windows)

    @property
    def fullest(self) -> Window | None:
        return _fullest(self.windows)


@dataclass(frozen=True)
class FileContent:
    """The content of a device's file, as far as it is checked."""

    name: str
    records: tuple[StreamRecord, ...]
    entries: tuple[LedgerEntry, ...]
    promises: tuple[StoredPromise, ...]

    @property
    def debits(self) -> tuple[LedgerEntry, ...]:
        return _debits(self.entries)

    @property
    def limits(self) -> tuple[StoredPromise, ...]:
        """The limit in force, and those that have ended."""
        return tuple(one for one in self.promises if one.scope == LIMIT)


def check_ledger(path: Path) -> FileCheck:
    """Read a device's file and check everything in it."""
    file = read_file(path)
    streams = tuple(StreamCheck(record, tuple(_windows(record))) for record in file.records)
    named = len(streams) > 1
    faults, remarks = list(_unowned(file)), list[str]()
    for one in streams:
        prefix = f"{one.record.terms.stream}: " if named else ""
        faults += [prefix + fault for fault in _faults(one)]
        remarks += [prefix + remark for remark in _remarks(one.record)]
    faults += _beyond_the_limit(file)
    faults += _beyond_reserves(file)
    if not streams:
        remarks.append("the device is not enrolled")
    limit = next((one for one in file.limits if one.until is None), None)
    fullest = None if limit is None else _fullest(_filled(file.debits, limit.span))
    return FileCheck(
        file.name, streams, limit, fullest, tuple(faults), tuple(dict.fromkeys(remarks))
    )


def read_file(path: Path) -> FileContent:
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
            enrolled = connection.execute(
                "SELECT id, terms, level, successor, reserve_nano, reserved_ms FROM enrolment"
                " ORDER BY id"
            ).fetchall()
            rows = _rows(connection)
            made = connection.execute(
                "SELECT epsilon_nano, span_ms, until_ms, first_id, last_id, since_ms FROM promises"
            ).fetchall()
    except sqlite3.Error as error:
        raise _no_ledger(path, f"it cannot be read as a device's file ({error})") from None
    entries = tuple(
        sorted(
            (_entry(path, row) for row in rows),
            key=lambda entry: (entry.own_ms, entry.t, entry.round),
        )
    )
    promises = tuple(
        StoredPromise(nano, span, until, Scope(first, last), since)
        for nano, span, until, first, last, since in made
    )
    records = tuple(_book(path, row, entries, promises) for row in enrolled)
    return FileContent(path.name, records, entries, promises)


def _book(
    path: Path,
    row: tuple[Any, ...],
    entries: Iterable[LedgerEntry],
    promises: Iterable[StoredPromise],
) -> StreamRecord:
    place, text, level, following, reserve_nano, reserved_ms = row
    return StreamRecord(
        place,
        _terms(path, text, level),
        None if following is None else _terms(path, following, level),
        text,
        reserve_nano,
        reserved_ms,
        tuple(entry for entry in entries if place in entry.scope),
        tuple(one for one in promises if place in one.scope),
    )


def _rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return all entries, those of the table `history` too, if a ledger was made to keep them."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    kept = ["ledger", "history"] if ("history",) in tables else ["ledger"]
    return [
        row
        for table in kept
        for row in connection.execute(f"SELECT {COLUMNS} FROM {table}")  # nosec B608 # noqa: S608
    ]


def _entry(path: Path, row: tuple[Any, ...]) -> LedgerEntry:
    kinds = (int, str, int, bytes | None, int, int, int, int)
    if not all(map(isinstance, row, kinds)):
        raise _no_ledger(path, f"its entry {row[:2]} is not a valid entry of a ledger")
    return LedgerEntry(*row)


def _terms(path: Path, text: str, level: str) -> Terms:
    try:
        return Terms.read(json.loads(text)).at_level(level)
    except (ValueError, TypeError, RecursionError, TermsRefused) as error:
        raise _no_ledger(path, f"its terms cannot be read ({error})") from None


def _no_ledger(path: Path, what: str) -> Mistake:
    return Mistake(
        Problem.DATA_FILE, file=path, what=what, fix="give the complete file of one device"
    )


def _unowned(file: FileContent) -> Iterator[str]:
    """Yield a fault if there are reports of no enrolment."""
    known = {record.id for record in file.records}
    if any(one.report is not None and one.first_id not in known for one in file.entries):
        yield "there are reports, but no terms that they were made under"


# --- one stream -----------------------------------------------------------------------------------


def _windows(record: StreamRecord) -> Iterator[Window]:
    """Yield the window that starts at each report; the fullest window is among them.

    So are those that start with an earlier debit and have a report under these terms in them. What
    comes after the last such report is bound by others.
    """
    for terms in record.all_terms:
        reports = [entry for entry in record.reports if record.terms_of(entry) is terms]
        for first in record.debits:
            empty = Window(first, terms.promise.span, 0, terms.epsilon_nano)
            bound = [entry.own_ms for entry in reports if entry in empty]
            if bound:
                end_ms = bound[-1]
                spent = (one.nano for one in record.debits if one in empty and one.own_ms <= end_ms)
                yield replace(empty, nano=sum(spent))


def _faults(found: StreamCheck) -> Iterator[str]:
    record = found.record
    terms = record.terms
    if terms.canonical != record.terms_text:
        yield "the terms are not written as they were pinned: they have another hash"
    for window in found.windows:
        if window.nano > window.allowed_nano:
            yield (
                f"{window}: {window.nano} nano-epsilon were spent, and"
                f" {window.allowed_nano} are allowed in any {spelled(window.span_ms)}"
            )
    for promise in record.ended:
        what = "the stream that was left or the terms of before allowed"
        yield from _beyond(promise, record.reports, record.debits, what)
    for (t, name), times in Counter((entry.t, entry.round) for entry in record.reports).items():
        if times > 1:
            yield f"t={t}: round {name} has {times} entries, and one is allowed"
    for entry in record.entries:
        yield from _faults_of(entry, record.terms_of(entry))
    yield from _broken_silences(record.reports, record.entries, terms.promise.span)


def _beyond(
    promise: StoredPromise,
    reports: Iterable[LedgerEntry],
    debits: tuple[LedgerEntry, ...],
    what: str,
) -> Iterator[str]:
    """Yield the reports that a promise did not allow, while it was in force or still bound."""
    for report in reports:
        if not promise.binds(report.own_ms) or report.own_ms <= promise.since:
            continue
        begin_ms = report.own_ms - promise.span
        spent = sum(one.nano for one in debits if begin_ms < one.own_ms <= report.own_ms)
        if spent > promise.epsilon_nano:
            yield (
                f"t={report.t}: {spent} nano-epsilon in {spelled(promise.span)}, and {what}"
                f" {promise.epsilon_nano}"
            )


def _faults_of(entry: LedgerEntry, terms: Terms) -> Iterator[str]:
    if entry.unknown and entry.report is not None:
        yield f"t={entry.t}: round {entry.round or '(none)'}: a round or its report is missing"
    if entry.nano < 1:
        yield f"t={entry.t}: the report of round {entry.round} left without a debit"
    elif entry.report is not None and (fault := _malformed(entry, entry.report, terms)):
        yield f"t={entry.t}: round {entry.round}: {fault}"


def _malformed(entry: LedgerEntry, report: bytes, terms: Terms) -> str:
    """Say why a report cannot have been drawn with the epsilon debited for it; "" if it can."""
    try:
        terms.randomiser(Epsilon(entry.nano)).decode(report)
    except LdpStreamError as fault:
        return str(fault)
    return ""


def _broken_silences(
    reports: Iterable[LedgerEntry], entries: tuple[LedgerEntry, ...], span_ms: int
) -> Iterator[str]:
    """Yield the reports that were made while an unknown past required silence."""
    for unknown in (entry for entry in entries if entry.unknown):
        silence = Window(unknown, span_ms, unknown.nano)
        for entry in reports:
            if entry in silence and entry.own_ms > unknown.own_ms:
                yield f"t={entry.t}: round {entry.round} was answered after an unknown past"


# --- the limit ------------------------------------------------------------------------------------


def _beyond_the_limit(file: FileContent) -> Iterator[str]:
    """Yield the reports of any stream that a limit over all of them did not allow."""
    made = tuple(entry for record in file.records for entry in record.own)
    for limit in file.limits:
        yield from _beyond(limit, made, file.debits, "the limit over all streams allows")
        after = (entry for entry in made if entry.own_ms > limit.since)
        yield from _broken_silences(after, file.entries, limit.span)


def _beyond_reserves(file: FileContent) -> Iterator[str]:
    """Yield the reports for which other streams' reserves were not kept free."""
    limit = next((one for one in file.limits if one.until is None), None)
    if limit is None or not any(record.reserve_nano for record in file.records):
        return
    since_ms = max(limit.since, *(record.reserved_ms for record in file.records))
    for record in file.records:
        for report in record.own:
            if report.own_ms <= since_ms:
                continue
            begin_ms, end_ms = report.own_ms - limit.span, report.own_ms
            kept = sum(
                _kept_free(one, begin_ms, end_ms) for one in file.records if one is not record
            )
            spent = sum(one.nano for one in file.debits if begin_ms < one.own_ms <= end_ms)
            if spent + kept > limit.epsilon_nano >= spent:
                yield (
                    f"{record.terms.stream}: t={report.t}: {spent} nano-epsilon were spent and"
                    f" {kept} reserved for other streams, and the limit is {limit.epsilon_nano}"
                )


def _kept_free(record: StreamRecord, begin_ms: int, end_ms: int) -> int:
    spent = sum(one.nano for one in record.own if begin_ms < one.own_ms <= end_ms)
    return max(0, record.reserve_nano - spent)


def _filled(debits: tuple[LedgerEntry, ...], span_ms: int) -> Iterator[Window]:
    """Yield the window that starts at each debit, with all that was spent in it."""
    for first in debits:
        empty = Window(first, span_ms, 0)
        yield replace(empty, nano=sum(debit.nano for debit in debits if debit in empty))


def _remarks(record: StreamRecord) -> Iterator[str]:
    for entry in record.entries:
        if entry.unknown:
            span = spelled(record.terms.promise.span)
            yield f"the past was unknown at own time {entry.own_ms} ms: silent for {span} from then"
    if left := len(record.debits) - len(record.reports):
        yield (
            f"{left} reports of a stream that was left, or of earlier terms: their debits count,"
            " their bytes are gone"
        )
    for earlier, later in pairwise(record.reports):
        if later.at_ms < earlier.at_ms:
            yield (
                f"t={later.t} was entered before t={earlier.t} by the wall clock, which can be set"
                " back; the device itself goes by another clock"
            )
