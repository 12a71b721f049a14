"""New terms, other levels, renewed keys: the ledger goes on, nothing is spent twice."""

from __future__ import annotations

import json
import sqlite3
from enum import StrEnum
from itertools import pairwise
from typing import Any

import pytest

from ldpstream.device import Device, Policy, TermsRefused, read_status
from ldpstream.device.checking import check_ledger
from ldpstream.device.exchange import Request, Response
from ldpstream.device.store import DeviceStore, LedgerUnusable
from ldpstream.errors import Mistake
from ldpstream.protocol.messages import FetchTerms, RenewKey
from ldpstream.protocol.succession import Acceptance
from tests.device.collectors import INTERVAL_MS, NANO, TOKEN, a_round
from tests.device.town import FIRST, SECOND, SLOTS, Place, Town

ONE = "https://one.invalid"
WINDOW = 4
LEVELS = [{"name": "careful", "epsilon_nano": NANO // 2, "window": 8, "oracle": "grr"}]
OPEN: dict[str, Any] = {"selection": "open"}


def joined(town: Town, place: Place, accept: Any = "not-looser", **options: Any) -> Device:
    device = town.create() if not town.path.exists() else town.open()
    device.enrol(ONE, place.terms.stream, TOKEN, accept=accept, **options)
    device.observe("south")
    return device


def asked_for(place: Place, kind: type) -> list[Request]:
    return [one for one in place.requests if isinstance(one.message, kind)]


def turns(place: Place) -> list[int]:
    return sorted({one.t for one in place.arrived})


# Successors


@pytest.mark.parametrize("selection", [SLOTS, OPEN])
def test_labels_change_and_nobody_is_silent(town: Town, selection: dict[str, Any]) -> None:
    place = town.build("regions", window=WINDOW, **selection)
    place.rounds = [a_round(t) for t in range(1, 40)]
    device = joined(town, place)
    town.live(device, 8)
    place.succeed(labels=["north", "east", "far south", "west", "up"], mapped=[
        "north", "east", "far south", "west"])  # fmt: skip
    town.live(device, 16)
    found = turns(place)
    assert all(later - earlier == WINDOW for earlier, later in pairwise(found))
    assert len(found) == 6
    assert [one.version for one in place.arrived].count(2) >= 3
    assert town.most_in(WINDOW * INTERVAL_MS) == NANO
    assert check_ledger(town.path).faults == ()


class Region(StrEnum):
    """Labels as an application may name them."""

    SOUTH = "south"


@pytest.mark.parametrize("value", ["south", Region.SOUTH])
def test_a_renamed_label_is_reported_under_its_new_name_also_two_versions_later(
    town: Town, value: str
) -> None:
    place = town.build("regions", window=1, epsilon_nano=30 * NANO, **SLOTS)
    device = joined(town, place)
    device.observe(value)
    town.live(device, 2)
    for labels in (["a", "b", "c", "d"], ["c3", "a3", "b3", "d3"]):
        mapped = ["a", "b", "c", "d"] if labels[0] == "a" else ["a3", "b3", "c3", "d3"]
        place.succeed(labels=labels, mapped=mapped)
        town.live(device, 4)
    last = place.arrived[-1]
    # With epsilon 30 a report tells the truth: "south" was the third, is c, and is c3, the first.
    decoded = place.terms.randomiser(place.terms.epsilon).decode(last.report)
    assert (last.version, decoded) == (3, 0)


def test_a_name_that_the_new_terms_have_is_not_renamed(town: Town) -> None:
    place = town.build("regions", window=1, epsilon_nano=30 * NANO, **SLOTS)
    device = joined(town, place)
    town.live(device, 2)
    place.succeed(labels=["south", "old south", "x", "y"], mapped=["x", "y", "old south", "x"])
    town.live(device, 4)
    last = place.arrived[-1]
    assert place.terms.randomiser(place.terms.epsilon).decode(last.report) == 0


def test_a_smaller_epsilon_is_silent_only_as_long_as_old_debits_fill_it(town: Town) -> None:
    place = town.build("regions", window=WINDOW)
    device = joined(town, place)
    place.rounds = [a_round(1, epsilon_nano=NANO // 4)]
    device.poll()
    place.succeed(epsilon_nano=NANO // 2)
    device.poll()  # hears of the successor
    town.clock.pass_timestamps(1)
    place.rounds = [a_round(2, "2-a", epsilon_nano=NANO // 2)]
    device.poll()
    assert len(place.arrived) == 1
    place.rounds = [a_round(2, "2-b", epsilon_nano=NANO // 4)]
    device.poll()
    assert [one.version for one in place.arrived] == [1, 2]


def test_a_longer_window_counts_debits_of_before(town: Town) -> None:
    place = town.build("regions", window=2, **SLOTS)
    device = joined(town, place)
    town.live(device, 6)
    before = turns(place)[-1]
    place.succeed(window=6)
    town.live(device, 24)
    later = [t for t in turns(place) if t > before]
    new = [one.t for one in place.arrived if one.version == 2]
    assert all(b - a >= 6 for a, b in pairwise(new))
    assert new[0] - max(t for t in turns(place) if t < new[0]) >= 6
    assert len(later) >= 3


def test_it_starts_at_its_start_and_not_before(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    place.succeed(from_t=8)
    town.live(device, 12)
    for one in place.arrived:
        assert one.version == (2 if one.t >= 8 else 1)
    assert turns(place) == list(range(1, 13))


def test_who_was_away_for_two_versions_goes_through_both(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    town.live(device, 2)
    place.succeed(from_t=3)
    place.succeed(from_t=5)
    town.clock.pass_timestamps(20)
    town.live(device, 8)
    assert [one.version for one in place.arrived][-1] == 3
    assert check_ledger(town.path).faults == ()


def test_an_accepted_successor_outlives_the_process(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    place.succeed(from_t=6)
    town.live(device, 3)
    (kept,) = DeviceStore(town.path).load().enrolments
    assert kept.successor == place.terms
    device = town.open()
    device.observe("south")
    town.live(device, 5)
    assert {one.version for one in place.arrived if one.t >= 6} == {2}


@pytest.mark.parametrize(
    ("accept", "changes", "goes_over"),
    [
        ("never", {"oracle": "oue"}, False),
        (None, {"oracle": "oue"}, False),
        ("same-labels", {"oracle": "oue"}, True),
        ("same-labels", {"labels": ["north", "east", "south", "west", "up"]}, False),
        ("not-looser", {"labels": ["north", "east", "south", "west", "up"]}, True),
        ("not-looser", {"epsilon_nano": 2 * NANO}, False),
        ("not-looser", {"window": 3}, False),
        (Policy(Acceptance.NOT_LOOSER, least_epsilon_nano=NANO), {"epsilon_nano": 1}, False),
        (Policy(Acceptance.NOT_LOOSER, longest_window=9), {"window": 10}, False),
    ],
)
def test_the_application_says_how_far_a_device_goes_by_itself(
    town: Town, accept: Any, changes: dict[str, Any], goes_over: bool
) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    device = joined(town, place, accept)
    town.live(device, 8)
    place.succeed(**changes)
    town.live(device, 24)
    assert any(one.version == 2 for one in place.arrived) is goes_over
    assert len(turns(place)) >= (6 if goes_over else 8), "whoever does not go over goes on"


def test_a_pin_that_the_application_has_read_is_accepted(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    place.succeed(from_t=3)
    first, second = place.versions.values()
    place.terms = first
    device = joined(town, place, Policy(pins=frozenset({second.pin})))
    town.live(device, 6)
    assert place.arrived[-1].version == 2


def test_other_terms_at_enrolment_are_refused_unless_they_are_an_agreed_successor(
    town: Town,
) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    device = joined(town, place, "never")
    place.succeed(epsilon_nano=NANO // 2)
    with pytest.raises(TermsRefused):
        device.enrol(ONE, "regions", TOKEN)
    device.enrol(ONE, "regions", TOKEN, accept="not-looser")
    town.live(device, 12)
    assert place.arrived[-1].version == 2


# A time that is wrong


def glitch(town: Town, place: Place, device: Device, t: int) -> None:
    """Let one answer tell a time in timestamp t, and the next ones the right one again."""
    reports = len(place.arrived)
    place.notice = {"now_ms": place.terms.start_of(t)}
    while len(place.arrived) == reports:
        town.live(device, 1)
    place.notice = {}
    reports = len(place.arrived)
    while len(place.arrived) == reports:
        town.live(device, 1)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("changes", [{}, {"epsilon_nano": NANO // 2, "window": 3 * WINDOW}])
def test_one_wrong_time_does_not_silence_until_the_successor_begins(
    town: Town, restarts: bool, changes: dict[str, Any]
) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    device = joined(town, place)
    later = place.succeed(from_t=10_000_000, **changes)
    town.live(device, 2 * WINDOW)
    glitch(town, place, device, 10_000_100)
    assert place.arrived[-1].version == 2
    if restarts:
        device = town.open()
        device.observe("south")
    went_over = len(place.arrived)
    town.live(device, 8 * WINDOW)
    after = place.arrived[went_over:]
    assert {one.version for one in after} == {1}
    assert len(after) >= 4, "it goes on under the terms that are current"
    assert after[0].at_ms - place.arrived[went_over - 1].at_ms >= later.promise.span
    assert check_ledger(town.path).faults == ()


@pytest.mark.parametrize("selection", [SLOTS, OPEN])
def test_one_wrong_time_does_not_bring_terms_that_follow_those_not_begun(
    town: Town, selection: dict[str, Any]
) -> None:
    place = town.build("regions", window=2, **selection)
    place.rounds = [a_round(t) for t in range(1, 40)]
    device = joined(town, place)
    second = place.succeed(from_t=10_000_000)
    town.live(device, 4)
    third = place.succeed(from_t=10_000_010)
    place.notice = {"now_ms": second.start_of(10_000_000), "successor": third.pin}
    asked = len(place.requests)
    while len(place.requests) == asked:
        device.poll(wait=300)
    place.notice = {}
    device = town.open()
    device.observe("south")
    reports = len(place.arrived)
    town.live(device, 8)
    assert len(place.arrived) - reports >= 3
    (kept,) = DeviceStore(town.path).load().enrolments
    assert [one.version for one in kept.all_terms] == [1, 2]


def test_a_successor_binds_reports_under_the_terms_of_before_for_its_span(town: Town) -> None:
    """A collector that says now one time and now another gets no more than either promise."""
    place = town.build("regions", window=2, **OPEN)
    device = joined(town, place)
    first, later = place.terms, place.succeed(from_t=10_000_000, window=8)
    device.poll()  # hears of the successor
    for step in range(120):
        town.clock.pass_timestamps(1)
        lies = step % 40 > 20
        t = 10_000_000 + step if lies else first.timestamp_at(town.clock.wall)
        place.notice, place.rounds = ({"now_ms": first.start_of(t)} if lies else {}), []
        device.poll()  # hears what time it is
        place.rounds = [a_round(t)]
        device.poll()
    seconds = [one.at_ms for one in town.arrived if one.version == 2]
    assert len(seconds) >= 6
    assert len(town.arrived) >= len(seconds) + 24
    for moment in seconds:
        near = [one.at_ms for one in town.arrived if abs(one.at_ms - moment) < later.promise.span]
        assert near == [moment]
    assert town.most_in(first.promise.span) == NANO
    assert check_ledger(town.path).faults == ()


def test_a_report_under_a_successor_binds_whoever_leaves_and_joins_again(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    first, later = place.terms, place.succeed(from_t=4, window=4)
    town.live(device, 10)
    last = place.arrived[-1]
    assert last.version == 2
    device.leave()
    place.terms = first
    device = joined(town, place)
    town.live(device, 10)
    (again, *_) = (one for one in place.arrived if one.at_ms > last.at_ms)
    assert again.at_ms - last.at_ms >= later.promise.span


def test_terms_of_before_go_when_the_next_ones_are_accepted(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    town.live(device, 2)
    place.succeed()
    town.live(device, 4)
    (kept,) = DeviceStore(town.path).load().enrolments
    assert [one.version for one in kept.all_terms] == [1, 2]
    place.succeed()
    town.live(device, 4)
    (kept,) = DeviceStore(town.path).load().enrolments
    assert [one.version for one in kept.all_terms] == [2, 3]
    assert place.arrived[-1].version == 3
    assert check_ledger(town.path).faults == ()


def test_windows_that_grow_step_by_step_get_no_further_than_at_once(town: Town) -> None:
    place = town.build("regions", window=2, **SLOTS)
    device = joined(town, place)
    for window in (8, 16, 32):
        town.live(device, 40)
        place.succeed(window=window)
        if window == 8:
            device.enrol(ONE, "regions", TOKEN, accept="not-looser")  # as at every start
    town.live(device, 80)
    (kept,) = DeviceStore(town.path).load().enrolments
    assert max(one.window for one in kept.all_terms) == 8
    place.terms = next(one for one in place.versions.values() if one.window == 16)
    with pytest.raises(TermsRefused):
        device.enrol(ONE, "regions", TOKEN, accept="not-looser")
    device.enrol(ONE, "regions", TOKEN, accept=Policy(pins=frozenset({place.terms.pin})))
    (kept,) = DeviceStore(town.path).load().enrolments
    assert kept.successor == place.terms


def test_a_window_that_is_far_longer_needs_a_pin(town: Town) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    device = joined(town, place)
    place.succeed(window=1 << 31)
    town.live(device, 40)
    assert {one.version for one in place.arrived} == {1}
    assert "successor-refused" in {one.code for one in read_status(town.path).refusals}


# A collector that lies in its notices


@pytest.mark.parametrize("lie", ["unknown", "its own"])
def test_a_successor_that_is_none_costs_neither_reports_nor_a_flood(town: Town, lie: str) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    named = "ab" * 32 if lie == "unknown" else place.terms.pin
    place.notice = {"successor": named, "renew": True}
    town.live(device, 40)
    assert turns(place) == list(range(1, 41))
    assert len(asked_for(place, FetchTerms)) <= 40
    assert len(asked_for(place, RenewKey)) <= 40


def test_a_wrong_answer_to_the_fetch_of_a_successor_is_not_the_last(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    first, honest, wrong = place.terms, place.respond, list[Request]()

    def slips(request: Request) -> Response:
        if isinstance(request.message, FetchTerms) and not wrong:
            wrong.append(request)
            return Response(200, {}, first.canonical.encode())
        return honest(request)

    place.respond = slips  # type: ignore[method-assign]
    place.succeed()
    town.live(device, 12)
    assert wrong
    assert place.arrived[-1].version == 2


def test_ever_new_pins_are_fetched_no_more_than_once_a_report(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)

    def loses(request: Request) -> bool:
        place.notice = {"successor": f"{len(place.requests):064x}"}
        return isinstance(request.message, FetchTerms)

    place.loses = loses
    town.live(device, 60)
    assert turns(place) == list(range(1, 61))
    assert len(asked_for(place, FetchTerms)) <= 60


def test_failing_updates_are_tried_ever_more_rarely(town: Town) -> None:
    place = town.build("regions", window=20, epsilon_nano=NANO)
    device = joined(town, place)
    place.notice = {"successor": "ab" * 32}
    place.loses = lambda request: isinstance(request.message, FetchTerms)
    for _ in range(100):
        place.rounds = [a_round(device.t, epsilon_nano=NANO // 100)]
        device.poll()
        town.clock.pass_timestamps(1)
    assert 3 <= len(asked_for(place, FetchTerms)) <= 12


def test_terms_that_are_malformed_or_foreign_are_counted_and_ignored(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    other = json.loads(place.terms.canonical) | {"stream": "else"}
    successor = place.succeed()
    honest = place.respond
    answers = iter([b"[", b"{}", json.dumps({"terms": other}).encode(), b"\xff" * 100])

    def respond(request: Request) -> Any:
        response = honest(request)
        if isinstance(request.message, FetchTerms):
            return type(response)(200, {}, next(answers, response.body))
        return response

    place.respond = respond  # type: ignore[method-assign]
    town.live(device, 40)
    assert turns(place) == list(range(1, 41))
    codes = {one.code for one in read_status(town.path).refusals}
    assert codes & {"answer-malformed", "terms-malformed", "successor-refused"}
    assert successor.pin in place.versions


# Levels


def test_a_level_has_its_own_epsilon_window_rounds_and_key(town: Town) -> None:
    place = town.build("regions", version=3, window=WINDOW, levels=LEVELS, **SLOTS)
    device = joined(town, place, level="careful")
    town.live(device, 32)
    assert {(one.nano, one.level) for one in place.arrived} == {(NANO // 2, "careful")}
    assert all(one.round.endswith("-publication-careful") for one in place.arrived)
    assert len(turns(place)) == 4
    assert device.terms is not None
    assert (device.terms.window, device.terms.pin) == (8, place.terms.pin)


def test_an_unknown_level_is_refused(town: Town) -> None:
    place = town.build("regions", version=3, levels=LEVELS, **SLOTS)
    with pytest.raises(Mistake, match="no level"):
        joined(town, place, level="reckless")
    assert DeviceStore(town.path).load().enrolments == ()


def test_moving_to_another_level_the_stricter_promise_binds_for_its_span(town: Town) -> None:
    place = town.build("regions", version=3, window=WINDOW, levels=LEVELS, **SLOTS)
    device = joined(town, place, level="careful")
    town.live(device, 8)
    moved = town.clock.steady
    (last,) = place.arrived
    device.enrol(ONE, "regions", TOKEN, level="")
    town.live(device, 24)
    after = [one for one in place.arrived if one.at_ms > moved]
    assert {one.level for one in after} == {""}
    assert after[0].at_ms >= moved + 8 * INTERVAL_MS, "0.5 and 1 do not fit into careful's 0.5"
    assert after[0].at_ms - last.at_ms >= 8 * INTERVAL_MS
    assert len(after) >= 3
    device.enrol(ONE, "regions", TOKEN, level="careful")
    moved = town.clock.steady
    town.live(device, 24)
    again = [one for one in place.arrived if one.at_ms > moved]
    assert again[0].at_ms - after[-1].at_ms >= 8 * INTERVAL_MS
    assert check_ledger(town.path).faults == ()


LOOSE = [{"name": "careful", "epsilon_nano": 10 * NANO, "window": 1, "oracle": "grr"}]


def test_a_successor_accepted_at_one_level_does_not_loosen_another(town: Town) -> None:
    place = town.build("regions", version=3, window=WINDOW, levels=LEVELS, **SLOTS)
    first = place.terms
    device = joined(town, place)
    place.succeed(levels=LOOSE, from_t=12)
    town.live(device, 5)
    (kept,) = DeviceStore(town.path).load().enrolments
    assert kept.successor is not None, "at the standard level it changes nothing"
    second, place.terms = place.terms, first
    device.enrol(ONE, "regions", TOKEN, level="careful", pin=first.pin)
    moved = town.clock.steady
    town.live(device, 40)
    after = [one for one in town.arrived if one.at_ms > moved]
    assert {(one.nano, one.version, one.level) for one in after} == {(NANO // 2, 1, "careful")}
    assert check_ledger(town.path).faults == ()
    place.terms = second
    with pytest.raises(TermsRefused):
        device.enrol(ONE, "regions", TOKEN, level="careful")


def test_floors_of_the_policy_hold_at_a_level_that_is_chosen_later(town: Town) -> None:
    place = town.build("regions", version=3, window=WINDOW, levels=LEVELS, **SLOTS)
    first = place.terms
    device = joined(town, place, Policy(Acceptance.NOT_LOOSER, longest_window=8))
    place.succeed(levels=[LEVELS[0] | {"window": 1000}], from_t=12)
    town.live(device, 5)
    place.terms = first
    device.enrol(ONE, "regions", TOKEN, level="careful", pin=first.pin)
    assert DeviceStore(town.path).load().enrolments[0].successor is None


def test_a_level_that_only_the_terms_in_force_have_can_be_taken(town: Town) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    device = joined(town, place)
    place.succeed(levels=LEVELS)
    town.live(device, 12)
    assert place.arrived[-1].version == 2
    assert device.enrol(ONE, "regions", TOKEN, level="careful").level == "careful"
    town.live(device, 24)
    assert place.arrived[-1].level == "careful"
    assert check_ledger(town.path).faults == ()


def test_a_floor_that_is_not_given_again_stays(town: Town) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    device = joined(town, place, Policy(Acceptance.NOT_LOOSER, least_epsilon_nano=NANO // 2))
    device.enrol(ONE, "regions", TOKEN, accept="not-looser")
    (kept,) = DeviceStore(town.path).load().enrolments
    assert kept.policy.least_epsilon_nano == NANO // 2


def test_the_promise_in_force_binds_the_first_report_under_a_successor(town: Town) -> None:
    """Even if a file has a looser one: nothing that this device writes, but a second defence."""
    place = town.build("regions", window=WINDOW)
    joined(town, place)
    memory = DeviceStore(town.path).load()
    (enrolled,) = memory.enrolments
    looser = place.succeed(epsilon_nano=10 * NANO)
    assert memory.ledger(enrolled, looser).left(0) == NANO


def test_enrolling_again_without_a_level_keeps_the_one_that_was_chosen(town: Town) -> None:
    place = town.build("regions", version=3, window=WINDOW, levels=LEVELS, **SLOTS)
    device = joined(town, place, level="careful")
    assert device.enrol(ONE, "regions", TOKEN).level == "careful"


@pytest.mark.parametrize("when", ["before", "while the collector answers"])
def test_the_level_of_before_is_the_one_in_the_file(town: Town, when: str) -> None:
    place = town.build("regions", version=3, window=WINDOW, levels=LEVELS, **SLOTS)
    device, other = joined(town, place), town.open()

    def move(request: Request | None = None) -> bool:
        place.loses = lambda request: False
        other.enrol(ONE, "regions", TOKEN, level="careful")
        return False

    if when == "before":
        move()
        assert device.enrol(ONE, "regions", TOKEN).level == "careful"
    else:
        place.loses = move
        with pytest.raises(LedgerUnusable, match="replaced"):
            device.enrol(ONE, "regions", TOKEN)
    assert DeviceStore(town.path).load().enrolments[0].terms.level == "careful"


@pytest.mark.parametrize("offered", [0, 1])
def test_versions_of_one_stream_at_two_addresses_have_one_ledger(town: Town, offered: int) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    device = joined(town, place)
    place.succeed(from_t=6)
    town.live(device, 5 if offered else 12)
    versions = list(place.versions.values())
    there = town.build("regions", "https://two.invalid")
    there.terms = versions[offered]
    with pytest.raises(Mistake, match=r"is enrolled in regions at https://one\.invalid"):
        device.enrol(there.url, "regions", TOKEN)
    device.enrol(there.url, "regions", TOKEN, moved_from=ONE)
    (kept,) = DeviceStore(town.path).load().enrolments
    assert kept.url == there.url
    assert kept.successor == versions[1], "what was accepted stays so"


TWO = "https://two.invalid"


def go_through(town: Town, place: Place, device: Device, versions: int) -> None:
    """Let the device go over to so many successors, each of which it reports under."""
    for _ in range(versions):
        place.succeed()
        town.live(device, 3 * place.terms.window)
        assert place.arrived[-1].version == place.terms.version


@pytest.mark.parametrize("offered", [0, 1, 2])
def test_no_terms_that_an_enrolment_ever_had_get_a_second_ledger(town: Town, offered: int) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    town.live(device, 2)
    go_through(town, place, device, 3)
    there = town.build("regions", TWO)
    there.terms = list(place.versions.values())[offered]
    with pytest.raises(Mistake, match=r"is enrolled in regions at https://one\.invalid"):
        town.open().enrol(TWO, "regions", TOKEN)


def test_a_fork_of_terms_gets_no_second_ledger(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    first = place.terms
    one = place.succeed(epsilon_nano=NANO // 2)
    place.terms = first
    other = place.succeed(epsilon_nano=NANO // 4)
    device = town.create()
    place.terms = one
    device.enrol(ONE, "regions", TOKEN)
    there = town.build("regions", TWO)
    for there.terms in (first, other):
        with pytest.raises(Mistake, match="is enrolled in regions"):
            device.enrol(TWO, "regions", TOKEN)


@pytest.mark.parametrize("leaves", [False, True])
def test_two_enrolments_never_meet_in_the_same_terms(town: Town, leaves: bool) -> None:
    """One holds the first version and one the third, and nobody can know that they are related."""
    place, there = town.build("regions", **OPEN), town.build("regions", TWO, **OPEN)
    device = joined(town, place)
    second, third = place.succeed(from_t=1), place.succeed(from_t=1)
    there.terms = third
    there.versions = {third.pin: third}
    device.enrol(TWO, "regions", TOKEN)
    device.stream("regions", TWO).observe("south")
    there.rounds = [a_round(1)]
    device.poll()
    if leaves:
        device.leave("regions", TWO)
    with pytest.raises(Mistake, match="is enrolled in regions at"):
        device.enrol(ONE, "regions", TOKEN)  # offers the third
    place.terms, place.rounds = second, [a_round(1)]
    device.poll()
    with pytest.raises(Mistake, match="is enrolled in regions at"):
        device.enrol(ONE, "regions", TOKEN)
    kept = DeviceStore(town.path).load().enrolments[0]
    assert [one.version for one in kept.all_terms] == [1]
    if leaves:  # who joins again finds the debits, and may have the terms
        assert device.enrol(TWO, "regions", TOKEN).pin == third.pin
        assert len(DeviceStore(town.path).load().pins) == 5
        device.leave("regions", ONE)
        device.leave("regions", TWO)
        assert DeviceStore(town.path).load().pins == (), (
            "of a file without enrolments nothing is kept"
        )


def test_a_file_of_the_format_before_knows_the_terms_in_force(town: Town) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    town.live(device, 2)
    go_through(town, place, device, 1)
    before = DeviceStore(town.path).load()
    with sqlite3.connect(town.path, isolation_level=None) as connection:
        connection.execute("DROP TABLE pins")
        connection.execute("ALTER TABLE enrolment DROP COLUMN other_keys")
        connection.execute("PRAGMA user_version = 4")
    connection.close()
    device = town.open()
    assert DeviceStore(town.path).load().enrolments == before.enrolments
    there = town.build("regions", TWO)
    for there.terms in place.versions.values():
        with pytest.raises(Mistake, match="is enrolled in regions"):
            device.enrol(TWO, "regions", TOKEN)


# Keys


def test_a_key_is_renewed_after_a_report_and_slots_stay(town: Town) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    device = joined(town, place)
    town.live(device, 8)
    place.masters = [FIRST, SECOND]
    town.live(device, 8)
    assert len(asked_for(place, RenewKey)) == 1
    place.masters = [SECOND]
    town.live(device, 16)
    found = turns(place)
    assert len(found) == 8
    assert all(later - earlier == WINDOW for earlier, later in pairwise(found))


def test_a_renewal_that_fails_costs_no_report_and_is_tried_again(town: Town) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    device = joined(town, place)
    town.live(device, 4)
    place.masters = [FIRST, SECOND]
    place.loses = lambda request: isinstance(request.message, RenewKey)
    town.live(device, 12)
    place.loses = lambda request: False
    town.live(device, 12)
    place.masters = [SECOND]
    town.live(device, 8)
    assert len(turns(place)) == 9
    assert 2 <= len(asked_for(place, RenewKey)) <= 8


def test_a_renewal_for_another_device_is_refused(town: Town) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    device = joined(town, place)
    key = device.session.account.enrolled.key
    place.masters = [FIRST, SECOND]
    honest = place._admit
    place._admit = lambda number, level: honest(bytes(16), level)  # type: ignore[method-assign]
    town.live(device, 8)
    assert device.session.account.enrolled.key == key
    assert "answer-malformed" in {one.code for one in read_status(town.path).refusals}


def test_a_renewed_key_is_only_for_the_enrolment_that_asked_for_it(town: Town) -> None:
    place = town.build("regions", window=WINDOW, **SLOTS)
    honest = town.build("other", "https://two.invalid", window=WINDOW, **SLOTS)
    device = joined(town, place)
    place.masters = [FIRST, SECOND]

    def elsewhere(request: Request) -> bool:
        if isinstance(request.message, RenewKey):  # while the collector holds its answer back
            place.loses = lambda request: False
            other = town.open()
            other.leave()
            other.enrol(honest.url, "other", TOKEN)
        return False

    place.loses = elsewhere
    town.live(device, 24)
    (kept,) = DeviceStore(town.path).load().enrolments
    assert kept.key == honest._keys(kept.number)[0]
    assert honest.arrived


@pytest.mark.parametrize("restarts", [False, True])
def test_a_renewed_key_that_is_not_taken_costs_one_report(town: Town, restarts: bool) -> None:
    place = town.build("regions", window=1, **SLOTS)
    device = joined(town, place)
    town.live(device, 2)
    place.masters = [FIRST, b"a slip"]
    place.loses = lambda request: (
        isinstance(request.message, RenewKey) and place.masters.pop() is None
    )
    town.live(device, 2)
    assert (place.masters, len(asked_for(place, RenewKey))) == ([FIRST], 1)
    if restarts:
        device = town.open()
        device.observe("south")
    town.live(device, 6)
    assert len(turns(place)) == 9
    place.masters = [FIRST, SECOND]
    place.loses = lambda request: False
    town.live(device, 3)
    place.masters = [SECOND]
    town.live(device, 3)
    assert len(turns(place)) == 15, "a key that is good is renewed, and the other one forgotten"
    assert DeviceStore(town.path).load().enrolments[0].other_keys is None
