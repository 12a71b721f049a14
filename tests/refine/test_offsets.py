"""Offsets: averaged where they last; where they drift, each part speaks for itself."""

from __future__ import annotations

import numpy as np
import pytest

from ldpstream.refine.offsets import Drift, Offset, best_weights

RECENT, KEPT = 0.95, 1 - 1 / 160
NOISE = np.full(3, 1e-4)


def watched(swing: float, seed: int = 1, timestamps: int = 400) -> Drift:
    """Return what is known of the drift after contrasts that swing slowly, under noise."""
    rng, drift = np.random.default_rng(seed), Drift.unknown(3)
    for t in range(timestamps):
        moved = swing * np.sin(2 * np.pi * t / 200) * np.array([1, -1, 0])
        drift = drift.learnt(moved + rng.normal(0, 0.01, 3), NOISE, RECENT, KEPT)
    return drift


def test_drift_is_seen_below_the_noise_of_a_contrast() -> None:
    apart = np.full(3, 1.0)
    still, moving = watched(0.0), watched(0.02)
    found = moving.variance(apart, RECENT)
    assert (found[:2] > 1e-4).all()
    assert (still.variance(apart, RECENT) < 2e-5).all()
    assert moving.mean_variance(apart, RECENT) > 5 * still.mean_variance(apart, RECENT)


def test_where_there_are_no_offsets_none_are_suspected_to_move() -> None:
    nothing = np.zeros(3)
    assert Drift.unknown(3).mean_variance(nothing, RECENT) == 0
    assert Drift.unknown(3).mean_variance(np.full(3, 0.01), RECENT) == pytest.approx(0.01)


def test_weights_return_to_the_shares_as_doubt_grows() -> None:
    """That of a part without a tally is taken over by the others alike."""
    shares, noise = np.array([0.3, 0.5, 0.2]), np.array([4.0, 1.0, np.inf])
    last = np.inf
    for doubt in (1e-6, 1e-2, 1.0, 1e3):
        weights = best_weights(shares, noise, np.full(3, doubt))
        assert weights.sum() == pytest.approx(1)
        assert weights[2] == 0
        distance = abs(weights[0] - 0.4)
        assert distance < last
        last = distance
    assert last < 1e-3


def test_weights_have_the_least_error() -> None:
    rng = np.random.default_rng(1)
    shares, noise, doubt = rng.dirichlet(np.ones(4)), rng.random(4), rng.random(4) / 16

    def error(weights: np.ndarray) -> float:
        return float(weights**2 @ (noise / 16) + (weights - shares) ** 2 @ doubt)

    best = best_weights(shares, noise, doubt)
    for _ in range(100):
        other = best + (step := rng.normal(0, 0.1, 4)) - step.mean()
        assert error(best) <= error(other)


def test_an_offset_is_averaged_and_fades() -> None:
    offset, rng = Offset.unknown(2), np.random.default_rng(1)
    assert offset.variance.tolist() == [1, 1]
    for _ in range(400):
        distance = np.array([0.1, -0.1]) + rng.normal(0, 0.1, 2)
        offset = offset.learnt(distance, np.full(2, 0.01), KEPT)
    spread = np.sqrt(offset.variance)
    assert spread == pytest.approx(np.full(2, 0.1 / np.sqrt(320)), rel=0.1)
    assert (np.abs(offset.mean - [0.1, -0.1]) < 5 * spread).all()
    silent = offset.learnt(None, np.zeros(2), KEPT)
    assert silent.mean == pytest.approx(offset.mean)
