"""One file with many streams: one limit over all of them, by what left the device."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ldpstream.device import Acceptance, AsyncDevice, Device, Limit, Policy, read_status
from ldpstream.device.checking import check_ledger
from ldpstream.device.command_line import run
from ldpstream.device.display import limit_remarks, status_lines
from ldpstream.device.exchange import Request, Response, Unreachable
from ldpstream.device.status_page import status_page
from ldpstream.device.store import DeviceStore, LedgerUnusable
from ldpstream.errors import Mistake
from ldpstream.protocol.answers import Refused
from ldpstream.protocol.messages import SubmitReport
from tests.device.collectors import INTERVAL_MS, NANO, TOKEN, a_round
from tests.device.town import SLOTS, Place, Town

ONE, TWO, THREE = "https://one.invalid", "https://two.invalid", "https://three.invalid"
DAY = Limit(epsilon=2, span="24h")


def enrolled(town: Town, device: Device, *places: Place, **options: Any) -> None:
    for place in places:
        device.enrol(place.url, place.terms.stream, TOKEN, **options)
        device.stream(place.terms.stream, place.url).observe("south")


def asking(town: Town, *places: Place, nano: int = NANO, name: str = "") -> None:
    for place in places:
        t = place.terms.timestamp_at(town.clock.wall)
        place.rounds = [a_round(t, f"{t}-{name or 'publication'}", epsilon_nano=nano)]


# One stream stays as short as it is; several are named


def test_the_api_of_one_stream_needs_no_names(town: Town) -> None:
    place = town.build("regions", **SLOTS)
    device = town.create()
    device.enrol(ONE, "regions", TOKEN)
    device.observe("south")
    town.live(device, 8)
    assert len(place.arrived) == 2


def test_several_streams_are_served_by_one_run(town: Town) -> None:
    one, two = town.build("regions", **SLOTS), town.build("cars", TWO, window=3, **SLOTS)
    three = town.build("trees", THREE, window=1)
    device = town.create()
    enrolled(town, device, one, two, three)
    three.rounds = [a_round(t, epsilon_nano=NANO) for t in range(1, 13)]
    town.live(device, 12)
    assert len({part.t for part in one.arrived}) == 3
    assert len({part.t for part in two.arrived}) == 4
    assert len({part.t for part in three.arrived}) >= 6


def test_with_several_streams_a_call_without_a_name_says_what_to_do(town: Town) -> None:
    device = town.create()
    enrolled(town, device, town.build("regions"), town.build("regions", TWO, window=5))
    for call in (lambda: device.observe("south"), lambda: device.stream("regions"), device.leave):
        with pytest.raises(Mistake, match=r"regions at https://two\.invalid"):
            call()
    with pytest.raises(Mistake, match="not enrolled in birds"):
        device.stream("birds")
    assert device.stream("regions", TWO).terms == town.places[TWO].terms


def test_the_same_name_at_two_collectors_are_two_streams(town: Town) -> None:
    one, two = town.build("regions"), town.build("regions", TWO, window=5)
    device = town.create()
    enrolled(town, device, one, two)
    asking(town, one, two)
    device.poll()
    assert (len(one.arrived), len(two.arrived)) == (1, 1)
    numbers = {one.number for one in DeviceStore(town.path).load().enrolments}
    assert len(numbers) == 2


def test_coins_of_two_streams_have_nothing_in_common(town: Town) -> None:
    device = town.create()
    enrolled(town, device, town.build("regions"), town.build("regions", TWO, window=5))
    first, second = DeviceStore(town.path).load().enrolments
    assert first.secret != second.secret


def test_a_collector_that_stalls_makes_no_other_stream_miss_its_slot(town: Town) -> None:
    slow, other = town.build("regions", **SLOTS), town.build("cars", TWO, **SLOTS)
    device = town.create()
    enrolled(town, device, slow, other)
    slow.takes_seconds = 30
    slow.loses = lambda request: True
    town.live(device, 40)
    assert len({part.t for part in other.arrived}) == 10


def test_asyncio_serves_all_of_them_too(town: Town) -> None:
    one, two = town.build("regions", window=1), town.build("cars", TWO, window=1)

    class Carrier:
        async def send(self, url: str, request: Request) -> Any:
            return town.send(url, request)

        async def connect(self, url: str, step: Any) -> None: ...

        async def close(self) -> None: ...

    async def live() -> None:
        town.create().close()
        parts = town.parts | {"transport": Carrier()}
        del parts["sleep"]
        async with AsyncDevice.open(town.path, **parts) as device:
            for place in (one, two):
                await device.enrol(place.url, place.terms.stream, TOKEN)
            asking(town, one, two)
            await device.run(stop=lambda: bool(one.arrived and two.arrived))

    asyncio.run(live())
    assert len(one.arrived) == len(two.arrived) == 1


@pytest.mark.parametrize("fault", ["refuses", "lost", "nonsense"])
def test_a_collector_at_fault_keeps_no_other_stream_from_being_polled(
    town: Town, fault: str
) -> None:
    bad, good = town.build("bad"), town.build("good", TWO)
    device = town.create()
    enrolled(town, device, bad, good)
    answer = {"refuses": Response(404, {}, b"{}"), "nonsense": Response(200, {}, b"[")}
    if fault == "lost":
        bad.loses = lambda request: True
    else:
        bad.respond = lambda request: answer[fault]  # type: ignore[method-assign]
    asking(town, good)
    with pytest.raises((Refused, Unreachable)):
        device.poll()
    assert len(good.arrived) == 1


def test_a_stream_that_waits_for_its_budget_holds_no_other_in_a_poll(town: Town) -> None:
    waits, other = town.build("waits", window=1), town.build("other", TWO, window=1)
    device = town.create()
    enrolled(town, device, waits, other)
    town.clock.pass_ms(INTERVAL_MS // 2)
    asking(town, waits)
    device.poll()
    town.clock.pass_ms(INTERVAL_MS // 2)  # the next timestamp, and half a window
    asking(town, waits, other)
    began = town.clock.steady
    heard = device.poll()
    assert (len(other.arrived), town.clock.steady) == (1, began)
    assert [one.t for one in heard.put_off] == [2]
    town.clock.pass_ms(INTERVAL_MS // 2 + 1)
    device.poll()
    assert len(waits.arrived) == 2, "what was put off is asked again"


def test_a_collector_that_is_overloaded_holds_no_poll_for_long(town: Town) -> None:
    busy, other = town.build("busy", interval_ms=86_400_000), town.build("other", TWO)
    device = town.create()
    enrolled(town, device, busy, other)
    honest = busy.respond

    def respond(request: Request) -> Response:
        answer = honest(request)
        return Response(503, {}, b"{}") if isinstance(request.message, SubmitReport) else answer

    busy.respond = respond  # type: ignore[method-assign]
    asking(town, busy, other)
    began = town.clock.steady
    device.poll()
    assert town.clock.steady - began <= 20_000
    assert len(other.arrived) == 1
    busy.respond = honest  # type: ignore[method-assign]
    drawn = {one.report for one in busy.arrived}
    assert [one.t for one in device.poll().delivered] == [1]
    assert {one.report for one in busy.arrived} == drawn, "the same bytes"


# Another process


@pytest.mark.parametrize("left", ["a", "b"])
@pytest.mark.parametrize("selection", [SLOTS, {}])
def test_a_run_goes_on_when_another_process_leaves_one_of_the_streams(
    town: Town, left: str, selection: dict[str, Any]
) -> None:
    one, two = (
        town.build("a", window=1, **selection),
        town.build("b", TWO, window=1, **selection),
    )
    for place in (one, two):
        place.rounds = [a_round(t, epsilon_nano=NANO) for t in range(1, 30)]
    device, moments = town.create(), list[int]()
    enrolled(town, device, one, two)

    def leave(request: Request) -> bool:
        if not moments and len(one.arrived) > 2:  # in the midst of a step
            moments.append(town.clock.steady)
            town.open().leave(left)
        return False

    one.loses = leave
    town.live(device, 14)
    (moment,) = moments
    later = Counter(part.stream for part in town.arrived if part.at_ms > moment)
    assert set(later) == {"a", "b"} - {left}
    assert later.total() >= 4


@pytest.mark.parametrize("another_process", [True, False])
def test_a_value_is_never_reported_in_a_stream_that_it_was_not_handed_over_for(
    town: Town, another_process: bool
) -> None:
    sure: dict[str, Any] = {"window": 1, "epsilon_nano": 30 * NANO, "other": "west", **SLOTS}
    one, illness = town.build("one", **sure), town.build("illness", TWO, **sure)
    device = town.create()
    enrolled(town, device, one)
    held = device.stream("one")
    town.live(device, 2)
    other = town.open() if another_process else device
    other.leave()
    other.enrol(TWO, "illness", TOKEN)
    held.observe("south")
    town.live(device, 4)

    def told(place: Place) -> set[object]:
        randomiser = place.terms.randomiser(place.terms.epsilon)
        return {randomiser.decode(part.report) for part in place.arrived}

    assert told(one) == {2}, "with epsilon 30 a report tells the truth"
    assert told(illness) == {3}, "nobody has handed a value over for it"
    device.observe("north")
    illness.arrived.clear()
    town.live(device, 2)
    assert told(illness) == {0}


# The limit


def test_the_limit_is_over_all_streams_and_outlives_the_process(town: Town) -> None:
    places = [town.build(f"s{n}", f"https://{n}.invalid", window=1) for n in range(4)]
    device = town.create(limit=DAY)
    enrolled(town, device, *places)
    for _ in range(5):
        asking(town, *places)
        device.poll()
        town.clock.pass_timestamps(2)
        device = town.open()
        for place in places:
            device.stream(place.terms.stream).observe("south")
    assert len(town.arrived) == 2
    town.clock.pass_timestamps(24 * 60)
    asking(town, *places)
    device.poll()
    assert len(town.arrived) == 4
    assert check_ledger(town.path).faults == ()


def test_without_a_limit_streams_add_up(town: Town) -> None:
    places = [town.build(f"s{n}", f"https://{n}.invalid") for n in range(3)]
    device = town.create()
    enrolled(town, device, *places)
    asking(town, *places)
    device.poll()
    assert town.most_in(INTERVAL_MS) == 3 * NANO


def test_a_tighter_limit_binds_at_once_and_a_looser_one_after_the_span(town: Town) -> None:
    one, two = town.build("a", window=1), town.build("b", TWO, window=1)
    device = town.create(limit=Limit(2, "10m"))
    enrolled(town, device, one, two)
    asking(town, one)
    device.poll()
    device.set_limit(Limit(1, "10m"))
    town.clock.pass_timestamps(2)
    asking(town, two)
    device.poll()
    assert len(town.arrived) == 1
    device.set_limit(Limit(2, "10m"))
    town.clock.pass_timestamps(2)
    asking(town, two)
    device.poll()
    assert len(town.arrived) == 1, "the tighter one still binds"
    town.clock.pass_timestamps(9)
    asking(town, one, two)
    device.poll()
    assert len(town.arrived) == 3
    assert len(DeviceStore(town.path).load().promises) == 1, "what does not bind is forgotten"


def test_a_limit_that_is_removed_binds_for_its_span(town: Town) -> None:
    one, two = town.build("a", window=1), town.build("b", TWO, window=1)
    device = town.create(limit=Limit(1, "10m"))
    enrolled(town, device, one, two)
    asking(town, one, two)
    device.poll()
    device.set_limit(None)
    assert device.limit is None
    town.clock.pass_timestamps(2)
    asking(town, one, two)
    device.poll()
    assert len(town.arrived) == 1
    town.clock.pass_timestamps(9)
    asking(town, one, two)
    device.poll()
    assert len(town.arrived) == 3


def test_a_reserve_keeps_a_part_free_for_one_stream(town: Town) -> None:
    greedy, modest = town.build("greedy", window=1), town.build("modest", TWO, window=1)
    device = town.create(limit=Limit(2, "1h"))
    enrolled(town, device, greedy)
    enrolled(town, device, modest, reserve="0.5")
    for _ in range(6):
        asking(town, greedy, nano=NANO // 2)
        device.poll()
        town.clock.pass_timestamps(2)
    assert len(greedy.arrived) == 3
    asking(town, modest, nano=NANO // 2)
    device.poll()
    assert len(modest.arrived) == 1
    assert check_ledger(town.path).faults == ()
    device.stream("modest").reserve(None)
    assert read_status(town.path, town.clock).streams[1].reserve_nano == 0


def test_a_reserve_brings_nothing_back_that_another_process_has_changed(town: Town) -> None:
    levels = [{"name": "careful", "epsilon_nano": NANO // 10, "window": 40, "oracle": "grr"}]
    place = town.build("a", version=3, levels=levels, **SLOTS)
    device, other = town.create(), town.open()
    enrolled(town, device, place)
    stream = device.stream("a")
    other.enrol(place.url, "a", TOKEN, level="careful")
    stream.reserve("0.01")
    (kept,) = DeviceStore(town.path).load().enrolments
    assert (kept.terms.level, kept.reserve_nano) == ("careful", NANO // 100)
    other.leave("a")
    with pytest.raises(Mistake, match="not enrolled"):
        stream.reserve(None)
    assert DeviceStore(town.path).load().enrolments == ()


def test_a_limit_is_compared_with_the_one_in_the_file(town: Town) -> None:
    device, other = town.create(limit=Limit(1, "1h")), town.open()
    other.set_limit(Limit(30, "1h"))
    device.set_limit(Limit(1, "1h"))
    limit = DeviceStore(town.path).load().limit
    assert limit is not None
    assert limit.epsilon_nano == NANO


def test_reserves_beyond_the_limit_are_refused(town: Town) -> None:
    device = town.create(limit=Limit(1, "1h"))
    enrolled(town, device, town.build("a"), reserve="0.6")
    with pytest.raises(Mistake, match="too small"):
        enrolled(town, device, town.build("b", TWO), reserve="0.6")
    with pytest.raises(Mistake, match="too small"):
        device.set_limit(Limit("0.5", "1h"))
    assert len(device.streams) == 1


def test_a_stream_that_the_limit_would_never_let_report_is_refused(town: Town) -> None:
    device = town.create(limit=Limit("0.5", "1h"))
    with pytest.raises(Mistake, match="too small"):
        device.enrol(ONE, town.build("a", **SLOTS).terms.stream, TOKEN)


def test_a_limit_that_never_allows_a_report_is_counted_and_not_fatal(town: Town) -> None:
    one, two = town.build("a", **SLOTS), town.build("b", TWO, epsilon_nano=NANO // 2, **SLOTS)
    device = town.create(limit=Limit(2, "4m"))
    enrolled(town, device, one, two)
    device.set_limit(Limit("0.5", "4m"))
    town.live(device, 12)
    assert (len(one.arrived), len(two.arrived)) == (0, 3)
    assert "limit-spent" in {one.code for one in read_status(town.path).refusals}


def test_slots_wait_for_the_limit(town: Town) -> None:
    """Two devices' worth of reports in the time of one: each window one of them is passed over."""
    one, two = town.build("a", **SLOTS), town.build("b", TWO, **SLOTS)
    device = town.create(limit=Limit(1, "4m"))
    enrolled(town, device, one, two)
    town.live(device, 40)
    assert town.most_in(4 * INTERVAL_MS) == NANO
    assert len(town.arrived) >= 9
    assert check_ledger(town.path).faults == ()


def test_a_wrong_time_puts_a_turn_off_by_windows_and_not_by_spans_of_the_limit(town: Town) -> None:
    place = town.build("regions", window=2, **SLOTS)
    device = town.create(limit=Limit(epsilon=30, span="365d"))
    enrolled(town, device, place)
    day_ms = 86_400_000
    place.notice = {"now_ms": place.terms.start_of(1) - 2 * 365 * day_ms}
    while not place.arrived:
        device.poll(wait=300)
    place.notice = {}
    assert device.due_in() <= 3 * place.terms.promise.span / 1000
    town.live(device, 8)
    assert len(turns_of(place)) >= 3


def turns_of(place: Place) -> set[int]:
    return {one.t for one in place.arrived}


def test_a_limit_that_is_none_leaves_no_file_without_a_limit(town: Town) -> None:
    with pytest.raises(Mistake):
        town.create(limit=Limit(0, "1h"))
    assert not town.path.exists()


def test_an_option_that_is_none_leaves_no_file(town: Town) -> None:
    with pytest.raises(TypeError, match="foo"):
        town.create(foo=5)
    assert not town.path.exists()


@pytest.mark.parametrize("path", [5, None, b"a", "a\0b"])
def test_a_path_that_is_none_is_told_in_one_line(path: Any) -> None:
    for make in (Device.open, Device.create):
        with pytest.raises(Mistake, match="the path is"):
            make(path)


def test_a_name_that_is_too_long_is_told_in_one_line(town: Town) -> None:
    path = town.path.with_name("a" * 300)
    with pytest.raises(Mistake):
        Device.open(path)
    with pytest.raises(LedgerUnusable):
        Device.create(path)


def test_limits_are_read_with_suspicion() -> None:
    with pytest.raises(Mistake, match="span"):
        _ = Limit(1, "soon").promise
    with pytest.raises(Mistake):
        _ = Limit(0, "1h").promise


# Who leaves


def test_a_stream_that_was_left_slows_later_ones_and_no_others(town: Town) -> None:
    left, other, renamed = (
        town.build("left"),
        town.build("other", TWO),
        town.build("renamed", THREE),
    )
    device = town.create()
    enrolled(town, device, left, other)
    asking(town, left)
    device.poll()
    device.leave("left")
    asking(town, other)
    device.poll()
    assert len(other.arrived) == 1, "it was enrolled before"
    enrolled(town, device, renamed)
    asking(town, renamed)
    device.poll()
    assert renamed.arrived == [], "it could be the same stream under another name"
    town.clock.pass_timestamps(4)
    town.clock.pass_ms(1)
    asking(town, renamed)
    device.poll()
    assert len(renamed.arrived) == 1


def test_leaving_a_second_stream_keeps_its_debits(town: Town) -> None:
    """The first one's are old by then, and are forgotten; the second one's are not."""
    first, second = town.build("first", window=5), town.build("second", TWO, window=3)
    device = town.create()
    enrolled(town, device, first, second)
    asking(town, first)
    device.poll()
    town.clock.pass_timestamps(4)
    asking(town, second)
    first.rounds = []
    device.poll()
    town.clock.pass_timestamps(2)
    device.leave("first")
    device.leave("second")
    enrolled(town, device, second)
    asking(town, second)
    device.poll()
    assert len(second.arrived) == 1
    town.clock.pass_timestamps(1)
    town.clock.pass_ms(1)
    asking(town, second)
    device.poll()
    assert len(second.arrived) == 2


def test_two_heirs_both_find_the_debits(town: Town) -> None:
    """Enrolling in another stream first is no way around the ledger."""
    left, decoy = town.build("left"), town.build("decoy", TWO)
    device = town.create()
    enrolled(town, device, left)
    asking(town, left)
    device.poll()
    device.leave("left")
    enrolled(town, device, decoy, left)
    asking(town, left)
    device.poll()
    assert len(left.arrived) == 1


def test_the_limit_counts_streams_that_were_left(town: Town) -> None:
    left, other = town.build("left", window=1), town.build("other", TWO, window=1)
    device = town.create(limit=Limit(1, "1h"))
    enrolled(town, device, left, other)
    asking(town, left)
    device.poll()
    device.leave("left")
    town.clock.pass_timestamps(5)
    asking(town, other)
    device.poll()
    assert other.arrived == []


def test_leaving_one_stream_keeps_the_others_identity(town: Town) -> None:
    one, two = town.build("a", window=1), town.build("b", TWO, window=1)
    device = town.create()
    enrolled(town, device, one, two)
    before = {
        e.terms.stream: (e.number, e.key, e.secret)
        for e in DeviceStore(town.path).load().enrolments
    }
    device.leave("a")
    (kept,) = DeviceStore(town.path).load().enrolments
    assert (kept.number, kept.key, kept.secret) == before["b"]
    assert before["a"][2] not in town.path.read_bytes()
    asking(town, two)
    device.poll()  # one stream is left: no name is needed
    assert len(two.arrived) == 1


def test_what_one_stream_forgets_does_not_silence_another(town: Town) -> None:
    """A short window forgets after minutes; a new stream with a long one does not suffer by it."""
    short, long = town.build("short", window=1), town.build("long", TWO, window=1000)
    device = town.create()
    enrolled(town, device, short)
    for _ in range(4):
        asking(town, short)
        device.poll()
        town.clock.pass_timestamps(3)
    enrolled(town, device, long)
    asking(town, long)
    device.poll()
    assert len(long.arrived) == 1


@pytest.mark.parametrize("apart", [0, 1])
def test_forgotten_moments_of_streams_that_were_left_are_not_lost(town: Town, apart: int) -> None:
    """A longer limit that is set later must know that something is missing."""
    places = [town.build(name, f"https://{name}.invalid", window=1) for name in ("a", "b")]
    device = town.create()
    enrolled(town, device, *places)
    for place in places:
        asking(town, place)
        device.poll()
        town.clock.pass_ms(apart)
    town.clock.pass_timestamps(3)
    for place in places:
        asking(town, place, nano=1)
        device.poll()
    before = max(one.own_ms for one in DeviceStore(town.path).load().forgotten)
    for place in places:
        device.leave(place.terms.stream)
    device.set_limit(Limit(1, "1h"))
    later = town.build("later", THREE, window=60, epsilon_nano=NANO)
    enrolled(town, device, later)
    assert max(one.own_ms for one in DeviceStore(town.path).load().forgotten) >= before
    asking(town, later, nano=NANO // 2)
    device.poll()
    assert later.arrived == []


def test_forgotten_moments_do_not_pile_up(town: Town) -> None:
    place = town.build("a", window=1)
    device = town.create()
    for _ in range(6):
        enrolled(town, device, place)
        for _ in range(2):
            town.clock.pass_timestamps(3)
            asking(town, place)
            device.poll()
        device.leave("a")
    assert len(DeviceStore(town.path).load().forgotten) <= 2


def test_a_copy_that_was_brought_back_silences_all_streams(town: Town) -> None:
    one, two = town.build("a", window=1), town.build("b", TWO, window=3)
    device = town.create()
    enrolled(town, device, one, two)
    device.close()
    town.witness.trusts = False
    device = town.open()
    town.witness.trusts = True
    for stream in device.streams:
        stream.observe("south")
    asking(town, one, two)
    device.poll()
    assert town.arrived == []
    town.clock.pass_timestamps(2)
    asking(town, one, two)
    device.poll()
    assert Counter(part.stream for part in town.arrived) == {"a": 1}


# What people see


def test_status_and_audit_show_the_limit_and_each_stream(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = town.build("a"), town.build("b", TWO)
    device = town.create(limit=DAY)
    enrolled(town, device, one, two)
    asking(town, one)
    device.poll()
    device.close()
    status = read_status(town.path, town.clock)
    assert status.limit is not None
    assert (status.limit.used_nano, [part.used_nano for part in status.streams]) == (
        NANO,
        [NANO, 0],
    )
    assert run(["status", str(town.path)]) == 0
    assert "limit: epsilon 2 in any 1 day, 1 used\n" in (said := capsys.readouterr().out)
    assert "\nepsilon: 1\n" in said
    assert "nano" not in said
    assert run(["audit", str(town.path)]) == 0
    assert "fullest 1d over all streams: 1000000000 of 2000000000" in capsys.readouterr().out
    assert run(["leave", str(town.path)]) == 2
    assert "name one" in capsys.readouterr().err


def test_status_says_that_an_earlier_limit_binds_and_that_the_device_is_silent(town: Town) -> None:
    device = town.create()
    enrolled(town, device, town.build("a", **SLOTS))
    device.set_limit(Limit("0.1", "24h"))
    (remark,) = limit_remarks(read_status(town.path, town.clock))
    assert remark.endswith("in a: the device is silent there until the limit is raised")
    device.set_limit(DAY)
    found = read_status(town.path, town.clock)
    until = datetime.fromtimestamp(town.clock.wall_ms() / 1000, UTC) + timedelta(days=1)
    (remark,) = limit_remarks(found)
    assert remark == (
        f"an earlier limit of epsilon 0.1 in any 1 day binds until {until:%Y-%m-%dT%H:%M:%S}+00:00:"
        " until then the device is silent in a"
    )
    assert remark in [*status_lines(found)]
    assert remark[1:] in status_page(found)
    town.clock.pass_timestamps(24 * 60 + 1)
    assert not [*limit_remarks(read_status(town.path, town.clock))]


# Arguments that are none


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda device: Limit(1, 3600), "the limit's span is 3600; give 500ms"),  # type: ignore[arg-type]
        (lambda device: Limit(1, None), "the limit's span is None"),  # type: ignore[arg-type]
        (lambda device: Limit(0, "1h"), "epsilon"),
        (lambda device: device.set_limit((1, "1h")), "the limit is .*; give Limit"),
        (lambda device: device.enrol(ONE, "a", TOKEN, accept=["x"]), "accept is .*; give a Policy"),
        (lambda device: device.enrol(ONE, "a", None), "the token is no text"),
        (lambda device: device.enrol(ONE, "a", TOKEN, level=5), "the level is 5"),
        (lambda device: device.enrol(ONE, None, TOKEN), "the stream is None"),
        (lambda device: device.enrol(None, "a", TOKEN), "the collector is"),
        (lambda device: device.enrol(["x"], "a", TOKEN), "the collector is"),
        (lambda device: device.enrol(ONE, "a", TOKEN, reserve="much"), "epsilon"),
        (lambda device: device.enrol(ONE, "a", TOKEN, moved_from="nowhere"), "the collector is"),
        (lambda device: Policy("always"), "accept is 'always'"),  # type: ignore[arg-type]
        (lambda device: Policy(pins=frozenset({"x"})), "pins is .*64 hex digits"),
        (lambda device: Policy(longest_window=0.5), "longest_window is 0.5"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_argument_is_told_in_one_line(
    town: Town, wrong: Callable[[Any], object], says: str
) -> None:
    town.build("a")
    device = town.create()
    with pytest.raises(Mistake, match=says) as told:
        wrong(device)
    assert "\n" not in str(told.value)
    assert device.streams == ()


def test_a_policy_reads_the_words_that_enrol_reads() -> None:
    assert Policy("not-looser").accept is Acceptance.NOT_LOOSER  # type: ignore[arg-type]
