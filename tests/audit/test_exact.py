"""The exact part: its two ways agree, and a randomiser that gives away more is caught."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from ldpstream.audit.exact import (
    QUICK,
    TAGGED,
    Method,
    _from_ratios,
    check,
    exp_below,
    outputs,
    worst_ratio,
)
from ldpstream.audit.results import by_oracle
from ldpstream.numeric import Numeric
from ldpstream.numeric.duchi.device import Device as Duchi
from ldpstream.oracles import Oracle
from ldpstream.oracles.device_half import Randomiser
from ldpstream.oracles.grr.device import Device as Grr
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.oracles.unary.device import OueDevice as Oue
from ldpstream.oracles.unary.device import coins
from ldpstream.privacy.epsilon import Epsilon, Odds
from ldpstream.privacy.randomness import Source


@pytest.mark.parametrize("kind", [*Oracle, *Numeric])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize("labels", [2, 3, 5])
def test_ratios_say_what_every_draw_says(kind: Oracle | Numeric, epsilon: str, labels: int) -> None:
    device: Randomiser[Any] = kind.device(labels, Epsilon.of(epsilon))
    found = check(kind.value, device)
    assert found.holds
    assert found.method is not Method.RATIOS
    assert _from_ratios(device) == found.ratio


def test_the_quick_grid_holds_for_every_randomiser() -> None:
    rows = list(QUICK.check())
    assert len(rows) == len(QUICK)
    assert {row.oracle for row in rows} == {*Oracle, *Numeric, TAGGED}
    assert all(row.holds and 0 <= row.margin < 1e-9 * float(row.epsilon) for row in rows)
    assert all(row.exact_epsilon <= float(row.epsilon) for row in rows)
    assert sum(one.checks for one in by_oracle(rows)) == len(rows)


@pytest.mark.parametrize("epsilon", ["0.000000001", "1", "32"])
def test_the_audits_own_series_is_just_below_the_power(epsilon: str) -> None:
    exact = Epsilon.of(epsilon)
    assert Odds.within(exact).ratio <= exp_below(exact)
    assert exp_below(exact) - Odds.within(exact).ratio < Fraction(1, 2**64)


@pytest.mark.parametrize("tag", range(3))
def test_a_tag_gives_nothing_away(tag: int) -> None:
    inner = Oracle.HADAMARD.device(5, Epsilon.of(1))
    found = check(TAGGED, Tagged(inner, 3, tag))
    assert found.method is Method.EVERY_DRAW
    assert found.ratio == check("hadamard", inner).ratio
    assert {report[-1] for one in outputs(Tagged(inner, 3, tag), range(5)) for report in one} == {
        tag
    }


def test_a_tag_that_depends_on_the_value_is_found() -> None:
    class Telling(Tagged[int]):
        """A device whose group is a function of its value."""

        def _perturb(self, value: int, source: Source) -> int:
            self.tag = value % 2
            return super()._perturb(value, source)

    telling = Telling(Oracle.HADAMARD.device(5, Epsilon.of(1)), 3)
    assert worst_ratio(outputs(telling, range(5))) is None


class OneTooMany(Grr):
    """Odds that are larger by one part in 2^64."""

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        self._favour += 1
        self._total += 1
        self.worst_ratio = Fraction(self._favour, 1 << 64)


class Understated(Grr):
    """Draws with more than it says."""

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        self._favour += self._total // 100


class StuckBit(Oue):
    """Never clears the bit of the value."""

    def _perturb(self, value: int, source: Source) -> int:
        return coins(source, self.labels, self._against, self._total) | 1 << value


@pytest.mark.parametrize("broken", [OneTooMany, Understated, StuckBit])
def test_a_randomiser_that_gives_away_more_is_caught(broken: type[Grr | Oue]) -> None:
    found = check("broken", broken(3, Epsilon.of(1)))
    assert not found.holds
    if broken is not Understated:
        assert found.margin < 0
    if broken is StuckBit:
        assert found.exact_epsilon == math.inf


class Bare(Oue):
    """Sets the bit of the value always: a report without it tells that it is not the value."""

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        self.p = Fraction(1)


class Truthful(Grr):
    """Reports the value itself."""

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        self.p, self.q = Fraction(1), Fraction(0)


class Rounded(Duchi):
    """Rounds its number at random, and adds no noise: at the ends it is certain."""

    def __init__(self, levels: int, epsilon: Epsilon) -> None:
        super().__init__(levels, epsilon)
        self.p, self.q = Fraction(1), Fraction(0)


@pytest.mark.parametrize("broken", [Bare, Truthful, Rounded])
def test_an_infinite_ratio_is_found_without_following_draws(
    broken: type[Bare | Truthful | Rounded],
) -> None:
    found = check("broken", broken(65536, Epsilon.of(1)))
    assert found.method is Method.RATIOS
    assert not found.holds
    assert (found.ratio, found.exact_epsilon, found.margin) == (None, math.inf, -math.inf)
