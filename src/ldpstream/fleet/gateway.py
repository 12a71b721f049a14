"""A gateway: listens once for all its devices, and passes their reports on by the thousand.

It sees nothing that the collector would not see: reports are randomised and signed by the devices.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from ldpstream.device import AsyncDevice, Refused, Unreachable
from ldpstream.device.account import Submission
from ldpstream.device.answers import read_object, refusal_in
from ldpstream.device.backoff import pause_after, system_jitter
from ldpstream.device.batches import BATCH, pass_on
from ldpstream.device.exchange import AsyncTransport, Request, Response, drive_async
from ldpstream.device.rounds import Announcement
from ldpstream.errors import Mistake, Problem

CHECKS = 20
"""Times that the gateway asks before it believes that nobody is there."""
BREATH = 250
"""Devices that decide between two looks at the network."""
LONGEST_HOLD = 0.2
"""Seconds that a report waits for company: the round may end before the last device has decided."""


@dataclass
class Gateway:
    """For streams with open selection: there everyone is told the same."""

    transport: AsyncTransport
    url: str
    stream: str
    online: Callable[[], Iterable[AsyncDevice]]
    delivered: int = 0
    undelivered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    _serial: int = 0

    async def check(self) -> None:
        """Refuse a stream with a roster, which tells nothing to those it does not know."""
        response = await self._ask_again(CHECKS)
        if response.status == 400:
            raise Mistake(
                Problem.OPTION,
                option="--gateway",
                given="given",
                expected="it for a stream with open selection: a roster asks device by device",
            )

    async def run(self) -> None:
        """Listen and pass on until cancelled."""
        failures = 0
        while True:
            try:
                announcement = await self._listen()
                await self._answer(announcement)
                failures = 0
            except (Unreachable, Refused):
                failures += 1
                await asyncio.sleep(_pause(failures))

    async def _listen(self) -> Announcement:
        response = await self._ask(wait=30)
        if response.status != 200:
            raise refusal_in(response, "to list rounds")
        announcement = Announcement.read(read_object(response, "rounds"))
        self._serial = announcement.serial
        return announcement

    async def _ask_again(self, tries: int) -> Response:
        """What the collector says at once, though a request may be lost."""
        for failures in range(1, tries):
            with contextlib.suppress(Unreachable):
                return await self._ask(wait=0)
            await asyncio.sleep(_pause(failures))
        return await self._ask(wait=0)

    async def _ask(self, wait: int) -> Response:
        path = f"/v1/streams/{self.stream}/rounds?after={self._serial}&wait={wait}"
        return await self.transport.send(self.url, Request("GET", path, patience=wait + 10.0))

    async def _answer(self, announcement: Announcement) -> None:
        """Let every device decide, and pass reports on as they are made."""
        for asked in announcement.rounds:
            ready: list[tuple[AsyncDevice, Submission]] = []
            held_since = time.monotonic()
            for number, device in enumerate(self.online()):
                outcome = device.session.consider(announcement.pin, asked)
                if isinstance(outcome, Submission):
                    ready.append((device, outcome))
                elif isinstance(outcome, Refused):
                    self.refused[outcome.problem.code] += 1
                long_enough = time.monotonic() - held_since > LONGEST_HOLD
                if len(ready) == BATCH or (ready and long_enough):
                    await self.pass_on(ready)
                    ready, held_since = [], time.monotonic()
                elif number % BREATH == 0:
                    await asyncio.sleep(0)
            if ready:
                await self.pass_on(ready)

    async def pass_on(self, reports: list[tuple[AsyncDevice, Submission]]) -> None:
        """Send reports of one round, until they have arrived or the round is over."""
        path = reports[0][1].path.removesuffix("reports") + "batch"
        records = [device.session.account.number + one.mac + one.report for device, one in reports]
        device, one = reports[0]

        def round_is_over() -> bool:
            return device.session.account.now_ms() >= one.round.deadline_ms

        decided = await drive_async(
            pass_on(path, records, _pause, round_is_over),
            partial(self.transport.send, self.url),
        )
        first = 0
        for part in decided:
            self._count(part.response, reports[first : first + part.number])
            first += part.number
        self.undelivered += len(reports) - first

    def _count(self, response: Response, reports: list[tuple[AsyncDevice, Submission]]) -> None:
        if response.status != 200:
            self.undelivered += len(reports)
            return
        for device, one in reports:
            device.session.account.arrived(one.round)
        answer = read_object(response, "batch")
        counted = int(answer["accepted"]) + int(answer["repeated"])
        self.delivered += counted
        self.undelivered += len(reports) - counted


def _pause(failures: int) -> float:
    return pause_after(failures, 0.1, 0.0, system_jitter)
