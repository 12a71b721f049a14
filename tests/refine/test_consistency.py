"""Consistency rules do what their names say, and the projection is the nearest histogram."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ldpstream.errors import Mistake
from ldpstream.refine.consistency import Consistency, consistent, nearest_histogram

estimates = arrays(np.float64, st.integers(2, 40), elements=st.floats(-2, 2, width=32))


@given(estimates)
def test_a_projection_is_a_histogram(values: np.ndarray) -> None:
    histogram = nearest_histogram(values)
    assert histogram.min() >= 0
    assert histogram.sum() == pytest.approx(1, abs=1e-9)


@given(estimates, st.integers(0, 2**32))
def test_no_other_histogram_is_nearer(values: np.ndarray, seed: int) -> None:
    nearest = np.sum((nearest_histogram(values) - values) ** 2)
    rng = np.random.default_rng(seed)
    for other in rng.dirichlet(np.full(len(values), 0.3), size=20):
        assert nearest <= np.sum((other - values) ** 2) + 1e-9


@given(estimates)
def test_projecting_twice_changes_nothing(values: np.ndarray) -> None:
    once = nearest_histogram(values)
    np.testing.assert_allclose(nearest_histogram(once), once, atol=1e-12)


def test_none_leaves_the_unbiased_estimate_alone() -> None:
    raw = np.array([1.3, -0.2])
    np.testing.assert_array_equal(consistent(raw, raw**2, Consistency.NONE), raw)


def test_clip_cuts_each_bin() -> None:
    clipped = consistent(np.array([1.3, -0.2, 0.5]), np.ones(3), Consistency.CLIP)
    assert clipped.tolist() == [1.0, 0.0, 0.5]


def test_base_cut_keeps_what_stands_out_from_its_own_noise() -> None:
    kept = consistent(np.array([0.3, 0.3]), np.array([0.01, 0.04]), Consistency.BASE_CUT)
    assert kept.tolist() == [0.3, 0.0]


def test_a_mean_is_not_a_histogram() -> None:
    assert nearest_histogram(np.array([0.4])).tolist() == [0.4]


def test_an_unknown_rule_is_refused_by_name() -> None:
    with pytest.raises(Mistake, match=r"one of none, clip, norm-sub, base-cut"):
        Consistency("norm")
