"""Parts that add up: the constraint holds, and nothing is moved more than it must be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.arrays import Floats
from ldpstream.refine.intervals import normal_interval
from ldpstream.refine.reconciliation import PartFigures, reconciled

ROUNDING = 1e-9
SHARE = st.floats(1e-3, 1)
VALUE = st.floats(-0.2, 1.2)
VARIANCE = st.floats(1e-9, 1)


@st.composite
def cases(draw: st.DrawFn) -> tuple[PartFigures, Floats, Floats, Floats]:
    """Parts as filters leave them: values that may be just outside of [0, 1], ends that are not."""
    parts, bins = draw(st.integers(1, 6)), draw(st.integers(1, 4))

    def table(of: st.SearchStrategy[float], rows: int, columns: int) -> Floats:
        row = st.lists(of, min_size=columns, max_size=columns)
        return np.array(draw(st.lists(row, min_size=rows, max_size=rows)))

    values, variance = table(VALUE, parts, bins), table(VARIANCE, parts, bins)
    low, high = normal_interval(values, variance)
    shares = table(SHARE, 1, parts)[0]
    total = table(st.floats(-0.1, 1.1), 1, bins)[0]
    ends = np.clip(low, 0, 1), np.clip(high, 0, 1)
    spread = table(VARIANCE, 1, bins)[0]
    return PartFigures(values, variance, ends), shares / shares.sum(), total, spread


@given(cases())
def test_the_sum_is_the_total_and_all_is_possible(
    case: tuple[PartFigures, Floats, Floats, Floats],
) -> None:
    parts, shares, total, spread = case
    moved = reconciled(parts, shares, total, spread)
    low, high = moved.interval
    assert np.allclose(shares @ moved.values, np.clip(total, 0, 1), atol=ROUNDING)
    assert ((moved.values >= 0) & (moved.values <= 1)).all()
    assert ((low >= 0) & (high <= 1)).all()
    assert ((low <= moved.values) & (moved.values <= high)).all()
    assert (moved.variance >= np.minimum(parts.variance, 1)).all()


@given(cases(), st.integers(0, 2**32 - 1))
def test_nothing_nearer_adds_up(
    case: tuple[PartFigures, Floats, Floats, Floats], seed: int
) -> None:
    """Any other possible figures with the same sum are further away, weighted by variance."""
    parts, shares, total, spread = case
    moved = reconciled(parts, shares, total, spread)
    weights = 1 / parts.variance.mean(axis=1)[:, None]
    rng = np.random.default_rng(seed)
    for _ in range(20):
        step = rng.normal(size=moved.values.shape) * 0.1
        step -= shares[:, None] * (shares @ step) / (shares @ shares)
        other = moved.values + step
        possible = ((other >= 0) & (other <= 1)).all(axis=0)
        near = np.sum(weights * (moved.values - parts.values) ** 2, axis=0)
        far = np.sum(weights * (other - parts.values) ** 2, axis=0)
        assert (near <= far + 1e-6 * (1 + near))[possible].all()


@given(cases())
def test_what_adds_up_stays(case: tuple[PartFigures, Floats, Floats, Floats]) -> None:
    parts, shares, _, _ = case
    inside = np.clip(parts.values, 0, 1)
    low, high = parts.interval
    ends = np.minimum(low, inside), np.maximum(high, inside)
    sound = PartFigures(inside, parts.variance, ends)
    moved = reconciled(sound, shares, shares @ inside, np.zeros(inside.shape[1]))
    assert np.allclose(moved.values, inside, atol=ROUNDING)


def test_histograms_stay_histograms() -> None:
    """Where nothing is clipped, though the bins' variances differ."""
    rng = np.random.default_rng(1)
    values = rng.dirichlet([50, 60, 70], size=4)
    variance = rng.uniform(1e-6, 1e-4, (4, 3))
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    parts = PartFigures(values, variance, normal_interval(values, variance))
    moved = reconciled(parts, shares, rng.dirichlet([500, 600, 700]), np.full(3, 1e-6))
    assert moved.values.sum(axis=1) == pytest.approx(1)


def test_a_total_that_is_less_sure_than_its_parts_makes_them_less_sure() -> None:
    values, variance = np.array([[0.2], [0.4]]), np.full((2, 1), 1e-4)
    parts = PartFigures(values, variance, normal_interval(values, variance))
    shares = np.array([0.5, 0.5])
    sure = reconciled(parts, shares, np.array([0.3]), np.array([1e-6]))
    unsure = reconciled(parts, shares, np.array([0.3]), np.array([1e-2]))
    assert sure.variance == pytest.approx(variance)
    assert unsure.variance == pytest.approx(1e-2, rel=0.02)
    assert (unsure.interval[1] > sure.interval[1]).all()


@pytest.mark.parametrize("low", [0.0, 1e-3])
def test_an_interval_that_was_cut_is_whole_where_it_moves_to(low: float) -> None:
    """At 0.002 with an error of 0.01 the lower end was cut; at 0.5 it is 0.01 below."""
    values, variance = np.array([[0.002]]), np.array([[0.01**2]])
    parts = PartFigures(values, variance, (np.array([[low]]), np.array([[0.012]])))
    moved = reconciled(parts, np.array([1.0]), np.array([0.5]), np.array([1e-9]))
    reach = 0.01 if low == 0 else 0.002 - low
    assert moved.interval[0][0, 0] == pytest.approx(0.5 - reach)
