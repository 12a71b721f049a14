"""Which randomiser, and which width of a band: the known crossovers, and no better one."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import pytest

from ldpstream.numeric import Numeric, choose_mean
from ldpstream.numeric.band_device import Band, BandDevice
from ldpstream.numeric.hybrid.device import Device as Hybrid
from ldpstream.numeric.piecewise.device import best_width
from ldpstream.privacy.epsilon import Epsilon, Odds

LEVELS = 1025


def worst(numeric: Numeric, epsilon: str) -> float:
    return float(numeric.device(LEVELS, Epsilon.of(epsilon)).worst_noise)


@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "0.6", "0.65", "1", "2", "5", "12", "32"])
@pytest.mark.parametrize("levels", [2, 16, LEVELS])
def test_no_other_errs_less_in_the_worst_case(levels: int, epsilon: str) -> None:
    asked = Epsilon.of(epsilon)
    best = choose_mean(levels, asked).device(levels, asked)
    for numeric in Numeric:
        other = numeric.device(levels, asked)
        assert other.worst_noise >= best.worst_noise * (1 - Fraction(1, 10**8))


def test_duchi_is_best_for_small_epsilon_and_the_hybrid_for_large() -> None:
    """Wang et al. put the border at 0.61; the width here is a little better than theirs."""
    for epsilon in ("0.000000001", "0.1", "0.5", "0.61"):
        assert choose_mean(LEVELS, Epsilon.of(epsilon)) is Numeric.DUCHI
    for epsilon in ("0.63", "1", "2", "8"):
        assert choose_mean(LEVELS, Epsilon.of(epsilon)) is Numeric.HYBRID


def test_with_the_width_of_the_paper_piecewise_beats_duchi_from_1_29_on() -> None:
    """The crossover that Wang et al. state for the worst case."""
    for epsilon, better in (("1.27", False), ("1.31", True)):
        width = round((LEVELS - 1) * exp(-float(epsilon) / 2))
        paper = BandDevice(LEVELS, Epsilon.of(epsilon), width)
        assert (float(paper.worst_noise) < worst(Numeric.DUCHI, epsilon)) is better


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_with_the_width_of_the_paper_the_variance_is_that_of_the_paper(epsilon: float) -> None:
    """t^2/(s-1) + (s+3)/(3(s-1)^2) on [-1, 1], s = e^(eps/2), up to the grid."""
    s, steps = exp(epsilon / 2), 65535
    device = BandDevice(steps + 1, Epsilon.of(epsilon), round(steps / s))
    for u in (0.0, 0.3, 0.5):
        printed = (2 * u - 1) ** 2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
        found = 4 * float(device.base + device.bend * Fraction(u) * (1 - Fraction(u)))
        assert found == pytest.approx(printed, rel=1e-3)


@pytest.mark.parametrize("epsilon", ["0.000000001", "0.5", "1", "3", "8"])
@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_no_width_is_better(steps: int, epsilon: str) -> None:
    odds = Odds.within(Epsilon.of(epsilon))
    least = min(Band(steps, width, odds).base for width in range(1, 3 * steps + 1))
    found = Band(steps, best_width(steps, odds), odds).base
    # At epsilon near 0 a band of the whole range, or one output more, are as good as each other.
    assert found <= least * (1 + Fraction(1, 100 if steps < 3 else 10**6))


@pytest.mark.parametrize("epsilon", ["0.7", "2", "6"])
def test_the_hybrid_errs_alike_for_all_values_and_less_than_its_parts(epsilon: str) -> None:
    device = Hybrid(LEVELS, Epsilon.of(epsilon))
    assert device.bend == 0
    assert 0 < device.alpha < 1
    assert device.worst_noise < min(device.bit.worst_noise, device.band.worst_noise)
