"""Intervals beside the releases of the seven: what they rest on, and that they hold."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from ldpstream.domain import Domain
from ldpstream.lab.simulation import Run, simulate
from ldpstream.mechanisms.mechanism import drive
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.queries import HISTOGRAM, DistributionQuery, MeanQuery, Query
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import Settings
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import CountsStream
from ldpstream.streams.synthetic import lns

TIMESTAMPS = 1500
RESTLESS = lns(users=4_000, timestamps=TIMESTAMPS, p0=0.4, sd=0.03)
"""It moves by more than a filter can learn to expect."""


def observed(mechanism: str) -> Run:
    (run,) = simulate(RESTLESS, mechanism, epsilon=1, window=10, intervals=True).runs
    return run


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["lbu", "lpu", "lba", "lpd"])
def test_they_hold_whatever_the_stream_does(mechanism: str) -> None:
    """Uniform: 1,500 independent shares of 0.9, standard error 0.008; 0.04 is five of them.

    Adaptive ones publish when a probe fell far off, so that the others are better than they say:
    up to 0.95 with two labels.
    """
    covered = observed(mechanism).metrics.covered
    assert 0.86 < covered < (0.94 if mechanism in ("lbu", "lpu") else 0.99)


def test_a_fresh_release_is_in_the_middle_of_its_interval() -> None:
    """Of what of it can be: a share below 0 or above 1 cannot."""
    run = observed("lpu")
    whole = (run.low > 0) & (run.high < 1)
    np.testing.assert_allclose(((run.low + run.high) / 2)[whole], run.released[whole])
    assert whole.mean() > 0.5
    assert run.fresh.all()
    assert (run.low.min(), run.high.max()) == (0, 1)


def test_between_the_first_two_samples_nothing_is_claimed() -> None:
    run = observed("lsp")
    assert run.fresh[0]
    assert run.high[0, 0] - run.low[0, 0] < 1
    assert run.low[1:10].max() == 0
    assert run.high[1:10].min() == 1
    assert (run.high - run.low)[11:20].max() < 1


@pytest.mark.parametrize("query", [HISTOGRAM, MeanQuery(0, 5), DistributionQuery(0, 5)])
def test_before_the_first_report_nothing_is_claimed(query: Query) -> None:
    """Of bins and quantiles there is a prior all the same; it is far from sure of anything."""
    settings = Settings(labels=256, users=500, epsilon=Epsilon.of(2), window=5, query=query)
    mechanism = build("lpf", settings)
    release = drive(mechanism.step(1), lambda _: Tally.empty(mechanism.noise.labels))
    shown = query.shown(release, mechanism.noise)
    low, high = shown.interval
    if isinstance(query, DistributionQuery):
        assert max(low[query.shares]) < 0.01
        low, high = low[query.quantiles], high[query.quantiles]
        assert all(low < 0.25 * 5)
        assert all(high > 0.9 * 5)
    else:
        assert low.max() == 0
        assert high.min() == (5 if isinstance(query, MeanQuery) else 1)


def test_a_carried_over_release_grows_less_certain() -> None:
    """Its stated error follows the filter; that of a fresh one is its own."""
    run = observed("lsp")
    later = run.variance[20:]
    fresh = run.fresh[20:]
    assert later[~fresh].mean() > 3 * later[fresh].mean()


def awakening(labels: int = 12, timestamps: int = 600) -> CountsStream:
    """One label has all users; in the second half they leave it for the others, step by step."""
    left = np.clip(np.arange(timestamps) - timestamps // 2, 0, None)
    others = np.repeat(left[:, None], labels - 1, axis=1)
    counts = np.column_stack([6_000 - others.sum(axis=1), others])
    return CountsStream("awakening", Domain.numbered(labels), counts)


def test_they_hold_between_samples_where_labels_begin_to_move() -> None:
    """30 samples of 11 free labels: a standard error of 0.017; 0.08 is almost five of them."""
    assert 0.82 < covered_by_sampling(awakening()) < 0.98


def test_they_hold_between_samples_of_a_fast_stream() -> None:
    """75 samples of one free label: a standard error of 0.035; 0.17 is almost five of them."""
    assert 0.73 < covered_by_sampling(RESTLESS) < 0.99


def covered_by_sampling(stream: CountsStream) -> float:
    (run,) = simulate(stream, "lsp", epsilon=1, window=20, oracle="grr", intervals=True).runs
    return run.metrics.covered


def rising(share: float, _: Ask) -> Tally:
    return Tally(np.array([1 - share, share]), np.full(2, 1e-5), reports=10_000)


@pytest.mark.parametrize("mechanism", ["lpf", "lpu", "lsp"])
def test_a_silent_fleet_leaves_the_last_release_and_ever_less_certainty(mechanism: str) -> None:
    """A slope that was seen before must not carry values, or intervals, out of what can be."""
    settings = Settings(2, 40_000, Epsilon.of(1), window=4, intervals=True)
    observer = build(mechanism, settings)
    for t, share in enumerate(np.linspace(0.2, 0.8, 60), start=1):
        last = drive(observer.step(t), partial(rising, share))
    for t in range(61, 561):
        silent = drive(observer.step(t), lambda _: Tally.empty(2))
    low, high = silent.interval
    np.testing.assert_allclose(silent.values, last.values)
    assert not silent.fresh
    assert (low.min(), high.max()) == (0, 1)
    assert last.variance.max() < silent.variance.max() <= 1


@pytest.mark.parametrize("mechanism", ["lpf", "lpdf", "lpaf"])
def test_released_values_lie_in_their_intervals(mechanism: str) -> None:
    """Consistency moves values, and their bounds with them."""
    (run,) = simulate(awakening(), mechanism, epsilon=1, window=20).runs
    assert (run.low <= run.released).all()
    assert (run.released <= run.high).all()


def test_silence_only_widens() -> None:
    """A trend that was seen before is not carried on as if it were known."""
    settings = Settings(2, 40_000, Epsilon.of(1), window=4)
    observer = build("lpf", settings)
    for t, share in enumerate(np.linspace(0.2, 0.6, 60), start=1):
        last = drive(observer.step(t), partial(rising, share))
    for t in range(61, 83):
        if t == 70:
            observer, saved = build("lpf", settings), observer.save()
            observer.restore(saved)
        silent = drive(observer.step(t), lambda _: Tally.empty(2))
        assert (silent.interval[0] <= last.interval[0]).all()
        assert (silent.interval[1] >= last.interval[1]).all()
        last = silent
    assert (silent.interval[1] - silent.interval[0] > 0.05).all()
