"""Helpers to drive a coordinator by hand: a fleet that answers, a manual clock, and crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import SelectionMethod, StreamConfig
from ldpstream.collector.reports.records import Records
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.contract import Store
from ldpstream.collector.store.sqlite.store import SqliteStore
from tests.collector.helpers import SECRETS, START_MS, device_of, report_of, unsigned


class Crash(Exception):
    """Raised in place of the death of the process."""


class DyingStore:
    """A proxy of a store, which raises `Crash` before or after the chosen change."""

    CHANGES: tuple[str, ...] = (
        "create_stream",
        "succeed",
        "open_round",
        "close_round",
        "tally",
        "release",
    )

    def __init__(self, store: Store, die_at: int | None, *, after: bool) -> None:
        self._store = store
        self._die_at = die_at
        self._after = after
        self.changes = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        return self._counted(method) if name in self.CHANGES else method

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            dying = self.changes == self._die_at
            self.changes += 1
            if dying and not self._after:
                raise Crash
            result = method(*arguments, **named)
            if dying:
                raise Crash
            return result

        return call


class LaggingStore(DyingStore):
    """A store whose engine has counted nothing yet, until `counts` is set."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, None, after=False)
        self.counts = False

    def count(self, *given: Any) -> Any:
        return self._store.count(*given) if self.counts else None


@dataclass
class World:
    """A stream, its store on disk, the time, and devices 1 .. population."""

    config: StreamConfig
    file: Path
    clock: ManualClock = field(default_factory=lambda: ManualClock(START_MS))
    told: dict[str, OpenRound] = field(default_factory=dict)
    """Every round that devices were told of."""

    @property
    def devices(self) -> range:
        return range(1, self.config.population + 1)

    def enrol_everyone(self) -> None:
        with closing(SqliteStore(self.file, SECRETS.master)) as store:
            Coordinator(self.config, store, self.clock)
            if self.config.selection is SelectionMethod.ROSTER:
                for number in self.devices:
                    store.enrol(self.config.name, device_of(number))

    def answering(self, asking: OpenRound) -> list[int]:
        """Return which devices answer: the sample of the roster, or all that select themselves."""
        if asking.asked is not None:
            return [number for number in self.devices if asking.asked_mask[number - 1]]
        share, whole = asking.stored.rate
        return [n for n in self.devices if hash((asking.stored.t, n * 7919)) % whole < share]

    def answer(self, store: Store, asking: OpenRound) -> None:
        self.told.setdefault(asking.name, asking)
        numbers = self.answering(asking)
        if numbers:
            records = unsigned(*((number, report_of(asking, number)) for number in numbers))
            store.accept(self.config.name, asking.name, records)

    def live(self, store: Any, until_t: int) -> int:
        """Go on until a timestamp is released; return the number of changes in the store."""
        coordinator = Coordinator(self.config, store, self.clock)
        while coordinator.last_t < until_t:
            wake = coordinator.advance()
            if coordinator.open is not None and coordinator.open.name not in self.answered(store):
                self.answer(store, coordinator.open)
                if coordinator.complete:
                    continue
            self.clock.advance_to(max(wake, self.clock.now_ms()))
        return int(getattr(store, "changes", 0))

    def answered(self, store: Store) -> set[str]:
        """Open rounds that have reports."""
        name = self.config.name
        return {one for one in self.told if store.received(name, one)}


def miscounted(store: Store, world: World) -> Iterator[str]:
    """Descriptions of rounds in which not every answering device was counted exactly once."""
    for stored in store.rounds(world.config.name, 0):
        asking = world.told.get(stored.name)
        if asking is None or stored.support is None:
            continue
        numbers = world.answering(asking)
        expected = np.zeros(asking.collector.counters, np.int64)
        if numbers:
            packed = unsigned(*((n, report_of(asking, n)) for n in numbers))
            expected = counts_of(asking, packed)
        if stored.support.reports != len(numbers):
            yield f"{stored.name}: {stored.support.reports} reports, not {len(numbers)}"
        elif stored.support.counts.tolist() != expected.tolist():
            yield f"{stored.name}: {stored.support.counts}, not {expected}"


def counts_of(asking: OpenRound, records: Records) -> Any:
    return asking.collector.count([records.reports]).counts


def most_spent(world: World) -> int:
    """The most nano-epsilon that any device of a roster was asked for in any window."""
    last = max(asking.stored.t for asking in world.told.values())
    spent = np.zeros((last + world.config.window, world.config.population), np.int64)
    for asking in world.told.values():
        if asking.asked is not None:
            spent[asking.stored.t] += asking.asked_mask * asking.stored.epsilon_nano
    windows = [spent[t : t + world.config.window].sum(axis=0) for t in range(last + 1)]
    return int(np.max(windows))
