"""Devices that speak unasked: in their slot, at their moment, by their own clock; only there."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from ldpstream.device import Device, Unreachable
from ldpstream.device.exchange import Request
from ldpstream.protocol.slots import (
    EPOCH_WINDOWS,
    epoch_of,
    group_of,
    is_turn,
    moment_ms,
    next_turn,
    slot_of,
)
from tests.device.collectors import ABSENT, INTERVAL_MS, NANO, START_MS, Bench, a_round, make_terms

WINDOW = 4
DEADLINE_MS = 54_000
SLOTS: dict[str, Any] = {"selection": "slots", "deadline_ms": DEADLINE_MS}


@pytest.fixture
def device(bench: Bench) -> Device:
    bench.collector.terms = make_terms(**SLOTS)
    return bench.enrolled()


def live(bench: Bench, device: Device, timestamps: int) -> None:
    """Run the device, whose pauses move the clock, for so many timestamps."""
    end = bench.clock.wall + timestamps * INTERVAL_MS
    device.run(stop=lambda: bench.clock.wall >= end)


def key_of(device: Device) -> bytes:
    return device.session.account.enrolled.key


# The formula


def test_a_slot_is_what_the_protocol_says() -> None:
    digest = hmac.digest(b"k" * 32, b"ldpstream slot 2\n1\n\n3", hashlib.sha256)
    assert slot_of(b"k" * 32, 20, 3) == int.from_bytes(digest[:8], "big") % 20


@pytest.mark.parametrize("window", [1, 2, 7, 20])
@pytest.mark.parametrize("key", [bytes(range(32)), bytes(32), b"k" * 32])
def test_turns_are_at_least_a_window_apart_and_one_a_window_within_an_epoch(
    window: int, key: bytes
) -> None:
    turns = [t for t in range(1, 6 * EPOCH_WINDOWS * window + 1) if is_turn(key, window, t)]
    for earlier, later in pairwise(turns):
        same_epoch = epoch_of(earlier, window) == epoch_of(later, window)
        assert later - earlier == window if same_epoch else later - earlier >= window
        assert next_turn(key, window, earlier + 1) == later
    counts = Counter(epoch_of(t, window) for t in turns)
    assert counts[0] == EPOCH_WINDOWS
    assert set(counts.values()) <= {EPOCH_WINDOWS - 1, EPOCH_WINDOWS}


def test_one_that_speaks_in_all_its_turns_speaks_no_more_than_an_honest_one(bench: Bench) -> None:
    """At a change of slots too: a fake that keeps no ledger gains nothing by it."""
    bench.collector.terms = make_terms(**SLOTS)
    device, end = bench.enrolled(), 4 * EPOCH_WINDOWS * WINDOW
    live(bench, device, end)
    turns = [t for t in range(1, end + 1) if is_turn(key_of(device), WINDOW, t)]
    assert [one.t for one in bench.collector.sent] == turns


def test_slots_are_spread_evenly() -> None:
    """Of 20,000 keys each of 20 slots has 1,000; 1e-7 in all for more than 6 deviations (31)."""
    counts = Counter(slot_of(n.to_bytes(32, "big"), 20, 0) for n in range(20_000))
    assert set(counts) == set(range(20))
    assert max(abs(count - 1000) for count in counts.values()) < 6 * 31


def test_moments_leave_time_before_and_after() -> None:
    found = [moment_ms(n.to_bytes(32, "big"), "regions", DEADLINE_MS) for n in range(1000)]
    assert min(found) >= DEADLINE_MS // 16
    assert max(found) < DEADLINE_MS * 11 // 16
    assert len(set(found)) > 900


# A device


def test_it_reports_once_in_each_window_with_all_of_epsilon_and_asks_nothing(
    bench: Bench, device: Device
) -> None:
    key = key_of(device)
    live(bench, device, EPOCH_WINDOWS * WINDOW)
    turns = [t for t in range(1, EPOCH_WINDOWS * WINDOW + 1) if is_turn(key, WINDOW, t)]
    assert [one.t for one in bench.collector.sent] == turns
    assert {one.nano for one in bench.collector.sent} == {NANO}
    assert all(one.on_disk_first for one in bench.collector.sent)
    assert {one.method for one in bench.collector.requests} == {"POST"}


def test_it_reports_at_its_own_moment(bench: Bench, device: Device) -> None:
    moment = moment_ms(key_of(device), "regions", DEADLINE_MS)
    at = list[int]()
    device.follow(lambda: at.append((bench.clock.wall - START_MS) % INTERVAL_MS))
    live(bench, device, 3 * WINDOW)
    # Each report is free one interval of w after the one before: a millisecond later each time.
    assert [later - moment for later in at] == [0, 1, 2]


def test_a_new_epoch_gives_another_slot_and_never_two_reports_in_a_window(
    bench: Bench, device: Device
) -> None:
    live(bench, device, 6 * EPOCH_WINDOWS * WINDOW)
    turns = [one.t for one in bench.collector.sent]
    assert all(later - earlier >= WINDOW for earlier, later in pairwise(turns))
    assert len(turns) >= 6 * EPOCH_WINDOWS - 6  # at most one turn is lost with each change


def test_an_announcement_is_not_listened_to(bench: Bench, device: Device) -> None:
    key = key_of(device)
    bench.clock.pass_timestamps(next(t for t in range(1, 9) if not is_turn(key, WINDOW, t)) - 1)
    assert bench.ask(device, a_round(bench.t)) == []
    assert bench.collector.requests[-1].path.endswith("/devices")


def test_a_scheduler_is_told_when_to_wake_it_up(bench: Bench, device: Device) -> None:
    due = device.due_in()
    bench.clock.pass_ms(round(1000 * due) - 1)
    assert device.poll().delivered == []
    bench.clock.pass_ms(1)
    assert len(device.poll().delivered) == 1
    assert device.due_in() == pytest.approx(WINDOW * INTERVAL_MS / 1000, abs=1)


def test_a_sleeper_that_wakes_up_in_its_slot_reports_at_once(bench: Bench, device: Device) -> None:
    t = next_turn(key_of(device), WINDOW, 1)
    bench.clock.pass_ms((t - 1) * INTERVAL_MS + DEADLINE_MS * 3 // 4)
    assert [one.t for one in device.poll().delivered] == [t]


def test_a_slot_that_was_slept_through_is_missed(bench: Bench, device: Device) -> None:
    t = next_turn(key_of(device), WINDOW, 1)
    bench.clock.pass_ms((t - 1) * INTERVAL_MS + DEADLINE_MS)
    assert device.poll().delivered == []
    live(bench, device, WINDOW)
    assert [one.t for one in bench.collector.sent] == [t + WINDOW]


def test_without_a_connection_nothing_is_debited(bench: Bench, device: Device) -> None:
    bench.collector.loses = lambda request: request.method == "GET"  # a connection
    bench.clock.pass_ms(round(1000 * device.due_in()))
    with pytest.raises(Unreachable):
        device.poll()
    assert device.session.account._known.ledger.debits == ()
    bench.collector.loses = lambda request: False
    assert len(device.poll().delivered) == 1


def test_a_lost_answer_is_tried_again_with_the_same_bytes(bench: Bench, device: Device) -> None:
    tries = iter([True, True])
    bench.collector.loses = lambda request: request.method == "POST" and next(tries, False)
    live(bench, device, WINDOW)
    assert len({one.report for one in bench.collector.sent}) == 1
    assert len(bench.collector.sent) == 3


def test_it_is_told_the_time_by_the_answer_to_its_report(bench: Bench, device: Device) -> None:
    honest = bench.collector._take

    def take(request: Request) -> Any:
        response = honest(request)
        body = b'{"status": "accepted", "now_ms": %d}' % (bench.clock.wall + 12_345)
        return type(response)(202, {}, body)

    bench.collector._take = take  # type: ignore[method-assign]
    live(bench, device, WINDOW)
    # The clock may have run on by the pause under way when the device was stopped.
    assert device.session.account.label.now_ms() == bench.clock.wall + 12_345


def test_too_early_for_the_collector_it_sends_the_same_bytes_when_it_is_time(
    bench: Bench, device: Device
) -> None:
    honest, early = bench.collector._take, [True]

    def take(request: Request) -> Any:
        response = honest(request)
        if early.pop() if early else False:
            body = b'{"type": "urn:ldpstream:problem:round-early", "now_ms": %d}'
            return type(response)(425, {"retry-after": "3"}, body % (bench.clock.wall - 2_000))
        return response

    bench.collector._take = take  # type: ignore[method-assign]
    live(bench, device, WINDOW)
    assert len(bench.collector.sent) == 2
    assert len({one.report for one in bench.collector.sent}) == 1
    assert bench.slept[1] >= 3.0


def test_a_clock_that_was_far_ahead_for_a_moment_does_not_silence_it(
    bench: Bench, device: Device
) -> None:
    device.session.account.label.correct(START_MS + 10**6 * INTERVAL_MS)
    live(bench, device, 3 * WINDOW)
    before = len(bench.collector.sent)
    assert before >= 1
    device.session.account.label.correct(bench.clock.wall)
    live(bench, device, 3 * WINDOW)
    assert len(bench.collector.sent) > before


@pytest.mark.parametrize("now_ms", [0, 1, 1 << 52])
def test_a_wrong_time_does_not_silence_it(bench: Bench, device: Device, now_ms: int) -> None:
    """It asks nobody, so that it hears of the right time only when it reports again."""
    device.session.account.label.correct(now_ms)
    live(bench, device, 4 * WINDOW)
    assert len(bench.collector.sent) >= 2


@pytest.mark.parametrize("deadline_ms", [10, 500, 2_000, 60_000])
def test_however_short_the_deadline_there_is_a_turn(bench: Bench, deadline_ms: int) -> None:
    bench.collector.terms = make_terms(selection="slots", deadline_ms=deadline_ms)
    device = bench.enrolled()
    live(bench, device, 2 * WINDOW)
    assert len(bench.collector.sent) == 2


def test_a_collector_that_refuses_and_moves_time_to_and_fro_is_not_flooded(
    bench: Bench, device: Device
) -> None:
    honest = bench.collector._take
    bench.collector.status = 403

    def take(request: Request) -> Any:
        response = honest(request)
        to = bench.clock.wall + (WINDOW * INTERVAL_MS if len(bench.collector.sent) % 2 else 0)
        return type(response)(403, {}, b'{"now_ms": %d}' % to)

    bench.collector._take = take  # type: ignore[method-assign]
    live(bench, device, 4 * WINDOW)
    assert len(bench.collector.sent) < 40


def test_far_too_early_for_the_collector_it_sends_the_same_bytes_at_t(
    bench: Bench, device: Device
) -> None:
    """The clock of the device was a window ahead: it waits for t by the collector's clock."""
    honest, ahead_ms = bench.collector._take, WINDOW * INTERVAL_MS

    def take(request: Request) -> Any:
        response = honest(request)
        t = int(request.path.split("/")[-2].split("-")[0])
        early_ms = bench.collector.terms.start_of(t) - bench.clock.wall
        body = b'{"now_ms": %d}' % bench.clock.wall
        if early_ms > 0:
            return type(response)(425, {"retry-after": str(early_ms // 1000 + 1)}, body)
        return type(response)(202, {}, body)

    bench.collector._take = take  # type: ignore[method-assign]
    device.session.account.label.correct(bench.clock.wall + ahead_ms)
    live(bench, device, 3 * WINDOW)
    first, second, *_ = bench.collector.sent
    assert (first.t, first.report) == (second.t, second.report)
    assert len(bench.collector.sent) < 8


def test_a_slot_key_that_changes_while_a_text_is_read_does_not_change_its_group(
    bench: Bench,
) -> None:
    """The bucket is one of the group that the tag names, whatever another process has renewed."""
    texts = {"labels": ABSENT, "query": "vocabulary", "oracle": "hadamard", "bits": 16}
    shape = texts | {"salt": "00000000000000ff", "prefixes": [2, 4], "window": 1}
    bench.collector.terms = terms = make_terms(**SLOTS, **shape)
    device = bench.enrolled()
    group = group_of(key_of(device), terms.tags)
    other = next(key for n in range(99) if group_of(key := bytes([n]) * 32, terms.tags) != group)

    def read() -> str:
        with bench.open() as second:
            account = second.session.account
            account.renew(account.enrolled, account.enrolled.key, other)
        return "a text"

    device.follow(read)
    device.poll(wait=2 * INTERVAL_MS // 1000)
    assert [one.report[-1] for one in bench.collector.sent] == [group]
