"""Slots: rounds that open and close by the clock alone, and reports that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from ldpstream.collector.api import lookup
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.contract import RoundState
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.mechanisms.mechanism import drive
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.registry import build
from ldpstream.protocol.slots import is_turn
from tests.collector.api import STREAM, Api, assert_problem, running
from tests.collector.driving import Crash, DyingStore, LaggingStore, World, miscounted
from tests.collector.helpers import (
    SECRETS,
    START_MS,
    device_of,
    report_of,
    stream_config,
    unsigned,
)
from tests.waiting import eventually

INTERVAL_MS = 10_000
DEADLINE_MS = 9000
WINDOW = 4


def world_of(folder: Path, **stream: object) -> World:
    return World(stream_config(folder, **{"selection": "slots"} | stream), folder / "store.sqlite")


@pytest.mark.parametrize("mechanism", ["lpu", "lpf"])
def test_releases_are_those_of_the_mechanism_on_the_same_tallies(
    mechanism: str, tmp_path: Path
) -> None:
    world = world_of(tmp_path, mechanism=mechanism)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 9)
        assert [*miscounted(store, world)] == []
        rounds = {one.t: one for one in store.rounds("a", 0)}
        released = store.releases("a", 0, 100)
    assert [release.t for release in released] == [*range(1, 10)]
    again = build(mechanism, world.config.settings)
    for release in released:

        def tally(ask: Ask, t: int = release.t) -> Tally:
            stored = rounds[t]
            assert (stored.users, stored.epsilon_nano) == (ask.users, ask.epsilon.nano)
            assert stored.support is not None
            return again.noise.tally(ask.epsilon, stored.support)

        expected = drive(again.step(release.t), tally).to_json()
        told = {key: release.content[key] for key in ("devices", "heard_t")}
        assert release.content == expected | told
        assert (release.asked, release.missed) == (world.config.population // WINDOW, False)


def test_a_round_is_open_from_the_start_of_its_timestamp_to_the_deadline(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        coordinator = Coordinator(world.config, store, world.clock)
        for t in range(1, 4):
            assert coordinator.advance() == START_MS + (t - 1) * INTERVAL_MS + DEADLINE_MS
            assert coordinator.open is not None
            assert coordinator.open.name == f"{t}-publication"
            assert coordinator.open.stored.epsilon_nano == 10**9
            world.clock.advance(DEADLINE_MS - 1)
            coordinator.advance()
            assert coordinator.open is not None
            world.clock.advance(1)
            assert coordinator.advance() == START_MS + t * INTERVAL_MS
            assert coordinator.open is None
            assert coordinator.last_t == t
            world.clock.advance(INTERVAL_MS - DEADLINE_MS)


def test_a_slow_engine_costs_nobody_a_window(tmp_path: Path) -> None:
    """Rounds go on while nothing is counted; then all are released, in order."""
    world = world_of(tmp_path)
    with closing(SqliteStore(world.file, SECRETS.master)) as file:
        store = LaggingStore(file)
        coordinator = Coordinator(world.config, store, world.clock)  # type: ignore[arg-type]
        for t in range(1, 8):
            coordinator.advance()
            assert coordinator.open is not None
            assert coordinator.open.stored.t == t
            world.answer(file, coordinator.open)
            world.clock.advance(DEADLINE_MS)
            coordinator.advance()
            world.clock.advance(INTERVAL_MS - DEADLINE_MS)
        assert coordinator.last_t == 0
        assert [one.state for one in file.rounds("a", 0)] == [RoundState.CLOSED] * 7
        store.counts = True
        coordinator.advance()
        assert coordinator.open is not None
        assert (coordinator.last_t, coordinator.open.stored.t) == (7, 8)
        released = file.releases("a", 0, 100)
        assert [one.t for one in released] == [*range(1, 8)]
        assert all(one.received > 0 and not one.missed for one in released)
        assert [*miscounted(file, world)] == []


def test_a_lag_outlives_a_restart(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    with closing(SqliteStore(world.file, SECRETS.master)) as file:
        store = LaggingStore(file)
        for t in range(1, 5):
            coordinator = Coordinator(world.config, store, world.clock)  # type: ignore[arg-type]
            coordinator.advance()
            again = Coordinator(world.config, store, world.clock)  # type: ignore[arg-type]
            assert again.open is not None, "an open round is announced at once"
            assert again.open.stored.t == t
            world.answer(file, again.open)
            world.clock.advance(INTERVAL_MS)
            again.advance()
        store.counts = True
        Coordinator(world.config, store, world.clock).advance()  # type: ignore[arg-type]
        assert [one.t for one in file.releases("a", 0, 100)] == [1, 2, 3, 4]
        assert [*miscounted(file, world)] == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("mechanism", ["lpu", "lpf"])
def test_a_crash_at_any_step_changes_nothing(mechanism: str, after: bool, tmp_path: Path) -> None:
    def lived(folder: Path, die_at: int | None) -> tuple[list[object], int]:
        folder.mkdir()
        world, changes = world_of(folder, mechanism=mechanism, window=3, population=12), 0
        with closing(SqliteStore(world.file, SECRETS.master)) as store:
            dying = DyingStore(store, die_at, after=after)
            with suppress(Crash):
                changes = world.live(dying, 5)
        with closing(SqliteStore(world.file, SECRETS.master)) as store:
            world.live(store, 5)
            assert [*miscounted(store, world)] == []
            rounds = store.rounds("a", 0)
            assert len({one.name for one in rounds}) == len(rounds)
            assert {one.state for one in rounds if one.t <= 5} == {RoundState.TALLIED}
            releases = store.releases("a", 0, 100)
        assert [one.t for one in releases[:5]] == [1, 2, 3, 4, 5]
        return [one.content for one in releases[:5]], changes

    calm, changes = lived(tmp_path / "calm", None)
    assert changes > 5
    for die_at in range(changes):
        assert lived(tmp_path / str(die_at), die_at)[0] == calm


def test_missed_timestamps_are_carried_over_as_soon_as_a_round_is_open(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 2)
    world.clock.advance_to(START_MS + 7 * INTERVAL_MS + 5)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        coordinator = Coordinator(world.config, store, world.clock)
        coordinator.advance()
        assert coordinator.last_t == 7
        world.live(store, 9)
        released = store.releases("a", 0, 100)
    assert [release.t for release in released] == [*range(1, 10)]
    assert [release.missed for release in released] == [False] * 2 + [True] * 5 + [False] * 2


def test_a_round_that_a_crash_left_open_is_counted_and_the_gap_behind_it_said(
    tmp_path: Path,
) -> None:
    world = world_of(tmp_path)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        coordinator = Coordinator(world.config, store, world.clock)
        coordinator.advance()
        store.accept("a", "1-publication", unsigned((1, b"\1\1")))
    world.clock.advance(3 * INTERVAL_MS)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        Coordinator(world.config, store, world.clock).advance()
        released = store.releases("a", 0, 100)
    assert (released[0].received, released[0].missed) == (1, False)
    assert [release.missed for release in released[1:]] == [True, True]


def test_nothing_happens_before_the_start_nor_at_a_timestamp_that_is_nearly_over(
    tmp_path: Path,
) -> None:
    config = stream_config(tmp_path, selection="slots")
    with closing(SqliteStore(tmp_path / "store.sqlite", SECRETS.master)) as store:
        Coordinator(config, store, ManualClock(START_MS))
        early = Coordinator(config, store, ManualClock(START_MS - 99_000))
        assert (early.advance(), early.open) == (START_MS, None)
        late = Coordinator(config, store, ManualClock(START_MS + DEADLINE_MS))
        assert (late.advance(), late.open) == (START_MS + INTERVAL_MS, None)


# Over HTTP


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with running(tmp_path, selection="slots", mechanism="lpu") as found:
        yield found


def due(api: Api, t: int, number: int = 1000) -> list[int]:
    """The devices below a number whose slot t is."""
    keys = api.signer(0).keys
    return [n for n in range(number) if is_turn(keys.of(device_of(n)), WINDOW, t)]


@pytest.mark.parametrize("number", [4, 1000])
def test_reports_count_in_the_slot_of_their_device_only(api: Api, number: int) -> None:
    asking, speaking = api.asking(), due(api, 1, number)
    records = [api.signer(n).record(asking, report_of(asking, n)) for n in range(number)]
    told = api.post_batch(asking, b"".join(records)).json()
    assert told["accepted"] == len(speaking) > 0
    assert told["refused"] == {"report-not-asked": number - len(speaking)}
    assert api.service.store.received("a", asking.name) == len(speaking)


def test_who_is_not_due_is_told_so_after_the_mac(api: Api) -> None:
    asking = api.asking()
    other = next(n for n in range(100) if n not in due(api, 1))
    answer = api.post(asking, other, report_of(asking, other))
    assert_problem(answer, 403, "report-not-asked")
    assert answer.json()["now_ms"] == START_MS
    forged = api.post(asking, other, b"\1\0", **{"Ldp-Mac": "00" * 16})
    assert_problem(forged, 401, "report-mac")
    speaking = due(api, 1)[0]
    taken = api.post(asking, speaking, report_of(asking, speaking))
    assert (taken.status_code, taken.json()) == (202, {"status": "accepted", "now_ms": START_MS})


def test_every_device_has_one_timestamp_in_a_window(api: Api) -> None:
    heard = [n for t in range(1, WINDOW + 1) for n in due(api, t, 100)]
    assert sorted(heard) == [*range(100)]


def at(asking: OpenRound, t: int) -> OpenRound:
    """The round of another timestamp."""
    return replace(asking, stored=replace(asking.stored, t=t, name=f"{t}-publication"))


def test_a_report_before_its_timestamp_is_told_when_to_come(api: Api) -> None:
    asking = api.asking()
    api.clock.advance(3300)
    early = at(asking, 3)
    device = due(api, 3)[0]
    answer = api.post(early, device, b"\1\0")
    assert_problem(answer, 425, "round-early")
    assert answer.headers["Retry-After"] == "17"
    assert answer.json()["now_ms"] == START_MS + 3300
    record = api.signer(device).record(early, b"\1\0")
    assert_problem(api.post_batch(early, record), 425, "round-early")
    forged = api.post(early, device, b"\1\0", **{"Ldp-Mac": "00" * 16})
    assert_problem(forged, 401, "report-mac")


def test_rounds_that_are_over_or_never_come_are_told_apart(api: Api) -> None:
    asking = api.asking()
    api.pass_time(DEADLINE_MS)
    assert_problem(api.post(asking, 1, b"\1\0"), 410, "round-closed")
    api.clock.advance(9 * INTERVAL_MS)
    assert_problem(api.post(at(asking, 4), 1, b"\1\0"), 410, "round-closed")
    for name in ("1-dissimilarity", "x", "0-publication"):
        other = replace(asking, stored=replace(asking.stored, name=name))
        assert_problem(api.post(other, 1, b"\1\0"), 404, "round-unknown")


def test_a_collector_that_is_late_holds_the_report(api: Api) -> None:
    """Its timestamp has begun by the clock, and the scheduler sleeps: the report waits for it."""
    asking = api.asking()
    api.pass_time(DEADLINE_MS)
    device, answers = due(api, 2)[0], []
    api.clock.advance(INTERVAL_MS - DEADLINE_MS)
    sending = Thread(target=lambda: answers.append(api.post(at(asking, 2), device, b"\1\0")))
    sending.start()
    api.service.scheduler.wake()
    sending.join()
    assert answers[0].status_code == 202


def test_a_report_is_not_held_for_ever(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = api.asking()
    api.pass_time(DEADLINE_MS)
    monkeypatch.setattr(lookup, "HOLD_SECONDS", 0.0)
    monkeypatch.setattr(Coordinator, "_opens_slot", lambda *_: False)
    api.clock.advance(INTERVAL_MS - DEADLINE_MS)
    answer = api.post(at(asking, 2), due(api, 2)[0], b"\1\0")
    assert_problem(answer, 503, "unavailable")
    assert answer.headers["Retry-After"] == "1"


def test_the_selection_is_told_everywhere(api: Api) -> None:
    api.asking()
    described = api.client.get(STREAM).json()
    assert described["selection"] == described["terms"]["selection"] == "slots"
    assert described["terms"]["deadline_ms"] == DEADLINE_MS
    (shown,) = api.client.get(f"{STREAM}/status").json()["rounds"]
    assert (shown["round"], shown["asked"], shown["rate"]) == ("1-publication", 10, [1, 4])
    assert 'selection="slots"' in api.client.get("/metrics").text
    listed = api.client.get(f"{STREAM}/rounds").json()["rounds"]
    assert [one["round"] for one in listed] == ["1-publication"]
    api.pass_time(DEADLINE_MS)
    eventually(lambda: api.service.streams["a"].hub.last_t == 1)
    (released,) = api.client.get(f"{STREAM}/releases").json()["releases"]
    assert (released["asked"], released["received"]) == (10, 0)


def test_a_tag_that_is_no_combination_is_refused_after_the_mac(tmp_path: Path) -> None:
    """Tags 0 to 2 are combinations, among which a fake may choose, as an application may."""
    attributes = {"country": ["de", "fr"]}
    with running(tmp_path, selection="slots", mechanism="lpu", attributes=attributes) as api:
        asking, (first, other, *_) = api.asking(), due(api, 1)
        report = report_of(asking, first)
        for tag, code in ((3, "report-range"), (255, "report-range")):
            assert_problem(api.post(asking, first, report[:-1] + bytes([tag])), 400, code)
        assert_problem(api.post(asking, first, report[:-1]), 400, "report-length")
        forged = api.signer(first).headers(asking, report)
        changed = api.post(asking, first, report[:-1] + b"\1", **forged)
        assert_problem(changed, 401, "report-mac")
        assert api.post(asking, first, report[:-1] + b"\2").status_code == 202
        assert_problem(api.post(asking, first, report[:-1] + b"\1"), 409, "report-conflict")
        assert api.post(asking, other, report_of(asking, other)).status_code == 202
