"""A density that is fitted to measurements, and the intervals of what is read from it."""

from __future__ import annotations

import numpy as np
import pytest

from ldpstream.arrays import Floats
from ldpstream.refine.density import Density, Instrument

CELLS = 64
PLACES = (np.arange(CELLS) + 0.5) / CELLS


def cosines(count: int = 16) -> Instrument:
    """Return an instrument that measures cosines of the place, each between 0 and 1."""
    means = (1 + np.cos(np.pi * np.arange(1, count + 1)[:, None] * PLACES)) / 2
    return Instrument(means, means[:, None] * means + 0.2 * np.eye(count)[:, :, None])


def shares(density: Floats) -> Floats:
    return np.asarray(density / density.sum())


SHAPES = {
    "normal": shares(np.exp(-(((PLACES - 0.4) / 0.15) ** 2))),
    "two humps": shares(
        np.exp(-(((PLACES - 0.25) / 0.1) ** 2)) + 0.7 * np.exp(-(((PLACES - 0.7) / 0.1) ** 2))
    ),
    "exponential": shares(np.exp(-PLACES / 0.15)),
    "even": np.full(CELLS, 1 / CELLS),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_measurements_show_the_density(shape: str) -> None:
    truth, instrument = SHAPES[shape], cosines()
    density = Density.of(instrument, instrument.means @ truth, np.full(16, 1e-8))
    bins = density.bins(16)
    assert np.abs(bins.values - truth.reshape(16, -1).sum(axis=1)).max() < 0.01
    places = np.interp([0.1, 0.5, 0.9], np.append(0, np.cumsum(truth)), np.linspace(0, 1, 65))
    np.testing.assert_allclose(density.quantiles([0.1, 0.5, 0.9]).values, places, atol=0.01)


@pytest.mark.parametrize("shape", ["normal", "two humps", "exponential"])
def test_intervals_cover_the_median_about_as_often_as_they_say(shape: str) -> None:
    rng, instrument, truth = np.random.default_rng(5), cosines(), SHAPES[shape]
    median = np.interp(0.5, np.append(0, np.cumsum(truth)), np.linspace(0, 1, 65))
    covariance = 0.01**2 * instrument.correlation(truth)
    inside = 0
    for _ in range(60):
        noisy = rng.multivariate_normal(instrument.means @ truth, covariance)
        found = Density.of(instrument, noisy, np.full(16, 0.01**2)).quantiles([0.5])
        inside += bool(found.low[0] <= median <= found.high[0])
    assert inside >= 48  # of 54 to be expected


def test_measurements_of_nothing_leave_everything_open() -> None:
    density = Density.of(cosines(), np.zeros(16), np.ones(16))
    found = density.quantiles([0.1, 0.5, 0.9])
    assert (found.high - found.low > 0.3).all()
    assert density.bins(4).values.sum() == pytest.approx(1)


def test_impossible_measurements_still_give_a_density() -> None:
    noise = np.random.default_rng(4).normal(0, 3, 16)
    density = Density.of(cosines(), noise, np.full(16, 1e-4))
    bins, quantiles = density.bins(8), density.quantiles([0.5, 0.99])
    assert bins.values.sum() == pytest.approx(1)
    assert np.isfinite(np.concatenate([*bins, *quantiles])).all()


def test_two_cells_are_enough() -> None:
    means = np.array([[0.0, 1.0]])
    instrument = Instrument(means, np.array([[[0.1, 1.1]]]))
    bins = Density.of(instrument, np.array([0.8]), np.array([1e-6])).bins(2)
    assert bins.values[1] == pytest.approx(0.8, abs=0.01)
