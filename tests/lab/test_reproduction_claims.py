"""Claims are read from the data: they hold where the data say so, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ldpstream.lab.figures.charts import Chart
from ldpstream.lab.reproduction.claims import CLAIMS, Claim, judge
from ldpstream.lab.reproduction.judges.predicates import (
    below,
    falls,
    on_synthetic,
    usually_below,
)
from ldpstream.lab.reproduction.run import NAMES
from ldpstream.lab.reproduction.table2 import Table2
from tests.lab.ideal import X, chart, errors, exhibits, panel, table2, turned_over

EACH = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.words[:50])


@EACH
def test_a_claim_holds_where_the_data_say_so(claim: Claim) -> None:
    verdict = claim.judge(exhibits()[claim.rests_on])
    assert verdict.holds, verdict.compared


@EACH
def test_a_claim_fails_when_the_data_are_turned_over(claim: Claim) -> None:
    verdict = claim.judge(turned_over(exhibits()[claim.rests_on]))
    assert not verdict.holds, verdict.compared


@EACH
def test_a_verdict_names_numbers(claim: Claim) -> None:
    assert any(letter.isdigit() for letter in claim.judge(exhibits()[claim.rests_on]).compared)


def test_every_exhibit_bears_a_claim() -> None:
    assert {claim.rests_on for claim in CLAIMS} == set(NAMES)


def test_only_claims_on_what_was_run_are_judged() -> None:
    judged = judge({"table2": table2()})
    assert {one.claim.rests_on for one in judged} == {"table2"}
    assert all(one.row()["verdict"] == "holds" for one in judged)


def test_claims_on_real_streams_are_judged_only_if_there_are_any() -> None:
    exhibit = exhibits()["fig-window"]
    assert isinstance(exhibit, Chart)
    with_real, without = (
        judge({"fig-window": exhibit}),
        judge({"fig-window": on_synthetic(exhibit)}),
    )
    assert len(with_real) == len(without) + 1
    assert not any(one.claim.needs_real for one in without)


def test_one_line_the_wrong_way_is_enough_and_is_named() -> None:
    good = chart("c", panel("Sin", errors(0.1, lambda name: 0.9)))
    assert falls(good, ("lpu", "lpa")).holds
    bad = chart("c", panel("Sin", errors(0.1, lambda name: 1.1 if name == "lpa" else 0.9)))
    verdict = falls(bad, ("lpu", "lpa"))
    assert not verdict.holds
    assert "not LPA on Sin: 0.12 to 0.1757" in verdict.compared


def test_one_setting_lost_is_enough_and_is_named() -> None:
    lines = {"lpa": [0.1, 0.1, 0.1], "lba": [0.2, 0.05, 0.2]}
    verdict = below(chart("c", panel("Sin", lines, (1, 2, 3))), ("lpa",), ("lba",))
    assert not verdict.holds
    assert "2 of 3 settings; not Sin at 2: 0.1 against 0.05" in verdict.compared


def test_usually_allows_for_exceptions() -> None:
    lines = {"lpa": [0.1, 0.1, 0.1], "lpu": [0.2, 0.09, 0.2]}
    assert usually_below(chart("c", panel("Sin", lines, (1, 2, 3))), "lpa", "lpu").holds
    assert not usually_below(chart("c", panel("Sin", lines, (1, 2, 3))), "lpu", "lpa").holds


def test_nothing_to_compare_does_not_hold() -> None:
    empty = Chart("c", "c", "", X, ())
    assert not falls(empty, ("lpa",)).holds
    assert not below(empty, ("lpa",), ("lba",)).holds


@pytest.mark.parametrize(("factor", "holds"), [(1.029, True), (1.031, False), (0.969, False)])
def test_table2_is_near_within_three_per_cent(factor: float, holds: bool) -> None:
    first, *rest = table2().cells
    table = Table2((replace(first, ours=first.ours * factor), *rest))
    (near, _) = judge({"table2": table})
    assert near.verdict.holds is holds
