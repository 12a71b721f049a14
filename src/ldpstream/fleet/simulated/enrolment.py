"""The enrolment of simulated devices: one by one over HTTP, as keys are issued, many at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ldpstream.device.answers import read_keys, read_object, refusal_in
from ldpstream.device.batches import insist
from ldpstream.device.exchange import (
    LARGEST_ANSWER,
    Address,
    AsyncTransport,
    Request,
    drive_async,
    sleep_async,
    unreachable,
)
from ldpstream.errors import Mistake, Problem
from ldpstream.fleet.deliveries import backoff
from ldpstream.fleet.simulated.devices import Devices
from ldpstream.protocol.answers import Refused
from ldpstream.protocol.identity import enrolment_secret, number_of
from ldpstream.protocol.messages import Enrol
from ldpstream.protocol.names import shown
from ldpstream.protocol.terms import SelectionMethod, Terms

AT_ONCE = 64
PATIENCE_SECONDS = 60.0
"""How long one enrolment is retried."""
SAVE_EVERY = 100_000
"""Enrolments after which the state is saved: what a crash may cost."""


@dataclass
class FleetEnrolment:
    """Enrols the devices that have no key yet."""

    devices: Devices
    transport: AsyncTransport
    url: str
    stream: str
    token: str
    level_of: Callable[[int], str]
    """The level of privacy that the user of a row chooses."""
    enrolled: Callable[[int], None]
    """Called with the number of devices that are enrolled."""
    save: Callable[[], None]

    async def run(self) -> Terms:
        """Enrol all devices, the first one alone, so that a mistake is reported once."""
        origin = Address.of(self.url).origin
        if self.devices.origin not in ("", origin):
            raise Mistake(
                Problem.OPTION,
                option="--state",
                given=f"a fleet of {self.devices.origin}",
                expected=f"one of {origin}, or another file",
            )
        self.devices.origin = origin
        missing = iter(np.flatnonzero(~self.devices.enrolled).tolist())
        await self._enrol_one(next(missing, 0))
        self._done = int(np.count_nonzero(self.devices.enrolled))
        terms = self.devices.terms
        assert terms is not None
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(self._enrol(missing))
        except BaseExceptionGroup as faults:
            raise faults.exceptions[0] from None
        finally:
            self.save()
        return terms

    async def _enrol(self, rows: Iterator[int]) -> None:
        for row in rows:
            await self._enrol_one(row)
            self._done += 1
            if self._done % 1000 == 0:
                self.enrolled(self._done)
            if self._done % SAVE_EVERY == 0:
                self.save()

    async def _enrol_one(self, row: int) -> None:
        devices, end = self.devices, time.monotonic() + PATIENCE_SECONDS
        shown_once, level = shown_by(devices, row, self.stream), self.level_of(row)
        number = number_of(shown_once)
        request = Request.of(Enrol(self.stream, self.token, shown_once, level))
        response = await drive_async(
            insist(request, backoff, lambda: time.monotonic() > end),
            partial(self.transport.send, self.url),
            sleep_async,
        )
        if response is None:
            raise unreachable(self.url, "no enrolment for a minute")
        if response.status not in (200, 201):
            raise refusal_in(response, "the enrolment")
        answer = read_object(response, "enrolment", LARGEST_ANSWER)
        if devices.terms is None:
            devices.terms = _with_slots(Terms.read(answer.get("terms")))
        if answer.get("pin") != devices.terms.pin:
            raise Refused(Problem.ANSWER_MALFORMED, what="pin", given=shown(answer.get("pin")))
        devices.numbers[row] = np.frombuffer(number, np.uint8)
        devices.levels[row] = _place(devices.terms, level)
        take_keys(devices, row, answer)


def shown_by(devices: Devices, row: int, stream: str) -> bytes:
    """Return what a device shows to enrol and to renew its key."""
    secret = devices.secrets[row].tobytes()
    return enrolment_secret(secret, devices.origin, stream, rejoins=0)


def take_keys(devices: Devices, row: int, answer: dict[str, Any]) -> None:
    """Keep the keys that a device is given."""
    key, slot_key = read_keys(answer, devices.numbers[row].tobytes())
    devices.keys[row] = np.frombuffer(key, np.uint8)
    devices.slot_keys[row] = np.frombuffer(slot_key, np.uint8)


def _place(terms: Terms, level: str) -> int:
    """Return the place of a level among the strata of the terms."""
    return [one.level for one in terms.strata].index(terms.at_level(level).level)


def _with_slots(terms: Terms) -> Terms:
    if terms.selection is SelectionMethod.SLOTS:
        return terms
    raise Mistake(
        Problem.OPTION,
        option="--simulated",
        given=f"given for {terms.stream}, which asks its devices",
        expected="a stream with slots, or at most 20,000 devices without it",
    )
