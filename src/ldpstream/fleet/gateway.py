"""A gateway that forwards the reports of its devices by the thousand.

With open selection it listens once for all of them. With slots nobody asks: at the beginning of
each timestamp it lets those report whose turn it is.

It sees nothing that the collector would not see: reports are randomised and signed by the devices.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial

from ldpstream.device import AsyncDevice, LedgerUnusable, Refused, Unreachable
from ldpstream.device.account import Account, CommittedReport, Outcome
from ldpstream.device.answers import read_object, refusal_in
from ldpstream.device.batches import BATCH
from ldpstream.device.exchange import PATIENCE, AsyncTransport, Request, drive_async, never
from ldpstream.device.rules import TooEarly
from ldpstream.errors import Mistake, Problem
from ldpstream.fleet.deliveries import Deliveries, backoff
from ldpstream.machine_clock import SystemClock
from ldpstream.protocol.answers import Announcement, Round
from ldpstream.protocol.limits import LONGEST_WAIT
from ldpstream.protocol.messages import ListRounds
from ldpstream.protocol.notice import Notice
from ldpstream.protocol.terms import SelectionMethod

BREATH = 250
"""How many devices decide before the event loop serves the network again."""
LONGEST_DELIVERY = 30.0
"""Seconds for which a batch is retried at most, whatever deadline the collector has given."""
LONGEST_HOLD = 0.2
"""Seconds that a report waits for others: the round may end before the last device has decided."""
SHORTEST_HOLD = 0.05
"""Seconds before devices that were too early decide again, so that several go together."""
LAST_CALL = 0.3
"""The share of an interval, before a deadline, in which no more devices decide: a report that is
drawn but arrives too late spends budget for nothing."""
DELIVERIES = 2
"""How many deliveries as slow as the slowest of late must fit in before a deadline."""
UPDATES_AT_ONCE = 16
"""How many devices fetch terms or renew their keys at a time."""
FORGETTING = 0.8
"""How much of the slowest delivery is remembered from timestamp to timestamp."""


class Gateway(Deliveries):
    """A gateway for a stream in which all devices hear the same: open selection, or slots."""

    def __init__(
        self,
        transport: AsyncTransport,
        url: str,
        stream: str,
        online: Callable[[], Iterable[AsyncDevice]],
    ) -> None:
        super().__init__(transport, url, stream, heard=self._heed)
        self.online = online
        self.clock = SystemClock()
        self._serial = 0
        self._answered_t = 0
        self._told = Notice()
        """The last notice: what the devices of the last batch are to know."""
        self._updates: set[asyncio.Task[None]] = set()
        self._slowest = 0.0
        """Seconds of the slowest delivery of late: a busy machine needs more time for the next."""

    def check(self) -> None:
        """Refuse a stream with a roster, which asks each device by itself."""
        poller = self._poller()
        if poller is not None and poller.enrolled.terms.selection is SelectionMethod.ROSTER:
            raise Mistake(
                Problem.OPTION,
                option="--gateway",
                given="given",
                expected="it for slots or open selection: a roster asks device by device",
            )

    async def run(self) -> None:
        """Listen for rounds and forward reports until cancelled."""
        failures = 0
        try:
            while True:
                try:
                    announcement = await self._listen()
                    await self._answer(announcement, self.clock.steady_ms())
                    failures = 0
                except (Unreachable, Refused):
                    failures += 1
                    await asyncio.sleep(backoff(failures))
        finally:
            for update in self._updates:
                update.cancel()

    def _poller(self) -> Account | None:
        """Any device that is online: by its key the gateway may hear of a private stream."""
        device = next(iter(self.online()), None)
        return None if device is None else device.session.account

    async def _listen(self) -> Announcement:
        """Return the rounds to answer, as soon as there are new ones."""
        poller = self._poller()
        if poller is not None and poller.enrolled.terms.selection is SelectionMethod.SLOTS:
            return await self._next_timestamp(poller)
        proof = None if poller is None else poller.proof(self._serial)
        version = 1 if poller is None else poller.terms.version
        message = ListRounds(self.stream, self._serial, LONGEST_WAIT, proof, version)
        request = Request.of(message, LONGEST_WAIT + PATIENCE)
        response = await self.transport.send(self.url, request)
        if response.status != 200:
            raise refusal_in(response, "to list rounds")
        announcement = Announcement.read(read_object(response, "rounds"))
        self._serial = announcement.serial
        return announcement

    async def _next_timestamp(self, poller: Account) -> Announcement:
        """Wait until a timestamp begins that was not answered yet; its round follows from it."""
        terms = poller.enrolled.terms
        t = max(poller.t, 1)
        if t == self._answered_t:
            t += 1
        wait_ms = terms.start_of(t) - poller.label.now_ms()
        await asyncio.sleep(max(0, wait_ms) / 1000)
        self._answered_t = t
        if not await self.goes_on(poller.proof(), terms.version):
            return Announcement(0, terms.pin, (), poller.label.now_ms())
        # All of its devices go by one clock: one that lags behind would take its turn for ahead.
        return Announcement(0, terms.pin, (Round.of_slot(terms, t),), poller.label.now_ms())

    async def _answer(self, announcement: Announcement, heard_ms: int) -> None:
        """Let every device decide; if it is too early for some, let those decide again later."""
        self._slowest *= FORGETTING
        for asked in announcement.rounds:
            devices: Iterable[AsyncDevice] = self.online()
            while early := await self._let_decide(devices, announcement, asked, heard_ms):
                soonest = min(wait for _, wait in early)
                await asyncio.sleep(min(max(soonest, SHORTEST_HOLD), LONGEST_HOLD))
                waiting = {device for device, _ in early}  # some may have left in the meantime
                devices = (device for device in self.online() if device in waiting)

    async def _let_decide(
        self,
        devices: Iterable[AsyncDevice],
        announcement: Announcement,
        asked: Round | Refused,
        heard_ms: int,
    ) -> list[tuple[AsyncDevice, float]]:
        """Forward reports as they are made; return the devices that must wait, and how long (s)."""
        ready: list[tuple[AsyncDevice, CommittedReport]] = []
        early: list[tuple[AsyncDevice, float]] = []
        held_since = time.monotonic()
        for number, device in enumerate(devices):
            device.session.hear(announcement, heard_ms)
            pin, own = self._asked_of(device, announcement.pin, asked)
            if isinstance(own, Round) and self._is_last_call(device, own):
                early.clear()
                break
            match self._decision(device, pin, own):
                case CommittedReport() as submission:
                    ready.append((device, submission))
                case TooEarly(wait_ms=wait_ms):
                    early.append((device, wait_ms / 1000))
                case Refused() | LedgerUnusable() as refusal:
                    self.refused[refusal.problem.code] += 1
            long_enough = time.monotonic() - held_since > LONGEST_HOLD
            if len(ready) == BATCH or (ready and long_enough):
                await self.pass_on(ready)
                ready, held_since = [], time.monotonic()
            elif number % BREATH == 0:
                await asyncio.sleep(0)
        if ready:
            await self.pass_on(ready)
        return early

    @staticmethod
    def _asked_of(
        device: AsyncDevice, pin: str, asked: Round | Refused
    ) -> tuple[str, Round | Refused]:
        """Return what a device is asked: with slots, the round of its own terms and level."""
        enrolled = device.session.account.enrolled
        if isinstance(asked, Refused) or enrolled.terms.selection is not SelectionMethod.SLOTS:
            return pin, asked
        terms = enrolled.terms_at(asked.t)
        return terms.pin, Round.of_slot(terms, asked.t)

    @staticmethod
    def _decision(
        device: AsyncDevice, pin: str, asked: Round | Refused
    ) -> Outcome | LedgerUnusable:
        """Let a device decide; one whose disk fails does not stop the others."""
        try:
            return device.session.consider(pin, asked)
        except LedgerUnusable as fault:
            return fault

    async def pass_on(self, reports: list[tuple[AsyncDevice, CommittedReport]]) -> None:
        """Send reports of one timestamp, each stratum's to its round, until they have arrived."""
        for name in dict.fromkeys(one.round.name for _, one in reports):
            await self._pass_on([pair for pair in reports if pair[1].round.name == name])

    async def _pass_on(self, reports: list[tuple[AsyncDevice, CommittedReport]]) -> None:
        records = [one.message.record for _, one in reports]
        device, one = reports[0]
        account, end = device.session.account, time.monotonic() + LONGEST_DELIVERY

        def round_is_over() -> bool:
            return account.label.now_ms() >= one.round.deadline_ms or time.monotonic() > end

        began, self._told = time.monotonic(), Notice()
        judged = await self.send(one.round.name, records, round_is_over, account.proof())
        self._slowest = max(self._slowest, time.monotonic() - began)
        for (device, one), arrived in zip(reports, judged, strict=True):
            device.session.value.tell()
            if arrived:
                device.session.account.arrived(one.round)
                device.session.updates.hear(self._told)
        waiting = [device for device, _ in reports if device.session.updates.due]
        if waiting:
            update = asyncio.create_task(self._run_updates(waiting))
            self._updates.add(update)
            update.add_done_callback(self._updates.discard)

    async def _run_updates(self, devices: list[AsyncDevice]) -> None:
        """Let devices fetch new terms and renew their keys, while reports go on."""
        gate = asyncio.Semaphore(UPDATES_AT_ONCE)
        send = partial(self.transport.send, self.url)

        async def run(device: AsyncDevice) -> None:
            async with gate:
                await drive_async(device.session.updates.run(never), send)

        await asyncio.gather(*map(run, devices))

    def _is_last_call(self, device: AsyncDevice, asked: Round) -> bool:
        account = device.session.account
        usual_ms = LAST_CALL * account.enrolled.terms.interval_ms
        margin_ms = max(usual_ms, 1000 * DELIVERIES * self._slowest)
        return account.label.now_ms() > asked.deadline_ms - margin_ms

    def _heed(self, notice: Notice) -> None:
        self._told = notice
        poller = self._poller()
        if poller is not None and notice.now_ms is not None:
            poller.label.correct(notice.now_ms)
