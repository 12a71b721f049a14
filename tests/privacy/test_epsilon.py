"""Epsilon and its odds, against integer arithmetic that shares nothing with theirs."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.errors import Mistake
from ldpstream.privacy import epsilon
from ldpstream.privacy.epsilon import LARGEST_NANO, NANO, Epsilon, Odds, log_ceiling

epsilons = st.integers(1, LARGEST_NANO).map(Epsilon)


def exp_bounds(exponent: Fraction, bits: int = 256) -> tuple[Fraction, Fraction]:
    """Below and above e^exponent, for 0 <= exponent <= 32: the series in integers over 2^bits.

    Terms are rounded down and up. The rest after 240 terms is less than the last one.
    """
    low = high = low_sum = high_sum = 1 << bits
    numerator, denominator = exponent.as_integer_ratio()
    for step in range(1, 240):
        low = low * numerator // (denominator * step)
        high = -(-high * numerator // (denominator * step))
        low_sum, high_sum = low_sum + low, high_sum + high
    return Fraction(low_sum, 1 << bits), Fraction(high_sum + high, 1 << bits)


@given(st.fractions(Fraction(1, NANO), 32))
def test_reading_rounds_down(value: Fraction) -> None:
    nano = Epsilon.of(value).nano
    assert nano <= value * NANO < nano + 1


@given(st.decimals("0.000000001", 32, places=12))
def test_decimals_mean_what_they_say(value: Decimal) -> None:
    assert Epsilon.of(value) == Epsilon.of(str(value)) == Epsilon.of(Fraction(value))


@given(st.integers(1, 32 * 1000))
def test_floats_mean_their_shortest_decimal(thousandths: int) -> None:
    assert Epsilon.of(thousandths / 1000).nano == thousandths * NANO // 1000


@given(epsilons)
def test_text_and_number_survive_the_round_trip(epsilon: Epsilon) -> None:
    assert Epsilon.of(str(epsilon)) == epsilon
    assert Epsilon.of(epsilon) is epsilon
    assert math.isclose(float(epsilon), epsilon.nano / NANO)


@given(epsilons, st.integers(1, 1000))
def test_shares_never_sum_to_more(epsilon: Epsilon, parts: int) -> None:
    if epsilon.nano < parts:
        with pytest.raises(Mistake):
            epsilon // parts
        return
    share = epsilon // parts
    assert share.nano * parts <= epsilon.nano < (share.nano + 1) * parts


@given(st.lists(st.integers(1, LARGEST_NANO // 20), min_size=1, max_size=20))
def test_sums_are_exact(parts: list[int]) -> None:
    total = Epsilon(parts[0])
    for nano in parts[1:]:
        total = total + Epsilon(nano)
    assert total.nano == sum(parts)


@pytest.mark.parametrize("wrong", [0, -1, "0.0000000009", 33, "32.000000001", "nan", "inf", "one"])
def test_what_is_out_of_range_is_refused(wrong: object) -> None:
    with pytest.raises(Mistake, match="give a number from 1e-9 to 32"):
        Epsilon.of(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("huge", ["1e99999999", "-1e99999999", "0e99999999", "1e-99999999"])
def test_what_is_far_out_of_range_is_refused_at_once(
    huge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a fraction it would fill the memory: none may be made of it."""

    def none_made(*given: object) -> None:
        raise AssertionError("a fraction was made")

    monkeypatch.setattr(epsilon, "Fraction", type("NoFraction", (), {"__new__": none_made}))
    with pytest.raises(Mistake, match="give a number from 1e-9 to 32"):
        Epsilon.of(huge)


@given(epsilons, st.integers(1, 3))
def test_odds_are_the_largest_within_epsilon(epsilon: Epsilon, parts: int) -> None:
    """ratio <= e^(epsilon/parts) < ratio + 2^-64."""
    odds = Odds.within(epsilon, parts)
    below, above = exp_bounds(Fraction(epsilon.nano, NANO * parts))
    assert odds.against == 2**64
    assert odds.ratio <= below
    assert above < odds.ratio + Fraction(1, 2**64)


@given(epsilons)
def test_the_true_epsilon_of_odds_is_hardly_less_than_asked(epsilon: Epsilon) -> None:
    spent = log_ceiling(Odds.within(epsilon).ratio)
    asked = Decimal(epsilon.nano) / NANO
    assert asked * (1 - Decimal("1e-9")) < spent <= asked


@given(st.fractions(Fraction(1), Fraction(10**13), max_denominator=2**64))
def test_log_is_rounded_up_but_not_by_much(ratio: Fraction) -> None:
    log = Fraction(log_ceiling(ratio))
    below, _ = exp_bounds(log)
    assert below >= ratio
    if log > 0:
        _, above = exp_bounds(log * (1 - Fraction(1, 10**25)))
        assert above < ratio
