"""The life of one person's device in a simulated world: installs, restarts, reboots, lost files.

The device, its file, its rules and its conversations are real. Simulated are clocks, change times
of files, the passing of time, and the collector, which is hostile (`hostile_collector.py`).
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from ldpstream.audit.disk import FileSystem, SimulatedChangeTime
from ldpstream.audit.hostile_collector import URL, HostileCollector, RecordingTransport, make_terms
from ldpstream.audit.judge import Draw, PersonTranscript, ProcessObserver, RecordedPromise
from ldpstream.audit.machine import Machine
from ldpstream.device import Device, LedgerUnusable, Limit, Unreachable
from ldpstream.device.exchange import Pause, Stop
from ldpstream.device.session import Session
from ldpstream.device.witness import Witness
from ldpstream.errors import LdpStreamError, Mistake
from ldpstream.privacy.randomness import Source, SystemSource
from ldpstream.protocol.answers import Refused, Round
from ldpstream.protocol.terms import SelectionMethod, Terms, Value

Values = Callable[[int], Value | None]
"""A function that returns the person's value at a true time in microseconds."""


def ignore(problem: LdpStreamError) -> None:
    """Ignore a warning."""


@dataclass
class Process:
    """A running program with the device in it."""

    device: Device
    watch: ProcessObserver


class Life:
    """One person, whose device may be reinstalled or moved, and all that it ever sent."""

    def __init__(
        self,
        folder: Path,
        machine: Machine,
        terms: Terms | None = None,
        *,
        source: Source | None = None,
        witness: Callable[[Machine], Witness] | None = None,
        value: Values = lambda us: 0,
        warn: Callable[[LdpStreamError], None] = ignore,
    ) -> None:
        self.machine = machine
        self.true = machine.true
        self.home = folder / "home"
        self.home.mkdir()
        self.path = self.home / "device.ldp"
        self.value = value
        self.dawdle_before = self.dawdle_after = 0.0
        """Seconds that the application takes before and after it reads the value."""
        self.terms = terms or make_terms()
        self.collector = HostileCollector(self.true, self.terms)
        self.collectors = {URL: self.collector}
        """The collectors of all streams, by their address; the first is the `collector`."""
        self.limit: Limit | None = None
        self.transcript = PersonTranscript(self.true)
        self._source = source or SystemSource()
        self._warn = warn
        self._witness = witness
        self._files: dict[Machine, FileSystem] = {}
        self._copies = count(1)
        self.process: Process | None = None
        self.faults: list[str] = []
        """Faults of the disk, while rounds were answered."""

    # --- processes --------------------------------------------------------------------------------

    @property
    def files(self) -> FileSystem:
        return self._files.setdefault(self.machine, FileSystem(self.machine))

    def _parts(self, watch: ProcessObserver) -> dict[str, Any]:
        witness = self._witness or (lambda machine: SimulatedChangeTime(self.files, self.path))
        return {
            "witness": witness(self.machine),
            "clock": self.machine,
            "source": watch,
            "jitter": lambda most: most,
            "warn": self._warn,
            # As the device itself: links are followed when it starts, and never again.
            "transport": RecordingTransport(self.collectors, watch, self.path.resolve()),
            "sleep": self._pause,
        }

    def _pause(self, seconds: float, stop: Stop) -> None:
        self.collector.seen.append((self.true.us, Pause(seconds)))
        self.machine.wait(seconds)

    def install(self, *, first: bool = True) -> Process:
        """Create the file, as an installer does, enrol and start."""
        self.process = self._started(Device.create, first_install=first)
        self._enrol(self.process, URL)
        return self.process

    def _enrol(self, process: Process, url: str) -> None:
        """Enrol in a stream, and accept successors of its terms."""
        collector = self.collectors[url]
        stream = collector.terms.stream
        process.device.enrol(url, stream, "", level=collector.level, accept="not-looser")

    def join(self, terms: Terms) -> HostileCollector:
        """Join another stream, of a collector of its own, over a network that loses nothing."""
        assert self.process is not None
        url = f"https://{len(self.collectors)}.invalid"
        self.collectors[url] = collector = HostileCollector(self.true, terms)
        self._enrol(self.process, url)
        return collector

    def enrol_again(self) -> None:
        """Enrol in the first stream, which was left, beside others."""
        assert self.process is not None
        self._enrol(self.process, URL)

    def move_to_level(self, level: str) -> None:
        """Choose another level of privacy, over a network that loses nothing."""
        if self.process is None:
            return
        loses, self.collector.loses = self.collector.loses, lambda request: False
        self.collector.level = level
        self._enrol(self.process, URL)
        self.collector.loses = loses

    def set_limit(self, limit: Limit) -> None:
        """Set the limit over all streams."""
        self.limit = limit
        assert self.process is not None
        self.process.device.set_limit(limit)

    def become_a_twin(self) -> None:
        """Take the number and the secret that all twins have, and start again."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("UPDATE enrolment SET secret = zeroblob(32), number = zeroblob(16)")
            connection.commit()
        self.start()

    def start(self) -> Process | None:
        """Start the application: it opens the device, enrols it if need be, and creates none."""
        self.process = None
        try:
            self.process = self.another()
        except Mistake:  # there is no file, and an application creates none
            return None
        except LedgerUnusable as fault:
            self.faults.append(str(fault))
        return self.process

    def another(self) -> Process:
        """Start one more process on the same file."""
        process = self._started(Device.open)
        if not process.device.streams:
            self._enrol(process, URL)
        return process

    def rejoin(self) -> None:
        """Leave the stream, and join it again, as a twin, over a network that loses nothing."""
        if self.process is None:
            return
        loses, self.collector.loses = self.collector.loses, lambda request: False
        try:
            self.process.device.leave(self.terms.stream, URL)
            self._enrol(self.process, URL)
            self.become_a_twin()
        except LedgerUnusable as fault:
            self.faults.append(str(fault))
        self.collector.loses = loses

    def _started(self, make: Callable[..., Device], **options: Any) -> Process:
        watch = ProcessObserver(self.transcript, self._source)
        device = make(self.path, **options, **self._parts(watch))
        for session in device.sessions.all or [device.session]:
            self._watch(session, watch)
        made = device.sessions.made  # another one for each enrolment, whoever makes it
        device.sessions.made = lambda account: self._watch(made(account), watch)  # type: ignore[method-assign]
        return Process(device, watch)

    def _watch(self, session: Session, watch: ProcessObserver) -> Session:
        session.value.follow(lambda: self._read(watch))
        honest = session.consider

        def consider(pin: str, asked: Round | Refused) -> Any:
            if isinstance(asked, Round):
                url = session.account.enrolled.url
                prefix = "" if url == URL else f"{self.collectors[url].terms.stream} "
                key = asked.t, prefix + asked.name
                watch.considers(key, asked.epsilon_nano, url, self._vows(url, pin))
            return honest(pin, asked)

        session.consider = consider  # type: ignore[method-assign]
        return session

    def _vows(self, url: str, pin: str) -> tuple[RecordedPromise, ...]:
        """Return what the person was promised for a report under these terms."""
        collector = self.collectors[url]
        made = []
        if pin in collector.versions:
            promise = collector.versions[pin].at_level(collector.level).promise
            made.append(RecordedPromise(promise.epsilon_nano, promise.span, url))
        if self.limit is not None:
            made.append(RecordedPromise(self.limit.promise.epsilon_nano, self.limit.promise.span))
        return tuple(made)

    def _read(self, watch: ProcessObserver) -> Value | None:
        self.machine.wait(self.dawdle_before)
        watch.reads()
        value = self.value(self.true.us)
        self.machine.wait(self.dawdle_after)
        return value

    # --- what the collector does ------------------------------------------------------------------

    def ask(self, *rounds: dict[str, Any], by: Process | None = None) -> list[Draw]:
        """Announce rounds (by default one with all of epsilon), and return the reports sent.

        A device with slots is not asked: it takes its next turn, however long that takes.
        """
        process = by or self.process
        if process is None:
            return []
        before = len(self.collector.departed)
        self.collector.rounds = list(rounds) or [self.collector.make_round()]
        wait = (
            self.terms.promise.span // 1000 if self.terms.selection is SelectionMethod.SLOTS else 0
        )
        try:
            process.device.poll(wait)
        except Unreachable:
            pass
        except LedgerUnusable as fault:
            self.faults.append(str(fault))
        return self.collector.departed[before:]

    # --- what happens to the machine and its file -------------------------------------------------

    def reboot(self, down_seconds: float = 0) -> None:
        """Turn the machine off and on, and start the application again."""
        self.machine.reboot(down_seconds)
        self.start()

    def copy(self) -> Path:
        """Copy the file into a folder of its own, as a backup does."""
        folder = self.home.with_name(f"copy{next(self._copies)}")
        folder.mkdir()
        copied = folder / self.path.name
        shutil.copy(self.path, copied)
        self.files.touch(copied)
        return copied

    def rename_back(self, copied: Path) -> None:
        """Put a copy in the file's place by renaming its folder, which changes no file's times."""
        self.home.rename(self.home.with_name(f"old{next(self._copies)}"))
        copied.parent.rename(self.home)

    def link_to(self, copied: Path) -> None:
        """Put a copy in the file's place by switching a symbolic link to its folder."""
        if self.home.is_symlink():
            self.home.unlink()
        else:
            self.home.rename(self.home.with_name(f"old{next(self._copies)}"))
        self.home.symlink_to(copied.parent)

    def write_over(self, content: bytes) -> None:
        """Write other bytes into the file itself."""
        self.path.write_bytes(content)
        self.files.touch(self.path)

    def lose(self) -> None:
        """Lose the file."""
        self.path.unlink()

    def move_to(self, machine: Machine) -> None:
        """Move the file to another machine, on which it is another file."""
        content = self.path.read_bytes()
        self.path.unlink()
        self.machine = machine
        self.path.write_bytes(content)
        self.files.touch(self.path)

    # --- the judgement ----------------------------------------------------------------------------

    @property
    def violations(self) -> list[str]:
        """The violations of the first stream's promise, if nothing but that was ever promised."""
        promise = self.terms.promise
        return self.transcript.violations(promise.epsilon_nano, promise.span)

    @property
    def broken_vows(self) -> list[str]:
        """The violations of what was promised with each report: terms, levels and limits."""
        return self.transcript.broken_vows()
