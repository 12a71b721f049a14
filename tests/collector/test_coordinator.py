"""The coordinator, driven by hand: every mechanism, every crash, no waiting."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.rounds.announcement import AnnouncedRounds
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.selection import OpenSelection
from ldpstream.collector.store.contract import RoundState
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake
from ldpstream.mechanisms.mechanism import drive
from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.mechanisms.registry import build, names
from ldpstream.privacy.epsilon import Epsilon
from tests.collector.driving import Crash, DyingStore, World, miscounted, most_spent
from tests.collector.helpers import SECRETS, START_MS, device_of, new_round, stream_config, unsigned

MECHANISMS = names()
TIMESTAMPS = 7


def world_of(folder: Path, **stream: object) -> World:
    world = World(stream_config(folder, **stream), folder / "store.sqlite")
    world.enrol_everyone()
    return world


@pytest.mark.parametrize("selection", ["open", "roster"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_releases_are_those_of_the_mechanism_on_the_same_tallies(
    mechanism: str, selection: str, tmp_path: Path
) -> None:
    world = world_of(tmp_path, mechanism=mechanism, selection=selection)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, TIMESTAMPS)
        assert [*miscounted(store, world)] == []
        rounds = {(one.t, one.purpose): one for one in store.rounds("a", 0)}
        released = store.releases("a", 0, 100)
    assert [release.t for release in released] == [*range(1, TIMESTAMPS + 1)]
    again = build(mechanism, world.config.settings)
    for release in released:

        def answer(ask: Ask, t: int = release.t) -> Tally:
            stored = rounds[t, ask.purpose]
            assert (stored.users, stored.epsilon_nano) == (ask.users, ask.epsilon.nano)
            assert stored.support is not None
            return again.noise.tally(ask.epsilon, stored.support)

        expected = drive(again.step(release.t), answer)
        devices = release.content["devices"]
        heard_t = release.content["heard_t"]
        assert release.content == expected.to_json() | {"devices": devices, "heard_t": heard_t}
        if selection == "roster":  # else these devices keep no budget
            assert 0 < devices["heard"] <= devices["enrolled"] == len(world.devices)
        assert not release.missed


@pytest.mark.parametrize("mechanism", ["lbu", "lsp", "lba", "lpd", "lpa"])
def test_no_device_is_asked_for_more_than_epsilon_in_a_window(
    mechanism: str, tmp_path: Path
) -> None:
    world = world_of(tmp_path, mechanism=mechanism, selection="roster", window=3)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 12)
    assert 0 < most_spent(world) <= Epsilon.of(1).nano


def test_a_roster_sample_has_exactly_the_size_asked_for(tmp_path: Path) -> None:
    world = world_of(tmp_path, mechanism="lpu", selection="roster", population=42)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 8)
    sizes = [len(asking.asked or ()) for asking in world.told.values()]
    assert sizes == [42 * t // 4 - 42 * (t - 1) // 4 for t in range(1, 9)]


def test_open_rates_make_up_for_those_who_have_reported(tmp_path: Path) -> None:
    world = world_of(tmp_path, mechanism="lpu", selection="open")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 6)
        answered = [one.support.reports for one in store.rounds("a", 0) if one.support]
    silent = [sum(min(10, n) for n in answered[max(0, t - 3) : t]) for t in range(6)]
    assert min(silent[1:]) > 0
    rates = [asking.stored.rate for asking in world.told.values()]
    assert rates == [(min(10, 40 - gone), 40 - gone) for gone in silent]


class Heard(Listener):
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.announcements: list[AnnouncedRounds] = []

    def announced(self, announcement: AnnouncedRounds) -> None:
        self.announcements.append(announcement)


def test_a_restart_never_announces_an_open_round_as_none(tmp_path: Path) -> None:
    """Else a device that polls in that moment would get the serial without its round."""
    world = world_of(tmp_path, mechanism="lpu", selection="open")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        before = Heard()
        Coordinator(world.config, store, world.clock, before).advance()
        after = Heard()
        Coordinator(world.config, store, world.clock, after).advance()
    assert before.announcements[-1].rounds
    assert [one.rounds != () for one in after.announcements] == [True]
    assert after.announcements[0].serial == before.announcements[-1].serial


def test_a_fleet_that_comes_late_is_not_asked_all_at_once() -> None:
    """Rounds that nobody answered leave everyone's budget untouched."""
    epsilon = Epsilon.of(1)
    selection = OpenSelection(epsilon, window=4, population=40)
    ask = Ask(10, epsilon, Purpose.PUBLICATION)
    for t in range(1, 4):
        asked = new_round(t, epsilon_nano=epsilon.nano, users=10)
        selection.remember(asked)
        assert selection.choose(t, ask).rate[1] < 40
        selection.heard(asked.name, 0)
    assert selection.choose(4, ask).rate == (10, 40)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("selection", ["open", "roster"])
@pytest.mark.parametrize("mechanism", ["lpa", "lbd", "lsp"])
def test_a_crash_at_any_step_changes_nothing(
    mechanism: str, selection: str, after: bool, tmp_path: Path
) -> None:
    """Die before or after each change of the store, restart, and compare with an undisturbed run.

    The sample of a roster is drawn anew in each run, so there the tallies are checked by
    themselves; with open selection the whole history must be the same.
    """

    def lived(folder: Path, die_at: int | None) -> tuple[list[object], int]:
        folder.mkdir()
        world = world_of(folder, mechanism=mechanism, selection=selection, window=3, population=12)
        changes = 0
        with closing(SqliteStore(world.file, SECRETS.master)) as store:
            dying = DyingStore(store, die_at, after=after)
            with suppress(Crash):
                changes = world.live(dying, 5)
        with closing(SqliteStore(world.file, SECRETS.master)) as store:
            world.live(store, 5)
            assert [*miscounted(store, world)] == []
            rounds = store.rounds("a", 0)
            assert len({one.name for one in rounds}) == len(rounds)
            assert {one.state for one in rounds} == {RoundState.TALLIED}
            releases = store.releases("a", 0, 100)
        assert [one.t for one in releases] == [1, 2, 3, 4, 5]
        assert most_spent(world) <= Epsilon.of(1).nano
        return [one.content for one in releases], changes

    calm, changes = lived(tmp_path / "calm", None)
    assert changes > 5
    for die_at in range(changes):
        shaken, _ = lived(tmp_path / str(die_at), die_at)
        if selection == "open":
            assert shaken == calm


def test_nobody_is_asked_twice_after_a_crash(tmp_path: Path) -> None:
    """The sample is stored before it is announced, and stays the same."""
    world = world_of(tmp_path, mechanism="lpu", selection="roster")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        first = Coordinator(world.config, store, world.clock)
        first.advance()
        second = Coordinator(world.config, store, world.clock)
        second.advance()
        assert first.open is not None
        assert second.open is not None
        assert first.open.stored.asked == second.open.stored.asked
        assert first.open.name == second.open.name


def test_reports_of_before_a_crash_are_counted_with_those_of_after_it(tmp_path: Path) -> None:
    world = world_of(tmp_path, mechanism="lbu")
    for numbers in ((1, 2), (2, 3)):
        with closing(SqliteStore(world.file, SECRETS.master)) as store:
            coordinator = Coordinator(world.config, store, world.clock)
            coordinator.advance()
            store.accept("a", "1-publication", unsigned(*((n, b"\1\0") for n in numbers)))
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.clock.advance(9500)
        Coordinator(world.config, store, world.clock).advance()
        (stored,) = store.rounds("a", 0)
        assert stored.support is not None
        assert (stored.support.counts.tolist(), stored.support.reports) == ([3, 0, 0], 3)


def test_a_sleeping_fleet_gets_approximations(tmp_path: Path) -> None:
    world = world_of(tmp_path, mechanism="lpa")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        coordinator = Coordinator(world.config, store, world.clock)
        while coordinator.last_t < 5:
            world.clock.advance_to(coordinator.advance())
        released = store.releases("a", 0, 10)
    assert [release.content["fresh"] for release in released] == [False] * 5
    assert [release.received for release in released] == [0] * 5


def test_rounds_close_at_their_deadlines(tmp_path: Path) -> None:
    world = world_of(tmp_path, mechanism="lbd")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        coordinator = Coordinator(world.config, store, world.clock)
        assert coordinator.advance() == START_MS + 4500
        world.clock.advance(4499)
        assert coordinator.advance() == START_MS + 4500
        assert coordinator.open is not None
        store.accept("a", coordinator.open.name, unsigned(*((n, b"\1\0") for n in range(40))))
        world.clock.advance(1)
        assert coordinator.advance() == START_MS + 9000
        assert coordinator.open.name == "1-publication"
        world.clock.advance(4500)
        assert coordinator.advance() == START_MS + 10_000
        assert coordinator.last_t == 1


def test_a_roster_round_closes_when_everyone_has_answered(tmp_path: Path) -> None:
    world = world_of(tmp_path, mechanism="lpu", selection="roster")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        coordinator = Coordinator(world.config, store, world.clock)
        coordinator.advance()
        assert coordinator.open is not None
        world.answer(store, coordinator.open)
        assert coordinator.complete
        assert coordinator.advance() == START_MS + 10_000
        assert coordinator.last_t == 1


def test_fewer_devices_than_expected_are_asked_in_proportion(tmp_path: Path) -> None:
    """Fewer are asked in each round, so that the devices last for the window."""
    config = stream_config(tmp_path, mechanism="lpu", selection="roster", population=400)
    clock = ManualClock(START_MS)
    with closing(SqliteStore(tmp_path / "store.sqlite", SECRETS.master)) as store:
        Coordinator(config, store, clock)
        for number in range(40):
            store.enrol("a", device_of(number))
        coordinator = Coordinator(config, store, clock)
        sizes = []
        while coordinator.last_t < 5:
            wake = coordinator.advance()
            if coordinator.open is not None:
                sizes.append(len(coordinator.open.asked or ()))
            clock.advance_to(wake)
    assert sizes == [10] * 5


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_missed_timestamps_are_carried_over_and_said_to_be(mechanism: str, tmp_path: Path) -> None:
    world = world_of(tmp_path, mechanism=mechanism)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 2)
    world.clock.advance_to(START_MS + 7 * 10_000 + 5)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 9)
        released = store.releases("a", 0, 100)
    assert [release.t for release in released] == [*range(1, 10)]
    assert [release.missed for release in released] == [False] * 2 + [True] * 5 + [False] * 2
    for release in released[2:7]:
        assert release.content["values"] == released[1].content["values"]
        assert (release.content["fresh"], release.asked, release.received) == (False, 0, 0)
        assert release.content["t"] == release.t


def test_many_missed_timestamps_are_carried_over_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash between two parts, the next start releases the rest."""
    monkeypatch.setattr("ldpstream.collector.releases.paging.NUMBERS", 6)  # two releases
    world = world_of(tmp_path, mechanism="lbu")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 2)
    world.clock.advance_to(START_MS + 7 * 10_000 + 5)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        with pytest.raises(Crash):
            world.live(DyingStore(store, die_at=1, after=True), 9)
        assert [release.t for release in store.releases("a", 0, 100)] == [*range(1, 7)]
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 9)
        released = store.releases("a", 0, 100)
    assert [release.t for release in released] == [*range(1, 10)]
    assert [release.missed for release in released] == [False] * 2 + [True] * 5 + [False] * 2


def test_a_timestamp_that_was_being_asked_is_finished_late(tmp_path: Path) -> None:
    world = world_of(tmp_path, mechanism="lbu")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        coordinator = Coordinator(world.config, store, world.clock)
        coordinator.advance()
        assert coordinator.open is not None
        store.accept("a", coordinator.open.name, unsigned((1, b"\1\1")))
    world.clock.advance(50_000)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        again = Coordinator(world.config, store, world.clock)
        assert again.advance() == world.clock.now_ms()
        assert again.at_rest, "other settings can be taken up before the next timestamp is begun"
        again.advance()
        released = store.releases("a", 0, 100)
    assert (released[0].t, released[0].received, released[0].missed) == (1, 1, False)
    assert [release.missed for release in released[1:]] == [True] * 4


def test_a_timestamp_that_is_nearly_over_is_not_begun(tmp_path: Path) -> None:
    world = world_of(tmp_path, mechanism="lpu")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 1)
        world.clock.advance_to(START_MS + 19_000)
        late = Coordinator(world.config, store, world.clock)
        assert late.advance() == START_MS + 20_000
        assert late.open is None
        world.live(store, 3)
        assert [one.missed for one in store.releases("a", 0, 9)] == [False, True, False]


def test_nothing_happens_before_the_start(tmp_path: Path) -> None:
    config = stream_config(tmp_path)
    with closing(SqliteStore(tmp_path / "store.sqlite", SECRETS.master)) as store:
        Coordinator(config, store, ManualClock(START_MS))
        early = Coordinator(config, store, ManualClock(START_MS - 99_000))
        assert early.advance() == START_MS
        assert store.rounds("a", 0) == []


@pytest.mark.parametrize(
    "change", [{"epsilon": 2}, {"window": 5}, {"labels": ["x", "y"]}, {"interval": "1s"}]
)
def test_terms_that_devices_have_pinned_cannot_change(
    change: dict[str, object], tmp_path: Path
) -> None:
    world = world_of(tmp_path)
    with (
        closing(SqliteStore(world.file, SECRETS.master)) as store,
        pytest.raises(Mistake, match="devices have pinned"),
    ):
        Coordinator(stream_config(tmp_path, **change), store, world.clock)


@pytest.mark.parametrize("change", [{"mechanism": "lpf"}, {"mechanism": "lbu"}, {"population": 90}])
def test_mechanism_and_population_may_change(
    tmp_path: Path, change: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    world = world_of(tmp_path, mechanism="lpu")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 3)
        before = store.stream("a")
        assert before is not None
        after = Coordinator(stream_config(tmp_path, **change), store, world.clock)
        assert after.last_t == before.last_t
        last = store.releases("a", 3, 1)[0]
        after.advance()
        assert store.releases("a", 3, 1) == [last]
    divided_otherwise = change.get("mechanism") == "lbu"
    told = [one.message for one in caplog.records if "begins anew" in one.message]
    assert bool(told) == divided_otherwise


def test_the_tests_clock_does_not_go_back() -> None:
    clock = ManualClock(5)
    with pytest.raises(ValueError, match="go back"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="go back"):
        clock.advance_to(4)
