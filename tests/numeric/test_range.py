"""Readings become levels exactly, and levels become values again."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.errors import Mistake
from ldpstream.numeric import Range

finite = st.floats(-1e12, 1e12)


@given(low=finite, width=st.floats(1e-3, 1e12), steps=st.integers(1, 65535), reading=finite)
def test_a_level_is_the_nearest_one(low: float, width: float, steps: int, reading: float) -> None:
    if low + width <= low:
        return
    grid = Range(low, low + width, steps)
    level = grid.level(reading)
    assert 0 <= level <= steps
    if grid.low <= reading <= grid.high:
        exact = Fraction(grid.low) + (Fraction(grid.high) - Fraction(grid.low)) * level / steps
        assert abs(Fraction(reading) - exact) <= (Fraction(grid.high) - Fraction(grid.low)) / (
            2 * steps
        )


def test_every_level_is_its_own_reading() -> None:
    celsius = Range(-20, 60, 800)
    assert [celsius.level(celsius.value(level)) for level in range(801)] == list(range(801))


class Fickle(float):
    """A number that is another one when it is converted."""

    def __float__(self) -> float:
        return 1e9


def test_a_reading_that_is_another_number_when_it_is_converted_has_a_level() -> None:
    assert Range(-20, 60, 800).level(Fickle(21.34)) == 800


def test_readings_beyond_the_ends_are_taken_for_the_ends() -> None:
    grid = Range(0, 1, 4)
    assert [grid.level(reading) for reading in (-inf, -0.1, 0, 1, 1.1, inf)] == [0, 0, 0, 4, 4, 4]


def test_readings_may_be_of_any_kind_of_number() -> None:
    grid = Range(0, 1, 10)
    assert {grid.level(reading) for reading in (0.3, Fraction(3, 10), Decimal("0.3"))} == {3}


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_readings_may_be_of_numpys_floats(kind: Any) -> None:
    assert Range(0, 1).level(kind(0.5)) == 512
    assert Range(0, 1, 4).level(kind(inf)) == 4


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int64])
def test_readings_of_numpys_integers_do_not_overflow(kind: Any) -> None:
    grid = Range(0.1, 700, 1000)
    for reading in (1, 7, 100, 127):
        assert grid.level(kind(reading)) == grid.level(reading)
    assert grid.level(np.int64(600)) == grid.level(600)


@pytest.mark.parametrize("wrong", [nan, Decimal("NaN"), Decimal("sNaN"), np.float32(nan)])
def test_what_is_not_a_number_is_refused(wrong: Any) -> None:
    with pytest.raises(Mistake, match=r"(?i)a reading is s?nan"):
        Range(0, 1).level(wrong)


@pytest.mark.parametrize(
    ("low", "high", "steps"),
    [(1, 1, 4), (2, 1, 4), (nan, 1, 4), (0, inf, 4), (0, 1, 0), (0, 1, 65536)],
)
def test_impossible_ranges_are_refused(low: float, high: float, steps: int) -> None:
    with pytest.raises(Mistake, match="the range is"):
        Range(low, high, steps)
