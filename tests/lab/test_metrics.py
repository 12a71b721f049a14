"""The figures of a run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from ldpstream.arrays import Floats
from ldpstream.lab.metrics import MRE_FLOOR, Metrics, auc, events, measure

NOWHERE = (np.array(np.nan), np.array(np.nan))
"""Ends of intervals that are not stated."""


def test_errors_are_means_over_timestamps_and_labels() -> None:
    truth = np.array([[0.5, 0.5], [0.2, 0.8]])
    released = np.array([[0.6, 0.4], [0.2, 0.4]])
    metrics = measure(truth, released, NOWHERE, users=10, reports=7, publications=1)
    assert metrics.mae == pytest.approx((0.1 + 0.1 + 0 + 0.4) / 4)
    assert metrics.mse == pytest.approx((0.01 + 0.01 + 0 + 0.16) / 4)
    assert metrics.mre == pytest.approx((0.2 + 0.2 + 0 + 0.5) / 4)
    assert metrics.cfpu == 7 / 20
    assert metrics.publications == 1


def test_relative_error_has_a_floor_where_the_truth_is_rare_or_zero() -> None:
    """docs/paper-corrections.md, 12: |r - c| / max(c, 0.001)."""
    assert MRE_FLOOR == 0.001
    truth = np.array([[0.0, 0.0005, 0.001, 0.9985]])
    released = truth + np.array([[0.002, 0.001, -0.001, 0.0]])
    metrics = measure(truth, released, NOWHERE, users=1, reports=0, publications=0)
    assert metrics.mre == pytest.approx((2 + 1 + 1 + 0) / 4)


def test_perfect_releases_have_no_error_and_find_every_event() -> None:
    truth = np.column_stack([np.linspace(0, 1, 9), np.linspace(1, 0, 9)])
    metrics = measure(truth, truth, NOWHERE, users=9, reports=9, publications=9)
    assert (metrics.mre, metrics.mae, metrics.mse, metrics.auc) == (0, 0, 0, 1)


@given(
    scores=st.lists(
        st.tuples(st.booleans(), st.integers(-3, 3) | st.floats(-1e6, 1e6)), max_size=25
    )
)
def test_auc_is_the_share_of_pairs_in_the_right_order(scores: list[tuple[bool, float]]) -> None:
    """Ties count half."""
    events = [score for happened, score in scores if happened]
    others = [score for happened, score in scores if not happened]
    pairs = [(event > other) + 0.5 * (event == other) for event in events for other in others]
    expected = sum(pairs) / len(pairs) if pairs else 0.5
    happened = np.array([flag for flag, _ in scores], np.bool_)
    assert auc(happened, np.array([score for _, score in scores])) == pytest.approx(expected)


def test_each_label_has_a_threshold_of_its_own() -> None:
    """docs/paper-corrections.md, 13: 0.75 (max - min) + min; an event lies strictly above it."""
    truth = np.array([[0.0, 0.6], [0.2, 0.56], [0.3, 0.2], [0.4, 0.2]])
    released = np.full((4, 2), 0.5)
    happened, scores = events(truth, released)
    assert happened.reshape(4, 2).tolist() == [
        [False, True],
        [False, True],
        [False, False],
        [True, False],
    ]
    assert scores.reshape(4, 2)[0] == pytest.approx([0.5 - 0.3, 0.5 - 0.5])


def test_labels_that_never_move_have_no_events() -> None:
    rng = np.random.default_rng(0)
    constant = np.full((20, 3), [0.2, 0.3, 0.5])
    released = rng.random((20, 3))
    figures = measure(constant, released, NOWHERE, users=1, reports=1, publications=1)
    assert figures.auc == 0.5
    moving = np.column_stack([np.linspace(0.1, 0.4, 20), np.full(20, 0.25)])
    happened, scores = events(moving, rng.random((20, 2)))
    assert len(happened) == len(scores) == 20


def covering(truth: Floats, inside: ArrayLike) -> Metrics:
    """Return the metrics of intervals that hold the truth where `inside` says so."""
    ends = np.where(np.asarray(inside), truth, truth + 1)
    return measure(truth, truth, (ends, ends), users=1, reports=1, publications=1)


def test_coverage_by_size_of_label() -> None:
    """Rare: a mean share below .01; big: above .1; the borders belong to the middle."""
    sizes = np.array([0.005, 0.01, 0.05, 0.1, 0.835])
    truth = np.array([sizes, sizes, sizes, sizes])
    inside = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1], [0, 1, 1, 1, 0]])
    metrics = covering(truth, inside)
    assert metrics.covered == metrics.coverage == 15 / 20
    assert metrics.coverage_rare == 1 / 4
    assert metrics.coverage_middle == 11 / 12
    assert metrics.coverage_big == 3 / 4
    assert np.isnan(metrics.coverage_after_jump)


def test_the_size_of_a_label_is_its_mean_over_time() -> None:
    truth = np.array([[0.0, 1.0], [0.03, 0.97]])
    assert np.isnan(covering(truth, 1).coverage_rare)
    assert covering(truth, [[1, 0], [1, 0]]).coverage_middle == 1


def test_coverage_after_a_jump_counts_the_label_that_jumped_and_two_timestamps() -> None:
    truth = np.full((8, 3), [0.3, 0.3, 0.4])
    truth[4:] += [0.05, -0.05, 0.0]
    inside = np.ones(truth.shape)
    inside[5, 0] = inside[7] = inside[6, 2] = 0
    assert covering(truth, inside).coverage_after_jump == 3 / 4


@pytest.mark.parametrize("size", [0.019, 0.1])
def test_a_jump_is_large_in_itself_and_beside_the_usual_steps(size: float) -> None:
    """A step of .019 is none, and neither is one of .1 where the usual step is .02."""
    usual = 0.0 if size < 0.02 else 0.02
    shares = 0.3 + usual * (np.arange(20) % 2) + size * (np.arange(20) >= 10)
    metrics = covering(np.column_stack([shares, 1 - shares]), 1)
    assert np.isnan(metrics.coverage_after_jump)


def test_what_ends_with_a_jump_has_nothing_after_it() -> None:
    shares = np.array([0.1, 0.1, 0.1, 0.4])
    assert np.isnan(covering(np.column_stack([shares, 1 - shares]), 1).coverage_after_jump)
    assert np.isnan(covering(np.array([[0.5, 0.5]]), 1).coverage_after_jump)


def test_a_number_has_jumps_but_no_size() -> None:
    truth = np.array([[20.0], [20.0], [20.0], [30.0], [30.0]])
    metrics = measure(truth, truth, (truth, truth), users=1, reports=1, publications=1, unit=100)
    assert (metrics.coverage, metrics.coverage_after_jump) == (1, 1)
    assert np.isnan([metrics.coverage_rare, metrics.coverage_middle, metrics.coverage_big]).all()


def test_intervals_that_are_not_stated_cover_nothing_that_could_be_told() -> None:
    truth = np.array([[0.3, 0.7], [0.3, 0.7]])
    metrics = measure(truth, truth, NOWHERE, users=1, reports=1, publications=1)
    assert np.isnan([metrics.coverage, metrics.coverage_big]).all()
