"""The condition of a stream in one word, from facts alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ldpstream.collector.service.condition import ResponseCount, StreamFacts, StreamState, judge
from ldpstream.collector.service.stream_service import widest
from ldpstream.domain import Domain
from ldpstream.numeric.range import BinnedRange
from ldpstream.protocol.notice import Halt

INTERVAL_MS = 10_000


def facts(*received: int, asked: int = 50, **given: object) -> StreamFacts:
    """A stream that has released what is received at t = 1, 2, ..., and is on time."""
    recent = [ResponseCount(t, asked, number) for t, number in enumerate(received, 1)]
    heard = [one.t for one in recent if one.received]
    usual = StreamFacts(
        1_000_000, INTERVAL_MS, 1_005_000, len(received), max(heard, default=0), recent
    )
    return replace(usual, **given)  # type: ignore[arg-type]


def test_a_stream_that_never_had_a_report_waits_and_is_not_live() -> None:
    assert judge(facts()).state is StreamState.WAITING
    assert judge(facts(0, 0, 0, 0)).state is StreamState.WAITING


def test_a_stream_that_gets_what_is_planned_is_live() -> None:
    assert judge(facts(50, 48, 51)).state is StreamState.LIVE


def test_far_fewer_reports_than_planned_are_thin_and_told() -> None:
    found = judge(facts(2, 1, 4, 3, asked=100))
    assert (found.state, found.why) == (
        StreamState.THIN,
        "10 reports came of 400 that were planned",
    )


def test_an_interval_that_says_little_is_thin() -> None:
    assert judge(facts(50, 50, widest=0.6)).state is StreamState.THIN
    assert judge(facts(50, 50, widest=0.4)).state is StreamState.LIVE


def test_a_tail_that_is_hard_to_know_makes_no_distribution_thin() -> None:
    values = BinnedRange.of(0, 2000, 2)
    high = {"[0, 1000)": 1.0, "[1000, 2000)": 1.0, "p10": 50, "p50": 80, "p90": 400, "p99": 1900}
    content = {"low": [0.0] * 7, "high": [*high.values(), 90]}
    assert widest(content, values) == 0.2
    assert widest(content | {"high": [*high.values(), 1100]}, values) == 0.55
    assert widest({"low": [0.0, 0.2], "high": [0.1, 0.9]}, Domain.of(["a", "b"])) == 0.7


def test_a_pause_tells_since_when_if_anything_was_released() -> None:
    paused = judge(facts(50, 50, halt=Halt.PAUSED))
    assert paused.why == "nobody reports until it is resumed, since t=2"
    never = judge(facts(halt=Halt.PAUSED))
    assert never.why == "nobody reports until it is resumed"


def test_a_fleet_that_has_gone_is_silent_as_soon_as_that_is_no_chance() -> None:
    assert judge(facts(50, 50, 0)).state is StreamState.LIVE
    assert judge(facts(50, 50, 0, 0)).state is StreamState.SILENT
    few = facts(1, 2, 1, 0, 0, asked=2)
    assert judge(few).state is StreamState.LIVE  # four were planned: that none came may be chance
    assert judge(replace(few, recent=few.recent[-2:])).state is StreamState.SILENT  # a whole window


@pytest.mark.parametrize(("counting_t", "who"), [(None, "the store"), (4, "an engine")])
def test_who_is_late_is_told_with_by_how_much(counting_t: int | None, who: str) -> None:
    late = facts(50, 50, 50, due_ms=1_000_000 - 70_000, counting_t=counting_t)
    found = judge(late)
    assert (found.state, found.behind_ms) == (StreamState.BEHIND, 70_000)
    assert who in found.why
    assert "8 timestamps (70s)" in found.why
    assert judge(replace(late, due_ms=1_000_000 - 11_000)).state is StreamState.LIVE


def test_long_intervals_are_late_after_a_minute() -> None:
    hourly = facts(50, 50, interval_ms=3_600_000, due_ms=1_000_000 - 63_000)
    assert judge(hourly).state is StreamState.BEHIND


@pytest.mark.parametrize("halt", Halt)
def test_what_is_halted_is_neither_late_nor_silent(halt: Halt) -> None:
    assert judge(facts(0, 0, 0, halt=halt, due_ms=0)).state.value == halt.value


def test_what_cannot_go_on_is_failing_before_all_else() -> None:
    found = judge(facts(halt=Halt.RETIRED, failure="the disk is full", due_ms=0))
    assert (found.state, found.why) == (StreamState.FAILING, "the disk is full")


def test_every_state_is_what_an_operator_wants_or_the_fleets_or_the_collectors_fault() -> None:
    wanted = {StreamState.LIVE, StreamState.PAUSED, StreamState.RETIRED}
    broken = {StreamState.BEHIND, StreamState.FAILING}
    assert {one for one in StreamState if one.is_intended} == wanted
    assert {one for one in StreamState if one.is_broken} == broken
