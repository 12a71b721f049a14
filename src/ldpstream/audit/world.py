"""A simulated world: a collector and its devices in one process, with a true time set by hand.

Real: the collector's application, intake, store, coordinator and mechanism; the targets' sessions,
ledgers (files in memory) and randomisers, with the operating system's randomness. Simulated: the
sockets, the passing of time, each target's machine with clocks of its own (`machine.py`), and the
rest of the fleet (`crowd.py`). A hostile collector is in `hostile_collector.py`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ldpstream.audit.collector_calls import call
from ldpstream.audit.crowd import Crowd
from ldpstream.audit.hostile_collector import is_on_disk
from ldpstream.audit.judge import PersonTranscript, ProcessObserver
from ldpstream.audit.machine import START_MS, Machine, TrueTime
from ldpstream.collector.api.app import build_app
from ldpstream.collector.config import Config, Limits, SelectionMethod, StreamConfig
from ldpstream.collector.config.vocabulary import OpenVocabulary
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.service.service import Service
from ldpstream.device.account import CommittedReport, Outcome
from ldpstream.device.answers import read_object
from ldpstream.device.exchange import Request, Response, drive_async
from ldpstream.device.rules import TooEarly
from ldpstream.device.session import Session
from ldpstream.device.store import DeviceStore
from ldpstream.domain import Domain
from ldpstream.mechanisms.messages import Purpose
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import Source, SystemSource
from ldpstream.protocol.answers import Announcement, Round
from ldpstream.protocol.attributes import Attribute, Attributes
from ldpstream.protocol.messages import ListRounds, SubmitBatch
from ldpstream.vocabulary import Vocabulary

STREAM = "audit"
LABELS = ("no", "yes")
INTERVAL_MS = 10_000
ASKED = 2
"""How often each device has to answer each round, as if the first answer had been lost."""
TOKEN = b"enrolment token of the audit"
ATTRIBUTES = Attributes((Attribute("site", ("a", "b")),))
"""What reports tell in slots: each target says something else of itself before every answer."""
MOST_SKEWED = 3
"""The most timestamps by which a target's wall clock is wrong, ahead or behind."""


@dataclass(frozen=True)
class Scenario:
    """A stream, and the position of its secrets in true time.

    After `offset` intervals in which everyone's value is the same, each target has a secret bit
    for each of `windows` spans of w intervals: its value in all of the span. So two histories that
    differ in one bit are w-neighbouring, in the worst way, and spans lie anywhere in a mechanism's
    cycle. What counts is when a value is read, not the timestamp for which it is reported.
    """

    mechanism: str
    oracle: Oracle
    epsilon: Epsilon
    window: int
    selection: SelectionMethod
    offset: int
    targets: int
    crowd: int
    windows: int
    words: Vocabulary | None = None
    """That of a stream of texts, in place of labels."""

    @property
    def timestamps(self) -> int:
        return self.offset + self.windows * self.window

    @property
    def attributes(self) -> Attributes | None:
        """The public attributes that reports tell."""
        labels = self.words is None  # a vocabulary takes none
        return ATTRIBUTES if self.selection is SelectionMethod.SLOTS and labels else None

    @property
    def tags(self) -> int:
        """How many combinations of attributes reports tell apart; 0: they tell nothing."""
        return 0 if self.attributes is None else self.attributes.combinations

    def window_of(self, moment_ms: int) -> int | None:
        """Return the index of the secret window that contains this moment, or None."""
        since = moment_ms - START_MS - self.offset * INTERVAL_MS
        place = since // (self.window * INTERVAL_MS)
        return place if 0 <= place < self.windows else None


@dataclass(frozen=True)
class SentReport:
    """A report on the wire, and the true moment at which its value was read."""

    target: int
    t: int
    round: str
    epsilon_nano: int
    report: bytes
    read_ms: int


class TargetDevice:
    """A device under attack: its session, its machine, and what it sends."""

    def __init__(self, path: Path, machine: Machine, source: Source) -> None:
        self.path, self.machine = path, machine
        self.transcript = PersonTranscript(machine.true)
        self.watch = ProcessObserver(self.transcript, source)
        store = DeviceStore(path, clock=machine)
        store.create(first_install=True)
        self.session = Session.of(store, self.watch)

    def consider(self, pin: str, asked: Round) -> tuple[Outcome, int | None]:
        """Return the outcome of a round and, if bytes are sent, when their value was read."""
        self.watch.considers(asked.key, asked.epsilon_nano)
        outcome = self.session.consider(pin, asked)
        if not isinstance(outcome, CommittedReport):
            return outcome, None
        draw = self.watch.departs(outcome.message.report, self._is_on_disk)
        return outcome, draw.read_us // 1000 if draw else self.machine.true.now_ms()

    def _is_on_disk(self, key: tuple[int, str], report: bytes) -> bool:
        return is_on_disk(self.path, key, report)


class World:
    """One run of a scenario."""

    def __init__(self, scenario: Scenario, folder: Path, source: Source | None = None) -> None:
        self.scenario = scenario
        self.true = TrueTime(START_MS)
        self.bits = [
            [secrets.randbits(1) for _ in range(scenario.windows)] for _ in range(scenario.targets)
        ]
        self.wire: list[SentReport] = []
        secret = Secrets(secrets.token_bytes(32), TOKEN, secrets.token_hex(16).encode())
        self._service = Service(_config(scenario, folder), secret, self.true)
        self._app = build_app(self._service)
        self._crowd = Crowd(scenario.crowd, scenario.epsilon, scenario.window)
        self.targets = [
            self._target(number, folder, source or SystemSource())
            for number in range(scenario.targets)
        ]

    @property
    def coordinator(self) -> Coordinator:
        part = self._service.scheduler.drivers[STREAM].role
        assert isinstance(part, Coordinator)
        return part

    def live(self) -> None:
        """Run to the end; `wire` then holds everything that was sent."""
        try:
            asyncio.run(self._live())
        finally:
            self._service.stop()

    async def _live(self) -> None:
        for stream in self._service.streams.values():
            stream.hub.attach()
        self._service.intake.start()
        try:
            await self._run_stream()
        finally:  # also on Ctrl-C: its thread answers through the loop, which closes next
            self._service.intake.stop()

    async def _run_stream(self) -> None:
        await self._enrol()
        answered = ""
        while self.coordinator.last_t < self.scenario.timestamps:
            wake = self.coordinator.advance()
            asking = self.coordinator.open
            if asking is not None and asking.name != answered:
                answered = asking.name
                await self._answer(asking)
            else:
                self.true.advance_to(wake)

    def _target(self, number: int, folder: Path, source: Source) -> TargetDevice:
        """Return a device whose wall clock is wrong, and drifts."""
        wrong = number % (2 * MOST_SKEWED + 1) - MOST_SKEWED
        machine = Machine(
            self.true, skew_ms=wrong * INTERVAL_MS, drift=Fraction(wrong, 1000), up_ms=1000 * number
        )
        target = TargetDevice(folder / f"{number}.ldp", machine, source)
        bits, window_of = self.bits[number], self.scenario.window_of

        def value() -> int | str:
            target.watch.reads()
            place = window_of(self.true.now_ms())
            held = 0 if place is None else bits[place]
            return held if self.scenario.words is None else LABELS[held]

        target.session.value.follow(value)
        return target

    @property
    def violations(self) -> list[str]:
        """The violations that the judge finds in any target."""
        promise = self.scenario.epsilon.nano, self.scenario.window * INTERVAL_MS
        return [
            f"target {number}: {found}"
            for number, target in enumerate(self.targets)
            for found in target.transcript.violations(*promise)
        ]

    async def _enrol(self) -> None:
        for target in self.targets:
            conversation = target.session.enrol(STREAM, "http://127.0.0.1", TOKEN.decode(), None)
            await drive_async(conversation, self._send)
        if self.scenario.selection is SelectionMethod.ROSTER:
            for number in self._crowd.numbers:
                self._service.store.enrol(STREAM, number)

    async def _send(self, request: Request) -> Response:
        return await call(self._app, request)

    async def _answer(self, asking: OpenRound) -> None:
        """Let everyone answer; targets answer `ASKED` times, once their budget allows it."""
        heard = await self._listen()
        keys = self._service.streams[STREAM].intake.keys
        await self._pass_on(asking, self._crowd.records(asking, keys, self.scenario.targets))
        waiting = set(range(len(self.targets)))
        while waiting:
            for _ in range(ASKED):
                records, early = self._answers_of(waiting, heard)
                await self._pass_on(asking, records)
            if early:
                self.true.advance_ms(min(early.values()))
            waiting = set(early)

    def _answers_of(
        self, waiting: Iterable[int], heard: list[Announcement]
    ) -> tuple[list[bytes], dict[int, int]]:
        """Return what they send now, as records of a batch, and who has to wait how long.

        All that is sent is recorded in `wire`.
        """
        records, early = [], {}
        for number in sorted(waiting):
            target, told = self.targets[number], heard[number]
            for asked in told.rounds:
                assert isinstance(asked, Round)
                target.session.account.described = {"site": secrets.choice(("a", "b", "c"))}
                outcome, read_ms = target.consider(told.pin, asked)
                if isinstance(outcome, TooEarly):
                    early[number] = outcome.wait_ms
                if isinstance(outcome, CommittedReport):
                    assert read_ms is not None
                    self.wire.append(
                        SentReport(
                            number,
                            asked.t,
                            asked.name,
                            asked.epsilon_nano,
                            outcome.message.report,
                            read_ms,
                        )
                    )
                    records.append(outcome.message.record)
        return records, early

    async def _listen(self) -> list[Announcement]:
        """Return what each target is told: on a roster one by one, otherwise all the same."""
        if self.scenario.selection is SelectionMethod.OPEN:
            heard = [await self._rounds(self.targets[0])] * len(self.targets)
        else:
            heard = [await self._rounds(target) for target in self.targets]
        for target, told in zip(self.targets, heard, strict=True):
            target.session.hear(told)
        return heard

    async def _rounds(self, target: TargetDevice) -> Announcement:
        message = ListRounds(STREAM, 0, 0, target.session.account.proof())
        response = await self._send(Request.of(message))
        return Announcement.read(read_object(response, "rounds"))

    async def _pass_on(self, asking: OpenRound, records: Iterable[bytes]) -> None:
        body = b"".join(records)
        if body and self.coordinator.open is asking:
            proof = self.targets[0].session.account.proof()
            message = SubmitBatch(STREAM, asking.name, body, proof)
            response = await self._send(Request.of(message))
            assert response.status == 200, response.body


def _config(scenario: Scenario, folder: Path) -> Config:
    words = scenario.words
    given = None if words is None else OpenVocabulary(words.bits, words.prefixes, words.salt)
    stream = StreamConfig(
        name=STREAM,
        values=words or Domain.of(LABELS),
        vocabulary=given,
        candidates=LABELS,
        epsilon=scenario.epsilon,
        window=scenario.window,
        interval_ms=INTERVAL_MS,
        start_ms=START_MS,
        mechanism=scenario.mechanism,
        oracle=scenario.oracle,
        selection=scenario.selection,
        population=scenario.targets + scenario.crowd,
        deadlines={Purpose.DISSIMILARITY: 0.45, Purpose.PUBLICATION: 0.9},
        thresholds={},
        public=False,
        attributes=scenario.attributes,
    )
    limits = Limits(enrolments_per_second=10**6)
    return Config("127.0.0.1", 0, folder / "collector.sqlite", {}, limits, (stream,))
