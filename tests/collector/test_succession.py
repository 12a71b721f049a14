"""New terms for a stream: how they are made, counted beside those of before, and take over."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.follower import Follower
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.loading import terms_of
from ldpstream.collector.rounds.succession import NOTICE_MS, OVERLAP_WINDOWS
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.store import PostgresStore
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.mechanism import Step
from ldpstream.mechanisms.registry import register, unregister
from ldpstream.mechanisms.uniform import Uniform
from ldpstream.protocol.history import TermsHistory
from tests.collector.driving import Crash, DyingStore
from tests.collector.helpers import SECRETS, START_MS, stream_config
from tests.collector.strata import CAREFUL, LABELS, Fleet, StrataWorld, enrol_all

WINDOW, INTERVAL_MS = 4, 10_000
RENAMED: dict[str, Any] = {
    "labels": ["x", "why", "new"],
    "successor": {"version": 2, "rename": {"y": "why", "z": "x"}, "overlap": "80s"},
}
"""y gets another name, z is merged into x, and a label is new."""
AGAIN: dict[str, Any] = {
    "labels": ["why", "x"],
    "successor": {"version": 3, "rename": {"new": "x"}, "overlap": "60s"},
}


def history_of(store: SqliteStore) -> TermsHistory:
    return TermsHistory.read(store.versions("a"))


def test_new_terms_are_stored_once_and_told_before_they_are_in_force(tmp_path: Path) -> None:
    world = StrataWorld(tmp_path, Fleet(40))
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 5)
        now_ms = world.clock.now_ms()
        for _ in range(2):
            coordinator = Coordinator(world.config(**RENAMED), store, world.clock)
            assert coordinator.terms.version == 1
        first, second = history_of(store).versions
        assert store.check_releases("a").damage is None
    succeeds = second.succeeds
    assert succeeds is not None
    assert (succeeds.pin, succeeds.version) == (first.pin, 2)
    assert succeeds.labels == ("x", "why", "x")
    notice_ms = first.start_of(succeeds.from_t) - now_ms
    least_ms = min(NOTICE_MS, WINDOW * INTERVAL_MS)
    assert least_ms <= notice_ms < least_ms + INTERVAL_MS
    assert succeeds.until_t == succeeds.from_t - 1 + 80_000 // INTERVAL_MS


def test_a_file_without_an_overlap_has_one_of_some_windows(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world = StrataWorld(tmp_path, Fleet(40))
        world.live(store, 1)
        Coordinator(world.config(window=5, successor={"version": 2}), store, world.clock)
        succeeds = history_of(store).latest.succeeds
    assert succeeds is not None
    assert succeeds.until_t - succeeds.from_t + 1 == OVERLAP_WINDOWS * WINDOW


@pytest.mark.parametrize("mechanism", ["lpu", "lpf"])
def test_labels_change_twice_and_no_release_is_missing(mechanism: str, tmp_path: Path) -> None:
    """Devices go over one after the other; what all of them hold is known throughout."""
    changes: list[int] = []

    def version(number: int, t: int) -> int:
        return 1 + sum(t >= from_t + number % 6 for from_t in changes)

    world = StrataWorld(tmp_path, Fleet(800, "x", version), {"mechanism": mechanism, "epsilon": 4})
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        coordinator = world.live(store, 8)
        for changed in (RENAMED, AGAIN):
            coordinator = Coordinator(world.config(**changed), store, world.clock)
            succeeds = coordinator.history.latest.succeeds
            assert succeeds is not None
            changes.append(succeeds.from_t)
            coordinator = world.live(store, succeeds.until_t + 4, **changed)
        history, released = history_of(store), store.releases("a", 0, 1000)
        assert world.miscounted(store) == []
        assert store.check_releases("a").damage is None
    assert [one.t for one in released] == [*range(1, coordinator.last_t + 1)]
    assert not any(one.missed for one in released)
    for one in released:
        terms = history.at(one.t)
        assert one.content.get("terms_version", 1) == terms.version
        assert len(one.content["values"]) == len(terms.names)
        place = terms.names.index("x")
        assert one.content["low"][place] - 0.05 <= 1 <= one.content["high"][place] + 0.05
        assert one.received >= 800 // WINDOW - 1
        assert one.content["devices"]["heard"] >= min(one.t, WINDOW) * (800 // WINDOW - 1)


class AsksTwice(Uniform):
    """A mechanism whose publication takes two rounds of one purpose."""

    def decide(self, t: int) -> Step:
        half = self.division.total // self.window // 2
        yield self.ask_publication(t, half)
        fresh = yield self.ask_publication(t, half)
        return self.publish(t, fresh)


def test_two_rounds_of_one_purpose_are_two_under_later_terms_too(tmp_path: Path) -> None:
    register("twice", AsksTwice, PopulationDivision)
    changes: list[int] = []
    fleet = Fleet(80, "x", lambda _, t: 1 + sum(t >= from_t for from_t in changes))
    world = StrataWorld(tmp_path, fleet, {"mechanism": "twice", "selection": "roster"})
    try:
        with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
            Coordinator(world.config(), store, world.clock)  # creates the stream
            enrol_all(store, 80)
            coordinator = Coordinator(world.config(**RENAMED), store, world.clock)
            succeeds = coordinator.history.latest.succeeds
            assert succeeds is not None
            changes.append(succeeds.from_t)
            last = succeeds.until_t + 3
            world.live(store, last, **RENAMED)
            rounds = [one for one in store.rounds("a", 0) if one.t > succeeds.until_t]
            assert world.miscounted(store) == []
        assert [one.t for one in rounds] == [t for t in range(last - 2, last + 1) for _ in "12"]
        assert all(one.support is not None and one.support.reports == 10 for one in rounds)
    finally:
        unregister("twice")


def test_reports_under_earlier_terms_count_until_the_stated_end(tmp_path: Path) -> None:
    """A fleet that never goes over is heard by its old labels until then, and not after."""
    world = StrataWorld(tmp_path, Fleet(400, "y"), {"mechanism": "lpu", "epsilon": 4})
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 3)
        coordinator = Coordinator(world.config(**RENAMED), store, world.clock)
        succeeds = coordinator.history.latest.succeeds
        assert succeeds is not None
        world.live(store, succeeds.until_t + 2, **RENAMED)
        released = {one.t: one for one in store.releases("a", 0, 100)}
        rounds = {one.name for one in store.rounds("a", 0)}
    for t in range(succeeds.from_t, succeeds.until_t + 1):
        assert {f"{t}-publication", f"{t}-publication-v2"} <= rounds
        assert released[t].content["values"][1] == pytest.approx(1, abs=0.2)
    after = succeeds.until_t + 1
    assert f"{after}-publication-v2" in rounds
    assert f"{after}-publication" not in rounds
    assert released[after].received == 0
    assert released[after].content["devices"]["heard"] < 400


def test_of_a_new_label_devices_with_earlier_terms_say_nothing_however_long(tmp_path: Path) -> None:
    """A filter must not average away what they may hold: the truth is the same at every t."""
    fleet = Fleet(400, "new", lambda number, t: 1 + (t >= 9 and number % 8 < 4))
    world = StrataWorld(tmp_path, fleet, {"mechanism": "lpf", "epsilon": 3, "labels": ["x", "y"]})
    three: dict[str, Any] = {
        "labels": ["x", "y", "new"],
        "successor": {"version": 2, "overlap": "1h"},
    }
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 3)
        world.live(store, 60, **three)
        last = store.releases("a", 60, 1)[0].content
    assert last["values"][2] == pytest.approx(0.5, abs=0.15), "half of them cannot say it"
    assert last["high"][2] == 1, "and all hold it"


class Twofold(Fleet):
    """Devices that answer under all terms that are counted."""

    def _answers(self, number: int, asking: OpenRound) -> bool:
        self.version_of = lambda number, t: asking.terms.version
        return super()._answers(number, asking)


@pytest.mark.parametrize(
    "given",
    [
        {"mechanism": "lpu", "level": [CAREFUL], "epsilon": 1},
        {"mechanism": "lbu", "selection": "roster"},
    ],
    ids=["slots", "roster"],
)
def test_a_device_counts_once_under_whatever_terms_it_reports(
    given: dict[str, Any], tmp_path: Path
) -> None:
    world = StrataWorld(tmp_path, Twofold(80), given)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 1)
        enrol_all(store, 80)
        world.live(store, 10, **RENAMED)
        told = world.fleet.told
        both = [one for one in store.releases("a", 0, 100) if f"{one.t}-publication-v2" in told]
        assert both
        for one in both:
            assert told[f"{one.t}-publication"] == told[f"{one.t}-publication-v2"]
            assert one.received == len(told[f"{one.t}-publication"])


def test_who_is_killed_while_it_counts_counts_nobody_twice(tmp_path: Path) -> None:
    """Reports of a round are deleted with its tally: then nobody knows any more who was in it."""

    def live(folder: Path, at: int, when: str) -> subprocess.CompletedProcess[str]:
        folder.mkdir(exist_ok=True)
        script = "tests.collector.killed_while_counting"
        command = [sys.executable, "-m", script, str(folder), str(at), when]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    never = 1000
    whole = live(tmp_path / "whole", never, "before")
    assert len(json.loads(whole.stdout)) == 10, whole.stderr
    for at, when in ((6, "after"), (7, "after")):
        folder = tmp_path / f"{at} {when}"
        assert live(folder, at, when).returncode == -signal.SIGKILL
        again = live(folder, never, when)
        assert again.stdout == whole.stdout, again.stderr


def test_a_round_does_not_end_early_because_some_answered_twice(tmp_path: Path) -> None:
    world = StrataWorld(tmp_path, Twofold(10), {"mechanism": "lbu", "selection": "roster"})
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 1)
        enrol_all(store, 10)
        coordinator = world.live(store, 6, **RENAMED)
        coordinator.advance()
        assert len(coordinator.opened) == 2
        world.fleet.size = 5
        for asking in coordinator.opened:
            world.fleet.answer(store, asking)
        assert not coordinator.complete


@pytest.mark.parametrize("mechanism", ["lpu", "lpf"])
def test_timestamps_missed_over_a_change_are_carried_by_the_new_labels(
    mechanism: str, tmp_path: Path
) -> None:
    world = StrataWorld(tmp_path, Fleet(400, "z"), {"mechanism": mechanism, "epsilon": 4})
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 5)
        coordinator = Coordinator(world.config(**RENAMED), store, world.clock)
        succeeds = coordinator.history.latest.succeeds
        assert succeeds is not None
        world.clock.advance_to(coordinator.terms.start_of(succeeds.from_t + 3))
        world.live(store, succeeds.from_t + 3, **RENAMED)
        released = {one.t: one for one in store.releases("a", 0, 100)}
    last, first = released[succeeds.from_t - 1], released[succeeds.from_t]
    assert last.missed
    assert first.missed
    x, y, z = last.content["values"]
    if mechanism == "lpu":  # its releases are raw
        assert first.content["values"] == pytest.approx([x + z, y, 0])
    else:
        assert sum(first.content["values"]) == pytest.approx(1)
        assert min(first.content["values"]) >= 0
    assert first.content["high"][2] == 1
    assert first.content["terms_version"] == 2
    assert "terms_version" not in last.content
    assert sorted(released) == [*range(1, succeeds.from_t + 4)]


@pytest.mark.parametrize("level", [[], [CAREFUL]], ids=["plain", "levels"])
def test_a_fleet_that_is_silent_when_labels_change_stops_nothing(
    level: list[dict[str, object]], tmp_path: Path
) -> None:
    until: list[int] = []
    fleet = Fleet(80, "x", lambda number, t: 0 if until and t >= until[0] else 1)
    world = StrataWorld(tmp_path, fleet, {"mechanism": "lpf", "level": level or None})
    changed = RENAMED | {"labels": ["x", "why", "new", "newer"]}
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 6)
        succeeds = Coordinator(world.config(**changed), store, world.clock).history.latest.succeeds
        assert succeeds is not None
        until.append(succeeds.from_t)
        world.live(store, succeeds.until_t + 2, **changed)
        released = store.releases("a", succeeds.from_t, 100)
    assert [len(one.content["values"]) for one in released] == [4] * len(released)
    assert not any(one.content["fresh"] for one in released)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_step_changes_nothing(after: bool, tmp_path: Path) -> None:
    given = {"mechanism": "lpf", "window": 2, "level": [CAREFUL | {"window": 3}]}
    changed = RENAMED | {"successor": RENAMED["successor"] | {"overlap": "20s"}}

    def lived(folder: Path, die_at: int | None) -> tuple[list[object], int]:
        folder.mkdir()
        level = ["", "careful"].__getitem__
        fleet = Fleet(24, "x", lambda number, t: 1 + (t > 6), lambda number: level(number % 2))
        world = StrataWorld(folder, fleet, given)
        with closing(SqliteStore(folder / "c.sqlite", SECRETS.master)) as store:
            dying = DyingStore(store, die_at, after=after)
            for until_t, extra in ((2, {}), (10, changed)):
                for _ in range(2):
                    with suppress(Crash):
                        world.live(dying, until_t, **extra)
                        break
            assert world.miscounted(store) == []
            released = [(one.t, one.content, one.received) for one in store.releases("a", 0, 99)]
            return [*released, store.versions("a")], dying.changes

    expected, changes = lived(tmp_path / "whole", None)
    assert len(expected) == 11
    assert changes > 50
    for die_at in range(changes):
        assert lived(tmp_path / str(die_at), die_at)[0] == expected, die_at


def test_what_is_carried_over_a_change_is_a_histogram(tmp_path: Path) -> None:
    world = StrataWorld(tmp_path, Fleet(40, "z"), {"mechanism": "lpf", "epsilon": 1})
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 5)
        coordinator = Coordinator(world.config(**RENAMED), store, world.clock)
        succeeds = coordinator.history.latest.succeeds
        assert succeeds is not None
        world.clock.advance_to(coordinator.terms.start_of(succeeds.from_t + 3))
        world.live(store, succeeds.from_t + 3, **RENAMED)
        carried = store.releases("a", succeeds.from_t, 1)[0]
    assert carried.missed
    assert carried.content["terms_version"] == 2
    assert min(carried.content["values"]) >= 0
    assert sum(carried.content["values"]) == pytest.approx(1)


@pytest.mark.parametrize("selection", ["open", "roster"])
def test_both_versions_are_asked_alike(selection: str, tmp_path: Path) -> None:
    """The same users, at the same rate: a device answers in the round of its own terms only."""
    fleet = Fleet(40, "x", lambda number, t: 1 + (t >= 9 and number % 2))
    world = StrataWorld(tmp_path, fleet, {"mechanism": "lpa", "selection": selection})
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 1)
        if selection == "roster":
            enrol_all(store, 40)
        world.live(store, 4)
        coordinator = world.live(store, 16, **RENAMED)
        assert world.miscounted(store) == []
        released = store.releases("a", 0, 100)
        rounds = store.rounds("a", 8)
    assert [one.t for one in released] == [*range(1, 17)]
    assert coordinator.terms.version == 2
    asks: dict[tuple[int, str], list[object]] = {}
    for one in rounds:
        asks.setdefault((one.t, one.purpose), []).append((one.rate, one.users, one.epsilon_nano))
    assert all(len(set(alike)) == 1 for alike in asks.values())
    assert any(len(alike) == 2 for alike in asks.values())
    for t in range(9, 13):
        answered = [n for name, who in fleet.told.items() if name.startswith(f"{t}-") for n in who]
        assert answered
        assert answered == list(dict.fromkeys(answered)) or selection == "open"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"labels": ["x", "y"]}, "stored with labels ="),
        (
            {"labels": ["x", "y"], "successor": {"version": 2}},
            "label 'z' of version 1 is gone, and nothing says where to; say what it is now:",
        ),
        (
            {"labels": ["x", "y"], "successor": {"version": 2, "rename": {"z": "x", "q": "x"}}},
            "'q' is renamed, and was no label of version 1",
        ),
        ({"epsilon": 2, "successor": {"version": 2}}, "the file says 2: epsilon would grow"),
        ({"window": 3, "successor": {"version": 2}}, "the window would become shorter"),
        ({"interval": "20s", "successor": {"version": 2}}, "interval_ms would change"),
        ({"selection": "open", "successor": {"version": 2}}, "selection would change"),
        ({"window": 5, "successor": {"version": 3}}, "set version = 2"),
        (
            {"window": 5, "level": [CAREFUL | {"window": 7}], "successor": {"version": 2}},
            "the window would become shorter at level careful",
        ),
        (
            {"window": 5, "level": [], "successor": {"version": 2}},
            "they do not have the level careful",
        ),
    ],
)
def test_what_cannot_follow_is_refused_in_one_line(
    changed: dict[str, object], told: str, tmp_path: Path
) -> None:
    given: dict[str, object] = {"selection": "slots", "level": [CAREFUL]}
    if changed.get("selection") == "open":
        given, changed = {"selection": "slots"}, changed | {"level": None}
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        clock = ManualClock(START_MS)
        Coordinator(stream_config(tmp_path, **given), store, clock)
        with pytest.raises(Mistake) as refused:
            Coordinator(stream_config(tmp_path, **given | changed), store, clock)
        assert len(store.versions("a")) == 1
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.problem in (Problem.CONFIG_FILE, Problem.TERMS_CHANGED)
    assert "collector.toml, line" in str(refused.value)


def test_a_section_that_has_had_its_effect_stays_in_the_file(tmp_path: Path) -> None:
    given = {"selection": "slots", "labels": LABELS}
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        clock = ManualClock(START_MS)
        Coordinator(stream_config(tmp_path, **given), store, clock)
        changed = {"selection": "slots", "window": 5, "successor": {"version": 2}}
        Coordinator(stream_config(tmp_path, **changed), store, clock)
        Coordinator(stream_config(tmp_path, **changed), store, clock)
        Coordinator(stream_config(tmp_path, selection="slots", window=5), store, clock)
        with pytest.raises(Mistake, match="set version = 3"):
            Coordinator(stream_config(tmp_path, **changed | {"window": 6}), store, clock)
        with pytest.raises(Mistake, match="window = 5, but the file says 4"):
            Coordinator(stream_config(tmp_path, **given), store, clock)
        assert len(store.versions("a")) == 2


def test_a_leader_learns_of_terms_that_another_collector_added(
    database: Database, tmp_path: Path
) -> None:
    """A rolling update: the first collector still has the old file."""
    world = StrataWorld(tmp_path, Fleet(80, "x"), {"mechanism": "lpf"})
    with closing(PostgresStore(database, SECRETS.master)) as store:
        terms_of(world.config(), store, world.clock)
        lease = store.lease("a", "the first", 60)
        assert lease is not None
        leader = Coordinator(world.config(), store.under(lease), world.clock)
        leader.advance()
        follower = Follower(world.config(**RENAMED), store, world.clock, Listener())
        follower.advance()
        succeeds = follower.history.latest.succeeds
        assert succeeds is not None
        while leader.last_t < succeeds.from_t:
            wake = leader.advance()
            for asking in leader.opened:
                if not store.received("a", asking.name):
                    world.fleet.answer(store, asking)
            world.clock.advance_to(max(wake, world.clock.now_ms()))
        names = {one.name for one in store.rounds("a", succeeds.from_t - 1)}
        released = store.releases("a", 0, 100)
    t = succeeds.from_t
    assert {f"{t}-publication", f"{t}-publication-v2"} <= names
    assert [one.t for one in released] == [*range(1, t + 1)]
    assert released[-1].content["terms_version"] == 2
