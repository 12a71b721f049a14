"""The ledger's arithmetic, against brute force over every window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.errors import GuaranteeBroken
from ldpstream.privacy.ledger import Ledger

WINDOWS = st.integers(1, 6)
SPENDS = st.dictionaries(st.integers(-8, 8), st.integers(1, 12), max_size=8)
TIMES = st.integers(-8, 8)


def worst_window(spends: dict[int, int], window: int) -> int:
    """The largest sum over any `window` consecutive timestamps, by trying all."""
    return max(
        sum(spends.get(t, 0) for t in range(start, start + window)) for start in range(-30, 30)
    )


@given(window=WINDOWS, spends=SPENDS, t=TIMES)
def test_most_is_the_fullest_window_that_contains_t(
    window: int, spends: dict[int, int], t: int
) -> None:
    expected = max(
        sum(spends.get(one, 0) for one in range(start, start + window))
        for start in range(t - window + 1, t + 1)
    )
    assert Ledger(10, window, spends).most(t) == expected


@given(window=WINDOWS, tries=st.lists(st.tuples(TIMES, st.integers(1, 12)), max_size=12))
def test_a_spend_is_allowed_exactly_when_every_window_keeps_to_the_limit(
    window: int, tries: list[tuple[int, int]]
) -> None:
    ledger, spends = Ledger(10, window), dict[int, int]()
    for t, nano in tries:
        after = {**spends, t: spends.get(t, 0) + nano}
        fits = worst_window(after, window) <= 10
        assert ledger.allows(t, nano) is fits
        if fits:
            ledger, spends = ledger.spend(t, nano), after
        else:
            with pytest.raises(GuaranteeBroken):
                ledger.spend(t, nano)
    assert ledger.spends == spends


@given(window=WINDOWS, spends=SPENDS, t=TIMES)
def test_an_unknown_past_means_silence_for_w_timestamps(
    window: int, spends: dict[int, int], t: int
) -> None:
    past = {one: nano for one, nano in spends.items() if one <= t}
    ledger = Ledger(10, window, past).exhausted(t)
    assert all(ledger.left(one) == 0 for one in range(t, t + window))
    assert ledger.left(t + window) == 10


@pytest.mark.parametrize("nano", [0, -1])
def test_a_spend_is_of_something(nano: int) -> None:
    assert not Ledger(10, 3).allows(1, nano)


@given(window=WINDOWS, spends=SPENDS)
def test_what_left_the_window_may_be_left_out(window: int, spends: dict[int, int]) -> None:
    """A device forgets what is w or more before the last entry: it changes no later answer."""
    last = max(spends, default=0)
    whole = Ledger(10, window, spends)
    kept = whole.since(last - window + 1)
    assert kept.spends == {t: nano for t, nano in spends.items() if t > last - window}
    later = range(last, last + 2 * window)
    assert [whole.left(t) for t in later] == [kept.left(t) for t in later]


def test_a_long_window_is_no_long_work() -> None:
    """A hundred thousand spends in one: a sum for each of them would take an hour."""
    window = 100_000
    full = Ledger(window, window, dict.fromkeys(range(1, window), 1))
    assert full.most(window) == full.most(window // 2) == window - 1
    assert full.left(window) == 1
