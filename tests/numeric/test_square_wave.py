"""The square wave's width, its covers, and what EM makes of them."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from ldpstream.arrays import Floats
from ldpstream.numeric import Numeric
from ldpstream.numeric.square_wave.collector import Collector
from ldpstream.numeric.square_wave.device import Device, best_width
from ldpstream.numeric.square_wave.lab import Lab
from ldpstream.numeric.square_wave.reconstruction import _likelier
from ldpstream.privacy.epsilon import Epsilon
from tests.oracles.test_contract import MOST_SIGMAS, worst_sigma

CELLS = 128


def two_humps(cells: int = CELLS) -> Floats:
    x = np.linspace(0, 1, cells)
    humps = np.exp(-(((x - 0.3) / 0.1) ** 2)) + 0.7 * np.exp(-(((x - 0.75) / 0.05) ** 2))
    shares: Floats = humps / humps.sum()
    return shares


def covers(shares: Floats, width: int) -> Floats:
    return np.convolve(shares, np.ones(width))


def earth_mover(one: Floats, other: Floats) -> float:
    """By how much of the range the average user must move to turn one into the other."""
    return float(np.abs(np.cumsum(one - other)).mean())


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_the_width_is_that_of_the_paper(epsilon: float) -> None:
    power = exp(epsilon)
    half = (epsilon * power - power + 1) / (2 * power * (power - 1 - epsilon))
    assert best_width(1000, Epsilon.of(epsilon)) == 2 * int(1000 * half) + 1


def test_the_width_at_the_ends() -> None:
    assert best_width(1000, Epsilon(1)) == 999  # b = 1/2 - epsilon/6 and less than it
    assert best_width(1000, Epsilon.of(32)) == 1


def test_covers_are_unbiased_with_the_stated_variance() -> None:
    """Of users drawn from a fleet, over repeats."""
    rng = np.random.default_rng(1)
    users, asked, repeats = 3000, 2000, 1500
    device = Device(16, Epsilon.of(1))
    collector, lab = Collector(device), Lab(device)
    fleet = rng.multinomial(users, two_humps(16))
    truth = covers(fleet / users, device.width)
    found = np.stack(
        [
            collector.cover.estimate(
                lab.sample_support(rng.multivariate_hypergeometric(fleet, asked), rng)
            )
            for _ in range(repeats)
        ]
    )
    variance = collector.cover.variance(asked, truth, users)
    assert worst_sigma(found.mean(axis=0), truth, variance / repeats) < MOST_SIGMAS
    squares = ((found - truth) ** 2).mean(axis=0)
    assert worst_sigma(squares, variance, 2 * variance**2 / repeats) < MOST_SIGMAS


@pytest.mark.parametrize("width", [1, 2, 7, 16, 40])
def test_a_round_of_em_is_that_of_the_matrix(width: int) -> None:
    rng = np.random.default_rng(2)
    device = Device(16, Epsilon.of(1), width)
    matrix = np.array(
        [[float(device.probability(y, v)) for v in range(16)] for y in range(device.outputs)]
    )
    shares, reports = rng.dirichlet(np.ones(16)), rng.dirichlet(np.ones(device.outputs))
    expected = shares * (matrix.T @ (reports / (matrix @ shares)))
    found = _likelier(shares, reports, width, float(device.p), float(device.q))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_em_recovers_a_distribution_from_noiseless_covers() -> None:
    truth = two_humps()
    for epsilon in ("1", "3"):
        device = Device(CELLS, Epsilon.of(epsilon))
        found = Collector(device).reconstruct(covers(truth, device.width), smooth=False)
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()
        assert earth_mover(found, truth) < 0.01


@pytest.mark.parametrize(("epsilon", "most"), [("1", 0.03), ("3", 0.01)])
def test_ems_recovers_a_distribution_from_reports(epsilon: str, most: float) -> None:
    """And for noisy covers smoothing helps, bin by bin."""
    rng = np.random.default_rng(3)
    truth = two_humps()
    asked = Epsilon.of(epsilon)
    collector = Numeric.SQUARE_WAVE.collector(CELLS, asked)
    assert isinstance(collector, Collector)
    support = Numeric.SQUARE_WAVE.lab(CELLS, asked).sample_support(
        rng.multinomial(50_000, truth), rng
    )
    cover = collector.cover.estimate(support)
    smooth, rough = (collector.reconstruct(cover, smooth=smooth) for smooth in (True, False))
    assert earth_mover(smooth, truth) < most
    assert np.abs(smooth - truth).sum() < np.abs(rough - truth).sum()


def test_nonsense_covers_still_give_a_distribution() -> None:
    """Filtered covers may be negative, or of any sum."""
    device = Device(CELLS, Epsilon.of(1))
    noise = np.random.default_rng(4).normal(0, 3, device.outputs)
    shares = Collector(device).reconstruct(noise)
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()
