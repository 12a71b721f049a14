"""The figures of a run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.lab.metrics import MRE_FLOOR, auc, events, measure


def test_errors_are_means_over_timestamps_and_labels() -> None:
    truth = np.array([[0.5, 0.5], [0.2, 0.8]])
    released = np.array([[0.6, 0.4], [0.2, 0.4]])
    metrics = measure(truth, released, users=10, reports=7, publications=1, covered=0.9)
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
    metrics = measure(truth, released, users=1, reports=0, publications=0, covered=0.9)
    assert metrics.mre == pytest.approx((2 + 1 + 1 + 0) / 4)


def test_perfect_releases_have_no_error_and_find_every_event() -> None:
    truth = np.column_stack([np.linspace(0, 1, 9), np.linspace(1, 0, 9)])
    metrics = measure(truth, truth, users=9, reports=9, publications=9, covered=0.9)
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
    figures = measure(constant, released, users=1, reports=1, publications=1, covered=0.9)
    assert figures.auc == 0.5
    moving = np.column_stack([np.linspace(0.1, 0.4, 20), np.full(20, 0.25)])
    happened, scores = events(moving, rng.random((20, 2)))
    assert len(happened) == len(scores) == 20
