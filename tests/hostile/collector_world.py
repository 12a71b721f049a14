"""A collector, driven by hand, and a book of what it owes to whom.

The real coordinator, intake, validation and SQLite store, on a clock and a disk that can be made to
fail. Whatever the collector says of a report is written down, and compared with what it counts.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ldpstream.collector.config import StreamConfig
from ldpstream.collector.credentials.device_keys import StreamKeys
from ldpstream.collector.intake.queue import IntakeQueue, StreamIntake, Submission
from ldpstream.collector.reports.verdicts import Verdict
from ldpstream.collector.rounds.announcement import AnnouncedRounds, OpenRound
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.fleet.folders import memory_folder
from tests.collector.driving import Crash, DyingStore
from tests.collector.helpers import START_MS, device_of

MASTER = b"master secret of the tests"
MOST_IN_DOUBT = 10


class Mortal(DyingStore):
    """Dies before or after any change, those that reports make too."""

    CHANGES = (*DyingStore.CHANGES, "accept", "enrol")


@dataclass
class JumpClock:
    """A clock that people set, forward and back."""

    now: int = START_MS

    def now_ms(self) -> int:
        return self.now


@dataclass(frozen=True)
class Message:
    """One report on the wire, as bytes, and what is true about it."""

    round: str
    device: int
    record: bytes
    report: bytes
    forged: bool


@dataclass
class Book:
    """What the collector has said, and so must keep to."""

    accepted: dict[str, dict[int, bytes]] = field(default_factory=dict)
    in_doubt: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """Reports whose answer died with the collector: on disk, or not."""
    told: dict[str, OpenRound] = field(default_factory=dict)
    announcements: dict[int, tuple[str, ...]] = field(default_factory=dict)
    last_serial: int = 0
    releases: list[StoredRelease] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def announced(self, announcement: AnnouncedRounds) -> None:
        if announcement.serial < self.last_serial:
            self.violations.append(f"serial {announcement.serial} after {self.last_serial}")
        self.last_serial = announcement.serial
        names = tuple(one.name for one in announcement.rounds)
        if self.announcements.setdefault(announcement.serial, names) != names:
            self.violations.append(f"serial {announcement.serial} announces {names} as well")
        for one in announcement.rounds:
            known = self.told.setdefault(one.name, one)
            if known.stored.asked != one.stored.asked or known.to_json() != one.to_json():
                self.violations.append(f"round {one.name} was announced in two ways")

    def answered(self, message: Message, verdict: Verdict) -> None:
        """The collector has given its verdict on a report."""
        accepted = self.accepted.setdefault(message.round, {})
        doubt = self.in_doubt.setdefault(message.round, {})
        known = accepted.get(message.device, doubt.get(message.device))
        if verdict is Verdict.ACCEPTED:
            if message.forged:
                self.violations.append(f"{message.round}: a forged report was accepted")
            if message.device in accepted:
                self.violations.append(f"{message.round}: a device was accepted twice")
            accepted[message.device] = message.report
            doubt.pop(message.device, None)
        elif verdict in (Verdict.REPEATED, Verdict.CONFLICT):
            if known is None or (known == message.report) != (verdict is Verdict.REPEATED):
                self.violations.append(f"{message.round}: {verdict.name} of what was not so")
            elif message.device in doubt:
                accepted[message.device] = doubt.pop(message.device)

    def doubted(self, messages: Iterable[Message]) -> None:
        """The collector died with these in hand."""
        for one in messages:
            if not one.forged and one.device not in self.accepted.get(one.round, {}):
                self.in_doubt.setdefault(one.round, {}).setdefault(one.device, one.report)


class World(Listener):
    """One stream, its store on disk, and up to `DEVICES` devices."""

    DEVICES = 12

    def __init__(self, config: StreamConfig) -> None:
        self.config = config
        self.folder = Path(tempfile.mkdtemp(dir=memory_folder()))
        self.clock = JumpClock()
        self.keys = StreamKeys.of_master(MASTER, config.name)
        self.book = Book()
        self.lives = 0
        self.broken_disk = False
        self._start(self.folder / "0" / "c.sqlite")

    def _start(self, file: Path) -> None:
        self.file = file
        self.store = SqliteStore(file, MASTER)
        self.mortal = Mortal(self.store, None, after=False)
        self.build()

    def build(self) -> None:
        """What the scheduler does after any failure: there is only one way to recover."""
        self.coordinator = Coordinator(self.config, self.mortal, self.clock, self)  # type: ignore[arg-type]
        intake = StreamIntake(self.keys, self.coordinator.selection, Counter())
        self.intake = IntakeQueue(self.mortal, {self.config.name: intake}, 10**6)  # type: ignore[arg-type]

    def announced(self, announcement: AnnouncedRounds) -> None:
        self.book.announced(announcement)

    def close(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    def kill(self) -> None:
        """Lose everything but the files, as they are at this instant."""
        self.lives += 1
        life = self.folder / str(self.lives)
        life.mkdir()
        for suffix in ("", "-wal"):
            found = self.file.with_name(self.file.name + suffix)
            if found.exists():
                shutil.copy(found, life / found.name)
        self.store.close()
        shutil.rmtree(self.file.parent)
        self.broken_disk = False
        self._start(life / "c.sqlite")

    def fill_disk(self) -> None:
        """Let SQLite itself refuse to add a page."""
        (pages,) = self.store._writer._connection.execute("PRAGMA page_count").fetchone()
        self._set_disk(f"PRAGMA max_page_count = {pages}", broken=True)

    def make_disk_read_only(self) -> None:
        self._set_disk("PRAGMA query_only = ON", broken=True)

    def mend_disk(self) -> None:
        self._set_disk("PRAGMA max_page_count = 1073741823", broken=False)
        self._set_disk("PRAGMA query_only = OFF", broken=False)

    def _set_disk(self, pragma: str, broken: bool) -> None:
        self.store._writer._connection.execute(pragma)
        self.broken_disk = broken

    def doom(self, changes: int, after: bool) -> None:
        """Let the collector die at one of the next changes, before it or after it."""
        self.mortal._die_at = self.mortal.changes + changes
        self.mortal._after = after

    def enrol(self, number: int) -> None:
        try:
            self.mortal.enrol(self.config.name, device_of(number))
        except Crash:
            self.kill()
        except sqlite3.Error:
            self._must_be_the_disk()

    def advance(self) -> int:
        """Let the coordinator do what is due; when it wants to be called again."""
        try:
            return self.coordinator.advance()
        except Crash:
            self.kill()
        except sqlite3.Error:
            self._must_be_the_disk()
            self.build()
        return self.clock.now

    def _must_be_the_disk(self) -> None:
        if not self.broken_disk:
            raise AssertionError("the disk is fine")

    def deliver(self, messages: list[Message]) -> None:
        """Messages of one round arrive together."""
        asking = self.book.told[messages[0].round]
        packed = b"".join(one.record for one in messages)
        future: Any = None
        try:
            verdicts, _ = self.intake._take_in(
                [Submission(asking, packed, len(messages), future, began=0.0, sender="")]
            )
        except Crash:
            self.book.doubted(messages)
            self.kill()
        except sqlite3.Error:
            self._must_be_the_disk()
        else:
            for one, verdict in zip(messages, verdicts.tolist(), strict=True):
                self.book.answered(one, Verdict(verdict))

    # What must hold, whatever happened

    def violations(self) -> Iterator[str]:
        yield from self.book.violations
        yield from self._changed_releases()
        yield from self._wrong_tallies()
        yield from self._overspent()

    def _changed_releases(self) -> Iterator[str]:
        releases = self.store.releases(self.config.name, 0, 1 << 40)
        known = self.book.releases
        if releases[: len(known)] != known:
            yield "a release has changed, or is gone"
        times = [one.t for one in releases]
        if any(later != earlier + 1 for earlier, later in pairwise(times)):
            yield f"releases are not in order, one a timestamp: {times}"
        self.book.releases = releases

    def _wrong_tallies(self) -> Iterator[str]:
        for stored in self.store.rounds(self.config.name, 0):
            asking = self.book.told.get(stored.name)
            if stored.support is None:
                continue
            if asking is None:
                if stored.support.reports:
                    yield f"{stored.name}: counted, and never announced"
                continue
            sure = list(self.book.accepted.get(stored.name, {}).values())
            doubt = list(self.book.in_doubt.get(stored.name, {}).values())
            found = stored.support.counts.tolist()
            for extra in _chosen(doubt, stored.support.reports - len(sure)):
                if _counts(asking, [*sure, *extra]) == found:
                    break
            else:
                yield f"{stored.name}: counts {found} are not those of the reports accepted"

    def _overspent(self) -> Iterator[str]:
        """Any device of a roster asked for more than epsilon in a window."""
        rounds = [one for one in self.book.told.values() if one.asked is not None]
        last = max((one.stored.t for one in rounds), default=0)
        start = min((one.stored.t for one in rounds), default=0)
        spent = np.zeros((last - start + 1, self.DEVICES), np.int64)
        for one in rounds:
            asked = one.asked_mask
            spent[one.stored.t - start, : len(asked)] += asked * one.stored.epsilon_nano
        sums = np.cumsum(spent, axis=0)
        sums[self.config.window :] -= sums[: -self.config.window].copy()
        if sums.max(initial=0) > self.config.epsilon.nano:
            yield f"a device was asked for {sums.max()} nano-epsilon in a window"


def _chosen(doubt: list[bytes], number: int) -> Iterator[tuple[bytes, ...]]:
    """Every way in which so many of the reports in doubt may have counted."""
    if 0 <= number <= len(doubt) <= MOST_IN_DOUBT:
        yield from combinations(doubt, number)


def _counts(asking: OpenRound, reports: list[bytes]) -> list[int]:
    shape = len(reports), asking.stored.report_bytes
    table = np.frombuffer(b"".join(reports), np.uint8).reshape(shape)
    counts: list[int] = asking.collector.count([table]).counts.tolist()
    return counts
