"""A fleet: thousands of real devices in one process, over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol, TypeVar

from ldpstream.device import Acceptance, AsyncDevice, Refused, Terms, Unreachable
from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.device.exchange import AsyncTransport
from ldpstream.device.session import PollResult
from ldpstream.domain import Domain
from ldpstream.errors import Mistake, Problem
from ldpstream.fleet.deliveries import reason_of
from ldpstream.fleet.fault_injection import FaultRates, FaultyTransport, LostMessage
from ldpstream.fleet.folders import memory_folder
from ldpstream.fleet.gateway import Gateway
from ldpstream.fleet.levels import LevelShares
from ldpstream.fleet.reader import JudgedRelease, ReleaseReader
from ldpstream.fleet.text_reader import reader_of
from ldpstream.fleet.users import Users
from ldpstream.lab.metrics import Metrics
from ldpstream.lab.parts import Parts
from ldpstream.lab.vocabulary import Found
from ldpstream.mechanisms.queries import query_of
from ldpstream.numeric import BinnedRange, Range
from ldpstream.open_files import allow_connections
from ldpstream.protocol.messages import TokenProof
from ldpstream.protocol.terms import Value
from ldpstream.streams.stream import Stream
from ldpstream.vocabulary import Vocabulary

ENROLLING_AT_ONCE = 64
ENROLLING_BESIDE = 8
"""The limit while other devices already report, which must not wait for long."""
MOST_REAL = 20_000
"""Devices that a command makes real, each with a ledger file; more of them are simulated."""

Progress = Callable[[str, int, int], None]
"""Called with a stage, how much of it is done, and the total (0: unknown)."""
Watch = Callable[[JudgedRelease], None]
T = TypeVar("T")


@dataclass(frozen=True)
class FleetPlan:
    """The settings of a run."""

    url: str
    stream: str
    """The collector's name for the stream."""
    token: str
    source: Stream
    """Where the values come from."""
    devices: int
    seconds: float
    faults: FaultRates = field(default_factory=FaultRates)
    gateway: bool = False
    gradual: bool = False
    """With a gateway: devices report as soon as they are enrolled, while others still enrol."""
    seed: int = 0
    read_token: str = field(default="", repr=False)
    """To judge the releases of a private stream."""
    plain_http: bool = False
    """Whether devices enrol over plain http outside of this machine."""
    folder: Path | None = None
    """Where the devices' files are kept; None is in memory, and gone at the end."""
    state: Path | None = None
    """Where simulated devices are kept; None is in memory, and gone at the end."""
    levels: LevelShares = field(default_factory=LevelShares)
    """The levels of privacy that users choose."""
    parts: Parts | None = None
    """The public attributes of users, who hold other labels by them, or None if they have none."""


@dataclass(frozen=True)
class FleetOutcome:
    """The results of a run."""

    devices: int
    seconds: float
    timestamps: int
    delivered: int
    undelivered: int
    refused: dict[str, int]
    """How often devices refused or were refused, by error code."""
    metrics: Metrics | None
    judged: tuple[JudgedRelease, ...]
    groups: dict[str, Metrics]
    """Of the groups that were released, written such as "country:de"."""
    found: Found | None = None
    """Of a stream of texts: which were found."""


class StoppedEarly(Exception):
    """The fleet was stopped before its devices took part, so that it has no results."""


class _Member:
    """One device with its connection."""

    def __init__(self, path: Path, line: FaultyTransport) -> None:
        self.path = path
        self.line = line
        if path.exists():
            self.device = AsyncDevice.open(path, transport=line)
        else:  # a user who has never been here before installs the application
            self.device = AsyncDevice.create(path, first_install=True, transport=line)
        self.task: asyncio.Task[None] | None = None

    async def leave(self) -> None:
        """Stop all use of the device, so that its file may be deleted."""
        self.line.offline = True  # for good: faults come and go for those who are here
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])


class ReportSender(Protocol):
    """What sends the reports of all devices, and counts what became of them."""

    delivered: int
    undelivered: int
    refused: Counter[str]

    async def run(self) -> None: ...


class Fleet:
    """A fleet of devices that runs a plan once."""

    def __init__(
        self,
        plan: FleetPlan,
        progress: Progress = lambda *_: None,
        watch: Watch = lambda _: None,
        transport: AsyncTransport | None = None,
    ) -> None:
        if plan.devices < 1:
            raise Mistake(
                Problem.OPTION, option="--devices", given=plan.devices, expected="1 or more"
            )
        self._plan = plan
        self._progress = progress
        self._watch = watch
        self._transport = transport or AsyncHttpTransport()
        self._chance = Random(plan.seed)  # noqa: S311 - for faults, not for reports
        self._users = Users(plan.source, plan.devices, plan.seed, plan.parts)
        self._range: Range | None = None
        self._names: tuple[str, ...] = ()
        """The stream's names of the source's labels: names outlive a change of labels."""
        self._members: dict[int, _Member] = {}
        """By user."""
        self._made = 0
        self._stopped = asyncio.Event()
        self.sender: ReportSender | None = None
        """The gateway, once the devices take part, if there is one."""
        self._delivered = self._undelivered = 0
        self._refused: Counter[str] = Counter()

    @property
    def most_connections(self) -> int:
        """How many connections are open at most: each device keeps one."""
        return self._plan.devices

    def stop(self) -> None:
        """End as if the time were up; before the devices take part, raise `StoppedEarly`."""
        self._stopped.set()

    async def run(self) -> FleetOutcome:
        """Enrol the devices, run them for the plan's seconds, and judge what was released."""
        allow_connections(self.most_connections)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._transport.close)
            self._folder = stack.enter_context(_folder(self._plan.folder))
            terms, gateway = await self._unless_stopped(self._prepare())
            self.sender = gateway
            started = time.monotonic()
            query = query_of(terms.values)
            token = self._plan.read_token
            proof = TokenProof(token) if token else None
            reader = reader_of(terms, self._transport, self._plan.url, self._users, query, proof)
            await self._take_part(terms, reader, gateway)
            seconds = time.monotonic() - started
        return FleetOutcome(
            self._plan.devices,
            seconds,
            reader.seen,
            self._delivered,
            self._undelivered,
            dict(self._refused),
            reader.metrics(self._plan.devices),
            tuple(reader.judged),
            reader.metrics_of_groups(self._plan.devices),
            reader.found,
        )

    async def _unless_stopped(self, work: Awaitable[T]) -> T:
        working, stopping = asyncio.ensure_future(work), asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise StoppedEarly
        finally:
            working.cancel()
            stopping.cancel()
            await asyncio.wait([working, stopping])

    async def _prepare(self) -> tuple[Terms, ReportSender | None]:
        """Enrol the devices, only the first of them if the others follow gradually."""
        terms = await self._enrol_first()
        if not self._plan.gradual:
            await self._enrol_others(ENROLLING_AT_ONCE)
        if not self._plan.gateway:
            return terms, None
        line = FaultyTransport(self._transport, self._plan.faults, self._chance)
        gateway = Gateway(line, self._plan.url, self._plan.stream, self._online)
        gateway.check()
        return terms, gateway

    async def _enrol_first(self) -> Terms:
        """Enrol one device alone, so that a mistake is reported once."""
        first = self._members[0] = await self._join(0)
        terms = first.device.terms
        assert terms is not None
        self._map_labels(terms)
        return terms

    async def _enrol_others(self, at_once: int) -> None:
        gate = asyncio.Semaphore(at_once)

        async def join(user: int) -> None:
            async with gate:
                self._members[user] = await self._join(user)
            self._progress("enrolled", self._made, self._plan.devices)

        await asyncio.gather(*(join(user) for user in range(1, self._plan.devices)))

    async def _enrol_gradually(self) -> None:
        await self._enrol_others(ENROLLING_BESIDE)
        await self._stopped.wait()

    def _check_attributes(self, terms: Terms) -> None:
        """Refuse attributes that the stream does not have."""
        known = [one.name for one in (terms.attributes.each if terms.attributes else ())]
        for one in self._plan.parts.attributes.each if self._plan.parts else ():
            if one.name not in known:
                only = f"only {', '.join(known)}" if known else "no attributes"
                expected = f"another, or none: {terms.stream} has {only}"
                raise Mistake(
                    Problem.OPTION, option="--attribute", given=one.name, expected=expected
                )

    def _map_labels(self, terms: Terms) -> None:
        """Map the source's labels to values of the stream, or refuse them; attributes, too."""
        self._check_attributes(terms)
        domain = self._plan.source.domain
        if isinstance(terms.values, Vocabulary):
            self._names = domain.labels  # any label is a text
            return
        if isinstance(terms.values, Range):
            self._range = Range(terms.values.low, terms.values.high, len(domain) - 1)
            if isinstance(terms.values, BinnedRange) and len(domain) < terms.values.bins:
                raise Mistake(
                    Problem.STREAM_PARAMETER,
                    stream=self._plan.source.name,
                    name="the number of labels",
                    given=len(domain),
                    expected=f"a stream with at least as many as there are bins,"
                    f" {terms.values.bins}: --stream latency",
                )
        elif not (terms.values == domain or _is_numbered(domain, len(terms.values))):
            raise Mistake(
                Problem.STREAM_PARAMETER,
                stream=self._plan.source.name,
                name="the list of labels",
                given=_listed(domain),
                expected=f"the collector's, {_listed(terms.values)}, or numbers that stand for them"
                f" in order: --stream zipf:labels={len(terms.values)}",
            )
        self._names = terms.names

    def _value(self, user: int, t: int) -> Value | None:
        """Return what a user holds: a label, or the number of that level in a stream of numbers."""
        index = self._users.value(user, t)
        return None if index is None else self._held(index)

    def _held(self, index: int) -> Value:
        return self._names[index] if self._range is None else self._range.value(index)

    async def _join(self, user: int) -> _Member:
        self._made += 1
        line = FaultyTransport(self._transport, self._plan.faults, self._chance)
        member = _Member(self._folder / file_name(self._made), line)
        while True:
            try:
                await self._enrol(member.device, self._plan.levels.of(user, self._plan.seed))
                break
            except LostMessage:  # the device has backed off between its own retries
                continue
        if self._plan.parts is not None:
            combination = int(self._users.combinations[user])
            member.device.describe(**self._users.described(combination))
        member.device.follow(lambda: self._value(user, member.device.t))
        return member

    async def _enrol(self, device: AsyncDevice, level: str) -> None:
        plan = self._plan
        await device.enrol(
            plan.url,
            plan.stream,
            plan.token,
            plain_http=plan.plain_http,
            level=level,
            accept=Acceptance.NOT_LOOSER,
        )

    async def _take_part(
        self, terms: Terms, reader: ReleaseReader, gateway: ReportSender | None
    ) -> None:
        if gateway is not None:
            workers = [asyncio.create_task(gateway.run())]
            if self._plan.gradual:
                workers.append(asyncio.create_task(self._enrol_gradually()))
        else:
            for member in self._members.values():
                member.task = asyncio.create_task(self._run_member(member))
            workers = []
        workers.append(asyncio.create_task(self._change_weather(terms)))
        workers.append(asyncio.create_task(self._read(terms, reader)))
        workers.append(asyncio.create_task(self._stop_early()))
        await asyncio.wait(workers, timeout=self._plan.seconds, return_when=asyncio.FIRST_COMPLETED)
        workers += [member.task for member in self._members.values() if member.task is not None]
        for worker in workers:
            worker.cancel()
        ends = await asyncio.gather(*workers, return_exceptions=True)
        await self._read_new(reader)
        if gateway is not None:
            self._delivered, self._undelivered = gateway.delivered, gateway.undelivered
            self._refused = gateway.refused
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _stop_early(self) -> None:
        await self._stopped.wait()

    def _online(self) -> Iterable[AsyncDevice]:
        members = list(self._members.values())  # more may come while these decide
        return (member.device for member in members if not member.line.offline)

    async def _run_member(self, member: _Member) -> None:
        """Run one device until it is cancelled, and count its outcomes."""
        await member.device.run(tell=self._count)

    def _count(self, heard: PollResult) -> None:
        self._delivered += len(heard.delivered)
        self._undelivered += len(heard.undelivered)
        for fault in (*heard.refusals, *heard.undelivered):
            self._refused[reason_of(fault)] += 1

    async def _change_weather(self, terms: Terms) -> None:
        """Draw at each timestamp who is offline, who leaves and who joins."""
        faults = self._plan.faults
        while True:
            for member in self._members.values():
                member.line.offline = self._chance.random() < faults.offline
            leaving = [user for user in sorted(self._members) if self._leaves()]
            for user in leaving:
                with contextlib.suppress(Unreachable):  # nobody can join now, so nobody leaves
                    await self._replace(user)
            await asyncio.sleep(_until_next(terms))

    async def _replace(self, user: int) -> None:
        member = await self._join(user)
        if not self._plan.gateway:
            member.task = asyncio.create_task(self._run_member(member))
        left, self._members[user] = self._members[user], member
        await left.leave()
        if self._plan.folder is None:
            left.path.unlink()

    def _leaves(self) -> bool:
        return self._chance.random() < self._plan.faults.join

    async def _read(self, terms: Terms, reader: ReleaseReader) -> None:
        while True:
            await asyncio.sleep(_until_next(terms))
            await self._read_new(reader)

    async def _read_new(self, reader: ReleaseReader) -> None:
        with contextlib.suppress(Unreachable, Refused):
            for judged in await reader.read():
                self._watch(judged)
                self._progress(f"t={judged.t}", 0, 0)


def run_fleet(
    plan: FleetPlan,
    progress: Progress = lambda *_: None,
    watch: Watch = lambda _: None,
    kind: type[Fleet] = Fleet,
) -> FleetOutcome:
    """Run a plan on an event loop of its own. Ctrl-C ends it early, with the results so far.

    If there are none yet, since devices still enrol, it raises `KeyboardInterrupt`.
    """

    async def live() -> FleetOutcome:
        fleet = kind(plan, progress, watch)
        with contextlib.suppress(ValueError, RuntimeError):  # only the main thread gets signals
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, fleet.stop)
        return await fleet.run()

    try:
        return asyncio.run(live())
    except StoppedEarly:
        raise KeyboardInterrupt from None


def file_name(number: int) -> str:
    """Return the file name of the device that is made first (1), second (2), ..."""
    return f"{number}.ldp"


@contextlib.contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(dir=memory_folder()) as made:
        yield Path(made)


def _until_next(terms: Terms) -> float:
    """Return the seconds until the next timestamp has begun."""
    passed = (time.time() * 1000 - terms.start_ms) % terms.interval_ms
    return (terms.interval_ms - passed) / 1000 + 0.001


def _is_numbered(domain: Domain, labels: int) -> bool:
    """Return whether the labels are 0, 1, ..., as in built-in streams, and fit any of that size."""
    return domain == Domain.numbered(labels)


def _listed(domain: Domain) -> str:
    """Return the first few labels, and how many there are.

    >>> _listed(Domain.numbered(12))
    '0, 1, 2, 3 ... (12)'
    """
    first = ", ".join(domain.labels[:4])
    return first if len(domain) <= 4 else f"{first} ... ({len(domain)})"
