"""A collector and its devices in one process, on one clock that is moved by hand.

Real: the collector's application, intake, store, coordinator and mechanism; the targets' sessions,
ledgers (files in memory) and randomisers, with the operating system's randomness. Stood in for: the
sockets, the passing of time, and the rest of the fleet (`crowd.py`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ldpstream.audit.collector_calls import call
from ldpstream.audit.crowd import Crowd
from ldpstream.collector.announcement import OpenRound
from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import Config, Limits, Selection, StreamConfig
from ldpstream.collector.coordinator import Coordinator
from ldpstream.collector.secrets import Secrets
from ldpstream.collector.service import Service
from ldpstream.device.account import Submission
from ldpstream.device.answers import read_object
from ldpstream.device.exchange import Request, Response, drive_async
from ldpstream.device.rounds import Announcement
from ldpstream.device.session import Session
from ldpstream.device.store import Store
from ldpstream.domain import Domain
from ldpstream.mechanisms.messages import Purpose
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import Source, SystemSource

STREAM = "audit"
LABELS = ("no", "yes")
START_MS = 1_700_000_000_000
INTERVAL_MS = 10_000
ASKED = 2
"""How often the network makes each device answer each round, as if the first answer was lost."""
TOKEN = b"enrolment token of the audit"


@dataclass(frozen=True)
class Scenario:
    """A stream, and how its secrets lie in time.

    After `offset` timestamps in which everyone's value is the same, each target has a secret bit
    for each of `windows` windows: its value in all w timestamps. So two streams that differ in one
    bit are w-neighbouring, in the worst way, and windows lie anywhere in a mechanism's cycle.
    """

    mechanism: str
    oracle: Oracle
    epsilon: Epsilon
    window: int
    selection: Selection
    offset: int
    targets: int
    crowd: int
    windows: int

    @property
    def timestamps(self) -> int:
        return self.offset + self.windows * self.window

    def window_of(self, t: int) -> int | None:
        """The place of the window that t lies in, if it is one with a secret."""
        return None if t <= self.offset else (t - 1 - self.offset) // self.window


@dataclass(frozen=True)
class Sent:
    """A report on the wire."""

    target: int
    t: int
    round: str
    epsilon_nano: int
    report: bytes


class World:
    """One run of a scenario."""

    def __init__(self, scenario: Scenario, folder: Path, source: Source | None = None) -> None:
        self.scenario = scenario
        self.clock = ManualClock(START_MS)
        self.bits = [
            [secrets.randbits(1) for _ in range(scenario.windows)] for _ in range(scenario.targets)
        ]
        self.wire: list[Sent] = []
        secret = Secrets(secrets.token_bytes(32), TOKEN, secrets.token_hex(16).encode())
        self._service = Service(_config(scenario, folder), secret, self.clock)
        self._app = build_app(self._service)
        self._crowd = Crowd(scenario.crowd, scenario.epsilon, scenario.window)
        self._sessions = [
            self._session(number, folder, source or SystemSource())
            for number in range(scenario.targets)
        ]

    @property
    def coordinator(self) -> Coordinator:
        part = self._service.conductor.seats[STREAM].part
        assert isinstance(part, Coordinator)
        return part

    def live(self) -> None:
        """Run to the end; everything that went over the wire is in `wire` then."""
        try:
            asyncio.run(self._live())
        finally:
            self._service.stop()

    async def _live(self) -> None:
        for stream in self._service.streams.values():
            stream.board.attach()
        self._service.intake.start()
        await self._enrol()
        answered = ""
        while self.coordinator.last_t < self.scenario.timestamps:
            wake = self.coordinator.advance()
            asking = self.coordinator.open
            if asking is not None and asking.name != answered:
                answered = asking.name
                await self._answer(asking)
            else:
                self.clock.advance_to(max(wake, self.clock.now_ms()))

    def _session(self, number: int, folder: Path, source: Source) -> Session:
        session = Session(Store(folder / f"{number}.ldp"), _DeviceClock(self.clock), source)
        bits, window_of = self.bits[number], self.scenario.window_of

        def value(t: int) -> int:
            place = window_of(t)
            return 0 if place is None else bits[place]

        session.follow(value)
        return session

    async def _enrol(self) -> None:
        for session in self._sessions:
            conversation = session.enrol(
                STREAM, "http://127.0.0.1", TOKEN.decode(), None, first_install=True
            )
            await drive_async(conversation, self._send)
        if self.scenario.selection is Selection.ROSTER:
            for number in self._crowd.numbers:
                self._service.store.enrol(STREAM, number)

    async def _send(self, request: Request) -> Response:
        return await call(self._app, request)

    async def _answer(self, asking: OpenRound) -> None:
        """Everyone answers; targets as often as the network makes them."""
        heard = await self._listen()
        for _ in range(ASKED):
            await self._pass_on(asking, self._answers_of_targets(heard))
        keys = self._service.streams[STREAM].desk.keys
        await self._pass_on(asking, self._crowd.records(asking, keys, self.scenario.targets))

    def _answers_of_targets(self, heard: list[Announcement]) -> list[bytes]:
        """What they have to send now, as records of a batch; all of it is seen on the wire."""
        records = []
        for number, (session, told) in enumerate(zip(self._sessions, heard, strict=True)):
            for asked in told.rounds:
                outcome = session.consider(told.pin, asked)
                if isinstance(outcome, Submission):
                    one = outcome.round
                    self.wire.append(
                        Sent(number, one.t, one.name, one.epsilon_nano, outcome.report)
                    )
                    records.append(session.account.number + outcome.mac + outcome.report)
        return records

    async def _listen(self) -> list[Announcement]:
        """What each target is told: on a roster one by one, else all the same."""
        if self.scenario.selection is Selection.OPEN:
            return [await self._rounds({})] * len(self._sessions)
        return [
            await self._rounds({"Ldp-Device": session.account.number.hex()})
            for session in self._sessions
        ]

    async def _rounds(self, headers: dict[str, str]) -> Announcement:
        path = f"/v1/streams/{STREAM}/rounds?after=0&wait=0"
        response = await self._send(Request("GET", path, headers))
        return Announcement.read(read_object(response, "rounds"))

    async def _pass_on(self, asking: OpenRound, records: Iterable[bytes]) -> None:
        body = b"".join(records)
        if body and self.coordinator.open is asking:
            path = f"/v1/streams/{STREAM}/rounds/{asking.name}/batch"
            response = await self._send(Request("POST", path, {}, body))
            assert response.status == 200, response.body


@dataclass(frozen=True)
class _DeviceClock:
    """The world's clock, as a device reads it."""

    clock: ManualClock

    def wall_ms(self) -> int:
        return self.clock.now_ms()

    def steady_ms(self) -> int:
        return self.clock.now_ms()


def _config(scenario: Scenario, folder: Path) -> Config:
    stream = StreamConfig(
        name=STREAM,
        values=Domain.of(LABELS),
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
    )
    limits = Limits(enrolments_per_second=10**6)
    return Config("127.0.0.1", 0, folder / "collector.sqlite", {}, limits, (stream,))
