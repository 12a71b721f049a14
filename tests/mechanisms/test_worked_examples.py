"""Allocations worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.mechanisms.messages import Purpose
from ldpstream.privacy.epsilon import NANO
from tests.mechanisms.driving import Case, jumping_at, live, steady, told


def published(case: Case, jumps: range | list[int], timestamps: int) -> dict[int, int]:
    """Units of the division's resource that were asked for publications, by timestamp."""
    budget = case.name in ("lbu", "lbd", "lba")
    return {
        moment.t: ask.epsilon.nano if budget else ask.users
        for moment in live(case, steady(timestamps), jumping_at(case, jumps))
        for ask in moment.asks
        if ask.purpose is Purpose.PUBLICATION
    }


ABSORPTION = [
    # Moving all the time: t=1 absorbs one imaginary slot (t_N=-1, t_A=2), so t=2 is nullified.
    (range(1, 9), {1: 2, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1}),
    # First move at t=2: slots 0, 1 and 2, so 3 and 4 are nullified.
    ([2, 3], {2: 3, 5: 1}),
    # Never more than w=4 slots, whatever was saved up; then three are nullified.
    ([20, 21], {20: 4, 24: 1}),
    # A move while nullified is published as soon as it may be.
    ([6, 7, 15], {6: 4, 10: 1, 15: 4}),
    # After 1 unit at t=5 nothing is nullified; t=8 absorbs 6, 7 and 8 and nullifies 9 and 10.
    ([1, 3, 5, 8, 9], {1: 2, 3: 1, 5: 2, 8: 2, 10: 1}),
    ([], {}),
]


@pytest.mark.parametrize(("jumps", "units"), ABSORPTION, ids=str)
@pytest.mark.parametrize("name", ["lba", "lpa"])
def test_absorption_of_slots_by_hand(
    name: str, jumps: range | list[int], units: dict[int, int]
) -> None:
    """Window 4, and a slot is an eighth of the whole."""
    case = Case(name, users=8_000, nano=8 * 10**8, window=4)
    slot = 10**8 if name == "lba" else 1_000
    last = max(units, default=10)
    assert published(case, jumps, last) == {t: slot * count for t, count in units.items()}


@pytest.mark.parametrize(("name", "whole"), [("lbd", 10**9), ("lpd", 8_000)])
def test_distribution_halves_and_takes_back_what_left_the_window(name: str, whole: int) -> None:
    case = Case(name, users=8_000, window=3)
    first, second, third = whole // 4, whole // 8, whole // 16
    fourth = (whole // 2 - second - third) // 2
    assert published(case, range(1, 5), 4) == {1: first, 2: second, 3: third, 4: fourth}
    assert published(case, [2, 9], 9) == {2: first, 9: first}


@pytest.mark.parametrize(("name", "powers"), [("lbd", 28), ("lpd", 15)])
def test_halving_without_end_ends_in_approximation(name: str, powers: int) -> None:
    """Correction 9: 100 moves in one window take the last unit; nothing overflows or divides by 0.

    Each move is further than a tally of even one nano-epsilon errs.
    """
    case = Case(name, users=2**17, nano=2**30, window=100)
    moments = live(case, steady(100), lambda t: told(case, [1e18 * t] * 2))
    asks = [moment.asks[1] for moment in moments if len(moment.asks) == 2]
    amounts = [ask.epsilon.nano if name == "lbd" else ask.users for ask in asks]
    assert amounts == [2**power for power in range(powers, -1, -1)]
    for moment in moments:
        assert moment.release is not None
        assert moment.release.fresh == (len(moment.asks) == 2)
        assert np.isfinite(moment.release.values).all()
        assert np.isfinite(moment.release.variance).all()


@given(window=st.integers(1, 60), extra=st.integers(0, 10_000), start=st.integers(1, 10**9))
def test_lpu_shares_of_any_window_sum_to_exactly_n(window: int, extra: int, start: int) -> None:
    case = Case("lpu", users=window + extra, window=window)
    mechanism = case.build()
    shares = [next(mechanism.step(t)).users for t in range(start, start + window)]
    assert sum(shares) == case.users
    assert max(shares) - min(shares) <= 1


@given(window=st.integers(1, 60), nano=st.integers(60, 8 * NANO), start=st.integers(1, 10**9))
def test_lbu_shares_of_any_window_sum_to_exactly_epsilon(
    window: int, nano: int, start: int
) -> None:
    mechanism = Case("lbu", nano=nano, window=window).build()
    shares = [next(mechanism.step(t)).epsilon.nano for t in range(start, start + window)]
    assert sum(shares) == nano
    assert max(shares) - min(shares) <= 1


def test_lsp_asks_everyone_with_everything_once_a_window() -> None:
    case = Case("lsp", users=77, window=5)
    assert published(case, [], 16) == {1: 77, 6: 77, 11: 77, 16: 77}
    for moment in live(case, steady(16), jumping_at(case, [])):
        assert all(ask.epsilon == case.epsilon for ask in moment.asks)
