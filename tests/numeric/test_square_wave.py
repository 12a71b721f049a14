"""The square wave's width, and what is read of its reports."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from ldpstream.arrays import Floats
from ldpstream.numeric.square_wave.device import Device, best_width
from ldpstream.numeric.square_wave.lab import Lab
from ldpstream.numeric.square_wave.readings import FREQUENCIES, Readings
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon
from tests.oracles.test_contract import MOST_SIGMAS, worst_sigma

CELLS = 128


def two_humps(cells: int = CELLS) -> Floats:
    x = np.linspace(0, 1, cells)
    humps = np.exp(-(((x - 0.3) / 0.1) ** 2)) + 0.7 * np.exp(-(((x - 0.75) / 0.05) ** 2))
    shares: Floats = humps / humps.sum()
    return shares


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_the_width_is_that_of_the_paper(epsilon: float) -> None:
    power = exp(epsilon)
    half = (epsilon * power - power + 1) / (2 * power * (power - 1 - epsilon))
    assert best_width(1000, Epsilon.of(epsilon)) == 2 * int(1000 * half) + 1


def test_the_width_at_the_ends() -> None:
    assert best_width(1000, Epsilon(1)) == 999  # b = 1/2 - epsilon/6 and less than it
    assert best_width(1000, Epsilon.of(32)) == 1


def test_readings_are_unbiased_with_the_stated_variance() -> None:
    """Of users drawn from a fleet far larger than the sample, over repeats."""
    rng = np.random.default_rng(1)
    asked, repeats = 2000, 1500
    device = Device(16, Epsilon.of(1))
    readings, lab = Readings(device), Lab(device)
    shares = two_humps(16)
    truth = np.append(readings.means @ shares, shares @ np.arange(16) / 15)
    found, stated = zip(
        *(
            readings.estimate(lab.sample_support(rng.multinomial(asked, shares), rng))
            for _ in range(repeats)
        ),
        strict=True,
    )
    estimates, variance = np.stack(found), np.mean(stated, axis=0)
    assert worst_sigma(estimates.mean(axis=0), truth, variance / repeats) < MOST_SIGMAS
    squares = ((estimates - truth) ** 2).mean(axis=0)
    assert worst_sigma(squares, variance, 2 * variance**2 / repeats) < MOST_SIGMAS


@pytest.mark.parametrize("width", [None, 1, 5, 40])
def test_readings_are_the_means_over_all_outputs(width: int | None) -> None:
    device = Device(16, Epsilon.of(1), width)
    readings = Readings(device)
    chances = np.array(
        [[float(device.probability(y, v)) for v in range(16)] for y in range(device.outputs)]
    )
    cosines = readings.functions[:-1]
    np.testing.assert_allclose(cosines @ chances, readings.means, atol=1e-9)
    products = np.einsum("jy,ky,yv->jkv", cosines, cosines, chances)
    np.testing.assert_allclose(readings.products, products, atol=1e-6)
    assert readings.means.min() == pytest.approx(0)
    assert readings.means.max() == pytest.approx(1)


def test_a_cosine_that_no_band_shows_is_not_read() -> None:
    """16 levels and bands of 5: 20 outputs, so a band has a whole period of the eighth cosine."""
    device = Device(16, Epsilon.of(1), 5)
    assert Readings(device).count <= FREQUENCIES
    assert np.isfinite(Readings(device).functions).all()
    assert np.abs(Readings(device).functions).max() < 1e4


def test_one_report_is_not_certain() -> None:
    readings = Readings(Device(16, Epsilon.of(1)))
    counts = np.bincount([3], minlength=readings.device.outputs)
    _, variance = readings.estimate(Support(counts, 1))
    assert (variance > 0).all()
