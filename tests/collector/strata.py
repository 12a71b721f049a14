"""Helpers to drive a stream with several strata by hand: each device has terms and a level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.listener import Listener
from ldpstream.privacy.randomness import Source
from tests.collector.helpers import START_MS, device_of, source_of, stream_config, unsigned

CAREFUL: dict[str, object] = {"name": "careful", "epsilon": 0.5, "window": 8}
LABELS = ["x", "y", "z"]


@dataclass
class Fleet:
    """Devices 1 .. size, all with the same value, each under one version and at one level."""

    size: int
    value: str = "x"
    version_of: Callable[[int, int], int] = lambda number, t: 1
    """The version of the terms that a device has at t."""
    level_of: Callable[[int], str] = lambda number: ""
    told: dict[str, list[int]] = field(default_factory=dict)
    """Who has answered each round."""

    def answer(self, store: Any, asking: OpenRound) -> None:
        numbers = self.told[asking.name] = [
            number for number in range(1, self.size + 1) if self._answers(number, asking)
        ]
        reports = [(number, self._report(asking, number)) for number in numbers]
        if reports:
            store.accept("a", asking.name, unsigned(*reports))

    def _answers(self, number: int, asking: OpenRound) -> bool:
        terms, t = asking.terms, asking.stored.t
        if (terms.version, terms.level) != (self.version_of(number, t), self.level_of(number)):
            return False
        if asking.asked is not None:
            return asking.asks(number - 1)
        return number % terms.window == t % terms.window

    def _report(self, asking: OpenRound, number: int) -> bytes:
        device, source = asking.collector.device, source_of(f"{asking.name} {number}")
        held: Source = source
        labels = asking.terms.names
        place = labels.index(self.value) if self.value in labels else 0
        return device.encode(device.perturb(place, held))


@dataclass
class StrataWorld:
    """A stream, its store, the time, and a fleet."""

    folder: Path
    fleet: Fleet
    given: dict[str, object] = field(default_factory=dict)
    clock: ManualClock = field(default_factory=lambda: ManualClock(START_MS))

    def config(self, **changed: object) -> StreamConfig:
        usual = {"selection": "slots", "population": self.fleet.size, "labels": LABELS}
        return stream_config(self.folder, **usual | self.given | changed)

    def live(
        self, store: Any, until_t: int, listener: Listener | None = None, **changed: object
    ) -> Coordinator:
        """Go on with a file that says this, until a timestamp is released."""
        coordinator = Coordinator(self.config(**changed), store, self.clock, listener)
        while coordinator.last_t < until_t:
            wake = coordinator.advance()
            for asking in coordinator.opened:
                if not store.received("a", asking.name):
                    self.fleet.answer(store, asking)
            if not coordinator.complete:
                self.clock.advance_to(max(wake, self.clock.now_ms()))
        return coordinator

    def miscounted(self, store: Any) -> list[str]:
        """Rounds that did not count each device that answered exactly once."""
        return [
            one.name
            for one in store.rounds("a", 0)
            if one.support is not None
            and one.support.reports != len(self.fleet.told.get(one.name, []))
        ]


def enrol_all(store: Any, size: int) -> None:
    for number in range(1, size + 1):
        store.enrol("a", device_of(number))
