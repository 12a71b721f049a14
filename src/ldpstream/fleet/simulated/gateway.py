"""A gateway of simulated devices: it draws, signs and sends the reports of a moment together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes, Indexes
from ldpstream.collector.credentials.device_keys import KeyHolders, due
from ldpstream.device.batches import BATCH
from ldpstream.device.clock import LabelTime
from ldpstream.device.exchange import AsyncTransport
from ldpstream.fleet.deliveries import Deliveries
from ldpstream.fleet.simulated.devices import Devices
from ldpstream.fleet.simulated.updates import fetch_successor, renew_keys
from ldpstream.oracles.lab_half import encode_table
from ldpstream.protocol.authentication import proof_of, report_prefix, rounds_message
from ldpstream.protocol.notice import Notice
from ldpstream.protocol.slots import moment_ms
from ldpstream.protocol.strata import round_name
from ldpstream.protocol.terms import Terms

Slots = NDArray[np.uint64]
Read = Callable[[int, Indexes], NDArray[Any] | None]
"""A function that returns the indexes of the values that some devices hold at a timestamp."""
Tags = Callable[[Terms, Indexes], Bytes]
"""A function that returns the tags of devices, under terms whose reports have them."""

TICK = 0.25
"""Seconds between two batches: reports that are due in between go together."""
LAST_CALL = 7 / 8
"""The part of the time until the deadline after which nothing is drawn: it might arrive late."""
AT_ONCE = 1 << 16
"""Devices whose slots are computed together, which bounds the memory."""


class SimulatedGateway(Deliveries):
    """Lets each device report in its slot, at its own moment, if a window has passed since.

    All of its devices go over to new terms together.
    """

    def __init__(
        self, transport: AsyncTransport, url: str, devices: Devices, read: Read, tags: Tags
    ) -> None:
        self.label = LabelTime(devices.clock)
        terms = devices.terms
        assert terms is not None
        super().__init__(transport, url, terms.stream, heard=self._heed)
        self._devices = devices
        self._read, self._tags = read, tags
        self._places = np.arange(len(terms.values))
        """The index, under the terms in force, of each value of the first terms."""
        self._rng = np.random.default_rng()
        number, key = devices.numbers[0].tobytes(), devices.keys[0].tobytes()
        self._proof = proof_of(number, key, rounds_message(terms.stream, 0))
        self._told = Notice()
        self._fetching = False
        assert terms.deadline_ms is not None
        self._moments = np.array(
            [moment_ms(one.tobytes(), terms.stream, terms.deadline_ms) for one in devices.secrets]
        )

    def _heed(self, notice: Notice) -> None:
        self._told = notice
        if notice.now_ms is not None:
            self.label.correct(notice.now_ms)

    @property
    def _terms(self) -> Terms:
        assert self._devices.terms is not None
        return self._devices.terms

    async def run(self) -> None:
        """Report, timestamp after timestamp, until cancelled."""
        t = max(1, self._terms.timestamp_at(self.label.now_ms()))
        async with asyncio.TaskGroup() as sending:
            while True:
                wait_ms = self._terms.start_of(t) - self.label.now_ms()
                await asyncio.sleep(max(0, wait_ms) / 1000)
                self._go_over(t)
                if await self.goes_on(self._proof, self._terms.version):
                    await self._report(t, sending)
                t = max(t + 1, self._terms.timestamp_at(self.label.now_ms()))

    def _go_over(self, t: int) -> None:
        """Put a successor in force when its timestamp has come."""
        before, following = self._terms, self._devices.successor
        if following is None or following.succeeds is None or t < following.succeeds.from_t:
            return
        if following.domain is not None:
            mapped = [following.domain.index(name) for name in following.succeeds.labels or ()]
            self._places = np.array(mapped)[self._places]
        assert before.stream == following.stream
        self._devices.terms, self._devices.successor = following, None

    async def _report(self, t: int, sending: asyncio.TaskGroup) -> None:
        """Let devices report whose turn it is; those without budget yet wait within t."""
        terms, waiting = self._terms, self.due(t)
        start = terms.start_of(t)
        last_call = start + LAST_CALL * (terms.deadline_of(t) - start)
        spans = np.array([one.promise.span for one in terms.strata])
        while len(waiting) and (now := self.label.now_ms()) < last_call:
            levels = self._devices.levels[waiting]
            ready = start + self._moments[waiting] <= now
            ready &= self._devices.free(waiting, spans[levels])
            for place, stratum in enumerate(terms.strata):
                rows = waiting[ready & (levels == place)]
                for part in np.split(rows, range(BATCH, len(rows), BATCH)):
                    records = self._records(t, part, stratum)
                    if len(records):
                        sending.create_task(self._deliver(t, part, records, stratum, sending))
            waiting = waiting[~ready]
            await asyncio.sleep(TICK)

    def due(self, t: int) -> Indexes:
        """Return the devices whose turn timestamp t is, each by the window of its level."""
        turns = np.zeros(len(self._devices), bool)
        for place, stratum in enumerate(self._terms.strata):
            members = self._devices.levels == place
            if members.any():
                turns |= members & due(self._slots, stratum.window, t)
        return np.flatnonzero(turns)

    @lru_cache(16)  # noqa: B019 - a gateway lives as long as its process
    def _slots(self, window: int, epoch: int) -> Slots:
        parts = np.split(self._devices.slot_keys, range(AT_ONCE, len(self._devices), AT_ONCE))
        return np.concatenate([KeyHolders(keys).slots(window, epoch) for keys in parts])

    def _records(self, t: int, rows: Indexes, stratum: Terms) -> Bytes:
        """Return the signed reports of devices that have the budget, once it is debited."""
        values = self._read(t, rows)
        if values is None or not len(rows):
            return np.empty((0, 0), np.uint8)
        lab = stratum.oracle.lab(len(stratum.values), stratum.epsilon)
        held = values if stratum.domain is None else self._places[values]
        reports = encode_table(lab.perturb(held, self._rng), lab.device)
        if stratum.tags:
            reports = np.column_stack([reports, self._tags(stratum, rows)])
        self._devices.debit(rows)
        name = round_name(t, stratum.suffix)
        prefix = report_prefix(self.stream, stratum.pin, name, stratum.level)
        macs = KeyHolders(self._devices.keys[rows]).macs(prefix, reports)
        return np.hstack([self._devices.numbers[rows], macs, reports])

    async def _deliver(
        self, t: int, rows: Indexes, records: Bytes, stratum: Terms, sending: asyncio.TaskGroup
    ) -> None:
        def is_over() -> bool:
            return self.label.now_ms() >= stratum.deadline_of(t)

        packed = [record.tobytes() for record in records]
        await self.send(round_name(t, stratum.suffix), packed, is_over, self._proof)
        if self._told.renew:
            sending.create_task(renew_keys(self.transport, self.url, self._devices, rows))
        pin = self._told.successor
        if pin is not None and pin != self._terms.pin and self._devices.successor is None:
            await self._fetch(pin)

    async def _fetch(self, pin: str) -> None:
        """Fetch new terms once for all devices; they go over if the promise is not looser."""
        if not self._fetching:
            self._fetching = True
            self._devices.successor = await fetch_successor(
                self.transport, self.url, self._devices, pin
            )
            self._fetching = False


def groups_of(devices: Devices, groups: int) -> NDArray[np.uint8]:
    """Return the group of a vocabulary that each device belongs to."""
    parts = np.split(devices.slot_keys, range(AT_ONCE, len(devices), AT_ONCE))
    found = [KeyHolders(keys).groups(groups) for keys in parts]
    return np.concatenate(found).astype(np.uint8)
