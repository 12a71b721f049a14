"""A fleet of simulated devices, judged like one of real devices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes, Indexes
from ldpstream.device.exchange import Address
from ldpstream.errors import Mistake, Problem
from ldpstream.fleet.fault_injection import FaultyTransport
from ldpstream.fleet.fleet import Fleet, FleetOutcome
from ldpstream.fleet.simulated.devices import Devices
from ldpstream.fleet.simulated.enrolment import AT_ONCE, FleetEnrolment
from ldpstream.fleet.simulated.gateway import Read, SimulatedGateway, groups_of
from ldpstream.lab.vocabulary import buckets_of
from ldpstream.machine_clock import SystemClock
from ldpstream.protocol.terms import Terms
from ldpstream.vocabulary import Vocabulary
from ldpstream.vocabulary.device import encoded
from ldpstream.vocabulary.kernels import Texts


class SimulatedFleet(Fleet):
    """Runs a plan once, with devices as arrays; they need a stream with slots."""

    @property
    def most_connections(self) -> int:
        return 4 * AT_ONCE

    async def run(self) -> FleetOutcome:
        """Run the plan, and keep the devices' state in its file, if it names one."""
        faults = self._plan.faults
        if faults.offline or faults.join:
            raise Mistake(
                Problem.OPTION,
                option="--offline or --join",
                given="given",
                expected="them with real devices: simulated ones do not come and go",
            )
        self._devices = self._load()
        try:
            return await super().run()
        finally:
            self._devices.reporting = False
            self._save()

    def _load(self) -> Devices:
        file, number = self._plan.state, self._plan.devices
        if file is None or not file.exists():
            return Devices.new(number, SystemClock())
        devices = Devices.load(file, SystemClock())
        if len(devices) > number:
            expected = f"at least {len(devices)}, the devices of {file.name}"
            raise Mistake(Problem.OPTION, option="--devices", given=number, expected=expected)
        return devices.with_more(number)

    def _save(self) -> None:
        if self._plan.state is not None:
            self._devices.save(self._plan.state)

    async def _prepare(self) -> tuple[Terms, SimulatedGateway]:
        plan = self._plan
        if not (Address.of(plan.url).confidential or plan.plain_http):
            raise Mistake(Problem.PLAIN_HTTP, url=plan.url)
        line = FaultyTransport(self._transport, plan.faults, self._chance)
        terms = await FleetEnrolment(
            self._devices,
            line,
            plan.url,
            plan.stream,
            plan.token,
            lambda row: plan.levels.of(row, plan.seed),
            lambda done: self._progress("enrolled", done, plan.devices),
            self._save,
        ).run()
        self._map_labels(terms)
        read = self._reader(terms)
        gateway = SimulatedGateway(line, plan.url, self._devices, read, self._tags)
        self._devices.reporting = True
        self._save()
        return terms, gateway

    def _tags(self, terms: Terms, rows: Indexes) -> Bytes:
        """Return the tag of each of these devices: its group of a vocabulary, or its attributes."""
        if terms.attributes is None:
            return self._groups[rows]
        said = map(self._users.described, range(int(self._users.combinations.max()) + 1))
        tags = np.array([terms.attributes.combination(one) for one in said], np.uint8)
        return tags[self._users.combinations[rows]]

    def _reader(self, terms: Terms) -> Read:
        """Return the function that reads what users hold, as indexes of the first terms' values."""
        if isinstance(terms.values, Vocabulary):
            return self._text_reader(terms.values)
        held = (self._held(index) for index in range(len(self._plan.source.domain)))
        places = np.array([terms.place(value) for value in held])

        def read(t: int, rows: Indexes) -> NDArray[Any] | None:
            values = self._users.values(t)
            return None if values is None else places[values[rows]]

        return read

    def _text_reader(self, words: Vocabulary) -> Read:
        """Return the function that reads the buckets of what users hold, each in its group."""
        self._groups = groups_of(self._devices, len(words.groups))
        buckets = buckets_of(Texts.of([encoded(text) for text in self._names]), words)

        def read(t: int, rows: Indexes) -> NDArray[Any] | None:
            values = self._users.values(t)
            return None if values is None else buckets[self._groups[rows], values[rows]]

        return read
