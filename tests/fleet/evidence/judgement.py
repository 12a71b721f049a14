"""The promises, and whether they were kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ldpstream.arrays import Counts
from ldpstream.protocol.terms import Terms
from tests.fleet.evidence.books import MISSED, Books, read_books
from tests.fleet.evidence.diary import Life, read_diary
from tests.fleet.evidence.ledgers import overspent, read_account
from tests.fleet.evidence.sendings import Reports, Sendings
from tests.fleet.evidence.wire import read_wire

HEAD_START_MS = 1000
"""A collector that was up for no longer than this in a timestamp need not have asked in it."""


@dataclass(frozen=True)
class Findings:
    """What was found. The second group is zero if every promise was kept."""

    kills: int
    devices: int
    debits: int
    """Reports that devices entered into their ledgers."""
    acknowledged: int
    uncertain: int
    """Reports that may or may not have been counted: no answer came, or a kill came between."""
    counted: int
    """Reports in the collector's tallies."""
    rounds: int
    releases: int
    missed: int
    """Releases that say that the collector was away; each is checked against the diary."""

    violations: int
    """Windows beyond epsilon, and reports that left without their debit or in other bytes."""
    lost: int
    """Acknowledged, and not in the tally."""
    double_counted: int
    """In the tally, and in no way accounted for by distinct reports that were sent."""
    missing_releases: int
    """Neither released nor away for all of it."""
    changed_releases: int
    """Seen before a kill, and other or gone in the end."""

    @property
    def clean(self) -> bool:
        faults = (self.violations, self.lost, self.double_counted)
        return not any((*faults, self.missing_releases, self.changed_releases))


@dataclass(frozen=True)
class Evidence:
    """Where the files are."""

    folder: Path
    ledgers: Path
    stream: str

    @property
    def store(self) -> Path:
        return self.folder / "collector.sqlite"

    @property
    def wire(self) -> Path:
        return self.folder / "wire.log"

    @property
    def diary(self) -> Path:
        return self.folder / "diary.jsonl"

    def judge(self) -> Findings:
        accounts = [read_account(path) for path in sorted(self.ledgers.glob("*.ldp"))]
        books = read_books(self.store, self.stream)
        lives = read_diary(self.diary)
        wire = Sendings.of(read_wire(self.wire), [life.ended_ms for life in lives])
        return Findings(
            kills=sum(life.killed for life in lives),
            devices=len(accounts),
            debits=sum(entry.report is not None for one in accounts for entry in one.entries),
            acknowledged=len(wire.acknowledged),
            uncertain=len(wire.possible) - len(wire.acknowledged),
            counted=sum(one.reports for one in books.rounds),
            rounds=len(books.rounds),
            releases=len(books.releases),
            missed=sum(row[MISSED] for row in books.releases.values()),
            violations=sum(map(overspent, accounts)) + wire.undebited(accounts),
            lost=lost(books, wire),
            double_counted=double_counted(books, wire),
            missing_releases=missing_releases(books, lives),
            changed_releases=changed_releases(books, lives),
        )


def lost(books: Books, wire: Sendings) -> int:
    """Label by label, what acknowledged reports support beyond what was counted."""
    expected = _by_round(wire.acknowledged)
    short = _compare(books, expected, lambda counted, supported: supported - counted)
    unknown = expected.keys() - {one.name for one in books.rounds}
    return short + sum(len(expected[name]) for name in unknown)


def double_counted(books: Books, wire: Sendings) -> int:
    """Label by label, what was counted beyond what all possible reports support."""
    return _compare(books, _by_round(wire.possible), lambda counted, supported: counted - supported)


def _compare(
    books: Books, sent: Mapping[str, list[bytes]], excess: Callable[[Counts, Counts], Counts]
) -> int:
    total = 0
    for one in books.rounds:
        reports = sent.get(one.name, [])
        supported = np.append(books.support(one.epsilon_nano, reports), len(reports))
        counted = np.append(one.counts, one.reports)
        beyond = np.maximum(excess(counted, supported), 0)
        total += int(max(beyond[:-1].sum(), beyond[-1]))
    return total


def _by_round(reports: Reports) -> dict[str, list[bytes]]:
    found: defaultdict[str, list[bytes]] = defaultdict(list)
    for (_, name), report in reports.items():
        found[name].append(report)
    return dict(found)


def missing_releases(books: Books, lives: list[Life]) -> int:
    """Timestamps, from the first one asked to the last one over, without a release of their own.

    Over means: a second before the end, of a run that ends with the collector up for a while.
    One that was released as missed counts as missing, unless the collector was away from its
    beginning to the last moment at which it would have taken reports.
    """
    if not books.rounds:
        return 0
    terms = books.terms
    open_ms = max(one.deadline_ms - _start_of(terms, one.t) for one in books.rounds)
    last = terms.timestamp_at(lives[-1].ended_ms - HEAD_START_MS) - 1
    missing = 0
    for t in range(books.rounds[0].t, last + 1):
        row = books.releases.get(t)
        begin = _start_of(terms, t)
        away = all(_overlap(life, begin, begin + open_ms) <= HEAD_START_MS for life in lives)
        missing += row is None or (row[MISSED] == 1 and not away)
    return missing


def changed_releases(books: Books, lives: Iterable[Life]) -> int:
    seen = ((t, row) for life in lives for t, row in life.released.items())
    return len({t for t, row in seen if books.releases.get(t) != row})


def _overlap(life: Life, begin_ms: int, end_ms: int) -> int:
    return max(0, min(life.ended_ms, end_ms) - max(life.ready_ms, begin_ms))


def _start_of(terms: Terms, t: int) -> int:
    return terms.start_ms + (t - 1) * terms.interval_ms
