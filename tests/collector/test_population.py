"""A population that nobody gives: it is counted from the reports, and followed."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.config.stream import FIRST_POPULATION
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from tests.collector.helpers import SECRETS, START_MS, report_of, stream_config, unsigned

WINDOW = 4


@dataclass
class Fleet:
    """Devices that report once in a window: by slots, or by coins while they have the budget."""

    config: StreamConfig
    store: SqliteStore
    clock: ManualClock
    rng: random.Random

    def live(self, coordinator: Coordinator, devices: int, timestamps: int) -> StoredRelease:
        """Let so many timestamps pass; return the last release."""
        spent: dict[int, list[tuple[int, int]]] = {}
        until = coordinator.last_t + timestamps
        while coordinator.last_t < until:
            wake = coordinator.advance()
            asking = coordinator.open
            if asking is not None and not self.store.received("a", asking.name):
                t, (share, whole) = asking.stored.t, asking.stored.rate
                slots = coordinator.config.selection == "slots"
                nano = asking.stored.epsilon_nano
                for number in range(1, devices + 1):
                    before = sum(n for at, n in spent.get(number, []) if at > t - WINDOW)
                    turn = number % WINDOW == t % WINDOW
                    coin = self.rng.random() * whole < share
                    if (turn if slots else coin) and before + nano <= 10**9:
                        spent.setdefault(number, []).append((t, nano))
                        records = unsigned((number, report_of(asking, number)))
                        self.store.accept("a", asking.name, records)
            self.clock.advance_to(max(wake, self.clock.now_ms()))
        return self.store.releases("a", coordinator.last_t, 1)[0]


@pytest.mark.parametrize(
    ("selection", "mechanism"),
    [("slots", "lpf"), ("slots", "lpu"), ("open", "lpu"), ("open", "lbu")],
)
def test_a_fleet_is_counted_and_followed_over_a_restart(
    tmp_path: Path, selection: str, mechanism: str
) -> None:
    config = stream_config(tmp_path, population=None, selection=selection, mechanism=mechanism)
    assert config.follows_fleet
    clock, rng = ManualClock(START_MS), random.Random(7)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        fleet = Fleet(config, store, clock, rng)
        coordinator = Coordinator(config, store, clock)
        first = fleet.live(coordinator, 0, 2)
        assert first.content["devices"] == {"heard": 0, "expected": FIRST_POPULATION}
        assert first.content["heard_t"] == 0
        for devices in (200, 500, 60):
            last = fleet.live(coordinator, devices, 6 * WINDOW)
            told = last.content["devices"]
            off = max(0.25 * devices, 20)
            assert abs(told["expected"] - devices) <= off, (devices, told)
            assert told["expected_low"] <= told["expected"] <= told["expected_high"]
            assert abs(coordinator.config.population - devices) <= 0.1 * devices + off
        known = coordinator.config.population
        assert Coordinator(config, store, clock).config.population == known
        gone = fleet.live(coordinator, 0, 4 * WINDOW)  # who comes back is expected
        assert gone.content["devices"]["expected"] == last.content["devices"]["expected"]
        assert gone.content["heard_t"] == last.content["heard_t"]


@pytest.mark.parametrize("selection", ["slots", "open"])
def test_a_restart_forgets_nobody_who_was_counted(tmp_path: Path, selection: str) -> None:
    """Also in silence, and when devices come back."""
    config = stream_config(tmp_path, population=None, selection=selection, mechanism="lpu")
    told: list[list[object]] = [[], []]
    for restarts, found in enumerate(told):
        clock, rng = ManualClock(START_MS), random.Random(7)
        with closing(SqliteStore(tmp_path / f"{restarts}.sqlite", SECRETS.master)) as store:
            fleet = Fleet(config, store, clock, rng)
            coordinator = Coordinator(config, store, clock)
            for devices in (300, 0, 100):
                for _ in range(3 * WINDOW):
                    release = fleet.live(coordinator, devices, 1)
                    found.append(release.content["devices"])
                    if restarts:
                        coordinator = Coordinator(config, store, clock)
    assert told[0] == told[1]


def test_the_interval_holds_as_often_as_it_says(tmp_path: Path) -> None:
    """Of 200 fleets of 300, with coins, the interval (0.9) holds for 180; 5 deviations: 159."""
    from ldpstream.collector.rounds.group import RoundGroup
    from ldpstream.collector.rounds.headcount import Headcount
    from ldpstream.collector.store.contract import RoundState, StoredRound
    from ldpstream.oracles.collector_half import Support
    from ldpstream.privacy.epsilon import Epsilon
    from tests.collector.helpers import new_round

    rng, held = random.Random(1), 0
    for _ in range(200):
        counted = Headcount(Epsilon.of(1), WINDOW, slots=False)
        left = 300
        for t in range(1, WINDOW + 1):
            came = sum(rng.random() < 0.2 for _ in range(left))
            left -= came
            support = Support.none(3)
            support = Support(support.counts, came)
            stored = vars(new_round(t, rate=(1, 5)))
            one = StoredRound(**stored, state=RoundState.TALLIED, support=support, closed_ms=0)
            counted.add(RoundGroup((one,)))
        found = counted.estimate(WINDOW)
        assert found is not None
        held += found.low <= 300 <= found.high
    assert 159 <= held <= 200


def test_a_number_stays_possible(tmp_path: Path) -> None:
    config = stream_config(tmp_path, population=77)
    assert (config.follows_fleet, config.population) == (False, 77)
    assert stream_config(tmp_path, population="auto").follows_fleet
