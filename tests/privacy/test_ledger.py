"""The ledger's arithmetic, against brute force over every span."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ldpstream.errors import GuaranteeBroken
from ldpstream.privacy.ledger import Ledger, Promise

PROMISES = st.lists(
    st.builds(Promise, st.integers(1, 12), st.integers(1, 7)), min_size=1, max_size=3
).map(tuple)
STEPS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(1, 12)), max_size=14)
"""Time until the value is read, time that the reading takes, and what is asked for."""

Reading = tuple[int, int, int]
"""When a value began to be read, when the debit was entered, and its nano-epsilon."""


def keeps(promise: Promise, readings: list[Reading]) -> bool:
    """Return whether every half-open span that a reading touches holds at most epsilon."""
    return all(
        sum(
            nano
            for began, ended, nano in readings
            if began < start + promise.span and ended >= start
        )
        <= promise.epsilon_nano
        for start in range(-10, 130)
    )


@given(promises=PROMISES, steps=STEPS)
def test_every_span_keeps_every_promise_wherever_it_begins(
    promises: tuple[Promise, ...], steps: list[tuple[int, int, int]]
) -> None:
    ledger, readings, now = Ledger(promises), list[Reading](), 0
    for wait, reading, nano in steps:
        began = now + wait
        now = began + reading
        if ledger.allows(began, nano):
            ledger = ledger.spend(now, nano, checked=began).forget(now)
            readings.append((began, now, nano))
        else:
            with pytest.raises(GuaranteeBroken):
                ledger.spend(now, nano, checked=began)
    assert all(keeps(promise, readings) for promise in promises)


@example(promises=(Promise(10, 2),), steps=[(0, 0, 10), (1, 0, 10)])
@given(promises=PROMISES, steps=STEPS)
def test_a_ledger_that_forgets_a_moment_too_early_is_caught(
    promises: tuple[Promise, ...], steps: list[tuple[int, int, int]]
) -> None:
    """The same check accuses the rule with `>=` in place of `>`, where the two differ."""
    hasty = Ledger(tuple(Promise(one.epsilon_nano, one.span - 1) for one in promises))
    honest, readings, now = Ledger(promises), list[Reading](), 0
    for wait, reading, nano in steps:
        began = now + wait
        now = began + reading
        if hasty.allows(began, nano):
            hasty = hasty.spend(now, nano, checked=began)
            if not honest.allows(began, nano):
                readings.append((began, now, nano))
                assert not all(keeps(promise, readings) for promise in promises)
                return
            honest = honest.spend(now, nano, checked=began)
            readings.append((began, now, nano))


@given(promises=PROMISES, steps=STEPS, asked=st.integers(1, 13))
def test_free_from_is_the_first_moment_that_is_allowed(
    promises: tuple[Promise, ...], steps: list[tuple[int, int, int]], asked: int
) -> None:
    ledger, now = Ledger(promises), 0
    for wait, _, nano in steps:
        now += wait
        if ledger.allows(now, nano):
            ledger = ledger.spend(now, nano).forget(now)
    free = ledger.free_from(asked)
    if free is None:
        assert asked > min(promise.epsilon_nano for promise in promises)
        return
    assert ledger.allows(max(now, free), asked)
    if free > now:
        assert not ledger.allows(free - 1, asked)


@given(promises=PROMISES, moment=st.integers(0, 20))
def test_an_unknown_past_means_silence_for_the_longest_span(
    promises: tuple[Promise, ...], moment: int
) -> None:
    ledger = Ledger(promises, forgotten=moment)
    end = moment + ledger.longest_span
    assert all(ledger.left(one) == 0 for one in range(moment, end))
    assert ledger.left(end) == min(promise.epsilon_nano for promise in promises)


@pytest.mark.parametrize("nano", [0, -1])
def test_a_spend_is_of_something(nano: int) -> None:
    assert not Ledger((Promise(10, 3),)).allows(1, nano)


def test_what_was_forgotten_binds_a_promise_that_is_longer() -> None:
    """As of a successor with a longer window: debits that are gone may have filled it."""
    ledger = Ledger((Promise(10, 3),)).spend(1, 10).spend(5, 1).forget(5)
    assert ledger.debits == ((5, 1),)
    longer = Ledger((Promise(10, 6),), ledger.debits, ledger.forgotten)
    assert [longer.left(moment) for moment in (6, 7)] == [0, 9]


def test_a_long_ledger_is_no_long_work() -> None:
    """A hundred thousand debits in one span: a sum for each of them would take an hour."""
    size = 100_000
    full = Ledger.of((Promise(size, size),), ((moment, 1) for moment in range(1, size)))
    assert full.left(size) == 1
    assert full.free_from(2) == size + 1
