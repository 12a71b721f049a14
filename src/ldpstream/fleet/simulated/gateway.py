"""A gateway of simulated devices: it draws, signs and sends the reports of a moment together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes
from ldpstream.collector.credentials.device_keys import KeyedHashes, due
from ldpstream.device.batches import BATCH
from ldpstream.device.clock import LabelTime
from ldpstream.device.exchange import AsyncTransport
from ldpstream.fleet.deliveries import Deliveries
from ldpstream.fleet.simulated.devices import Devices
from ldpstream.oracles.lab_half import encode_table
from ldpstream.protocol.authentication import report_prefix, rounds_mac
from ldpstream.protocol.messages import DeviceProof
from ldpstream.protocol.notice import Notice
from ldpstream.protocol.slots import moment_ms, round_name
from ldpstream.protocol.terms import Terms

Rows = NDArray[np.int64]
Slots = NDArray[np.uint64]
Read = Callable[[int, Rows], NDArray[Any] | None]
"""A function that returns the indexes of the values that some devices hold at a timestamp."""

TICK = 0.25
"""Seconds between two batches: reports that are due in between go together."""
LAST_CALL = 7 / 8
"""The part of the time until the deadline after which nothing is drawn: it might arrive late."""
AT_ONCE = 1 << 16
"""Devices whose slots are computed together, which bounds the memory."""


class SimulatedGateway(Deliveries):
    """Lets each device report in its slot, at its own moment, if a window has passed since."""

    def __init__(
        self, transport: AsyncTransport, url: str, terms: Terms, devices: Devices, read: Read
    ) -> None:
        self.label = LabelTime(devices.clock)
        super().__init__(transport, url, terms.stream, heard=self._heed)
        self._terms = terms
        self._devices = devices
        self._read = read
        self._lab = terms.oracle.lab(len(terms.values), terms.epsilon)
        self._rng = np.random.default_rng()
        number, key = devices.numbers[0].tobytes(), devices.keys[0].tobytes()
        self._proof = DeviceProof(number, rounds_mac(key, terms.stream, 0))
        assert terms.deadline_ms is not None
        self._moments = np.array(
            [moment_ms(one.tobytes(), terms.stream, terms.deadline_ms) for one in devices.secrets]
        )

    def _heed(self, notice: Notice) -> None:
        if notice.now_ms is not None:
            self.label.correct(notice.now_ms)

    async def run(self) -> None:
        """Report, timestamp after timestamp, until cancelled."""
        t = max(1, self._terms.timestamp_at(self.label.now_ms()))
        async with asyncio.TaskGroup() as sending:
            while True:
                wait_ms = self._terms.start_of(t) - self.label.now_ms()
                await asyncio.sleep(max(0, wait_ms) / 1000)
                await self._report(t, sending)
                t = max(t + 1, self._terms.timestamp_at(self.label.now_ms()))

    async def _report(self, t: int, sending: asyncio.TaskGroup) -> None:
        """Let those report whose turn it is; those that may not yet, wait within t."""
        terms, waiting = self._terms, self.due(t)
        start = terms.start_of(t)
        last_call = start + LAST_CALL * (terms.deadline_of(t) - start)
        while len(waiting) and (now := self.label.now_ms()) < last_call:
            ready = start + self._moments[waiting] <= now
            ready &= self._devices.free(waiting, terms.promise.span)
            for rows in np.split(waiting[ready], range(BATCH, np.count_nonzero(ready), BATCH)):
                records = self._records(t, rows)
                if len(records):
                    sending.create_task(self._deliver(t, records))
            waiting = waiting[~ready]
            await asyncio.sleep(TICK)

    def due(self, t: int) -> Rows:
        """Return the devices whose turn timestamp t is."""
        return np.flatnonzero(due(self._slots, self._terms.window, t))

    @lru_cache(2)  # noqa: B019 - a gateway lives as long as its process
    def _slots(self, window: int, epoch: int) -> Slots:
        parts = np.split(self._devices.keys, range(AT_ONCE, len(self._devices), AT_ONCE))
        return np.concatenate([KeyedHashes.of(keys).slots(window, epoch) for keys in parts])

    def _records(self, t: int, rows: Rows) -> Bytes:
        """Return the signed reports of devices that have the budget, once it is debited."""
        values = self._read(t, rows)
        if values is None or not len(rows):
            return np.empty((0, 0), np.uint8)
        reports = encode_table(self._lab.perturb(values, self._rng), self._lab.device)
        self._devices.debit(rows)
        prefix = report_prefix(self.stream, self._terms.pin, round_name(t))
        macs = KeyedHashes.of(self._devices.keys[rows]).macs(prefix, reports)
        return np.hstack([self._devices.numbers[rows], macs, reports])

    async def _deliver(self, t: int, records: Bytes) -> None:
        def is_over() -> bool:
            return self.label.now_ms() >= self._terms.deadline_of(t)

        packed = [record.tobytes() for record in records]
        await self.send(round_name(t), packed, is_over, self._proof)
