"""Populations that persist: exact histograms, few moves, cohorts that keep their errors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldpstream.arrays import Counts
from ldpstream.domain import Domain
from ldpstream.errors import Mistake
from ldpstream.lab.simulation import simulate
from ldpstream.mechanisms.registry import names
from ldpstream.streams.persistent import PersistentUsers, persistent
from ldpstream.streams.stream import CountsStream, ShuffledUsers
from ldpstream.streams.synthetic import STREAMS, constant, named, sin, zipf


def stream_of(table: Counts) -> CountsStream:
    return CountsStream("s", Domain.numbered(table.shape[1]), table)


def values_over_time(stream: PersistentUsers, seed: int = 0) -> list[list[int]]:
    """Return the label of each user at each timestamp."""
    rng = np.random.default_rng(seed)
    return [
        [
            int(snapshot.counts_of(np.array([user], np.uint32), rng).argmax())
            for user in range(stream.users)
        ]
        for snapshot in stream.snapshots(rng)
    ]


tables = st.integers(2, 6).flatmap(
    lambda labels: st.lists(
        st.lists(st.integers(0, labels - 1), min_size=30, max_size=30).map(
            lambda held: np.bincount(held, minlength=labels)
        ),
        min_size=1,
        max_size=8,
    ).map(np.array)
)


@given(table=tables, persistence=st.floats(0, 1), seed=st.integers(0, 99))
def test_every_histogram_is_met_exactly(table: Counts, persistence: float, seed: int) -> None:
    stream = PersistentUsers(stream_of(table), persistence)
    held = values_over_time(stream, seed)
    assert [np.bincount(now, minlength=table.shape[1]).tolist() for now in held] == table.tolist()


@given(table=tables, seed=st.integers(0, 99))
def test_as_few_users_move_as_the_counts_allow(table: Counts, seed: int) -> None:
    held = np.array(values_over_time(PersistentUsers(stream_of(table), 1.0), seed))
    moves = (np.diff(held, axis=0) != 0).sum(axis=1)
    assert moves.tolist() == (np.abs(np.diff(table, axis=0)).sum(axis=1) // 2).tolist()


@given(ones=st.lists(st.integers(0, 30), min_size=2, max_size=10), seed=st.integers(0, 99))
def test_with_two_labels_each_user_keeps_a_place_in_one_ranking(ones: list[int], seed: int) -> None:
    """Who holds label 1 when fewer do, holds it whenever more do."""
    stream = PersistentUsers(stream_of(np.array([[30 - n, n] for n in ones])), 1.0)
    held = values_over_time(stream, seed)
    holders = sorted(({u for u, label in enumerate(now) if label} for now in held), key=len)
    assert all(fewer <= more for fewer, more in pairwise(holders))


def test_a_burst_gives_each_label_its_own_users_back() -> None:
    table = np.array([[10, 10, 10, 0], [5, 7, 8, 10], [10, 10, 10, 0]])
    first, burst, last = values_over_time(PersistentUsers(stream_of(table), 1.0))
    assert first == last != burst


@pytest.mark.parametrize("name", STREAMS)
def test_every_built_in_stream_can_persist(name: str) -> None:
    source = named(name, users=1013, timestamps=30, seed=3)
    rng = np.random.default_rng(0)
    half = np.arange(500, dtype=np.uint32)
    rest = np.arange(500, 1013, dtype=np.uint32)
    for row, snapshot in zip(source.table, persistent(source, 0.4).snapshots(rng), strict=True):
        assert (snapshot.counts == row).all()
        parts = snapshot.counts_of(half, rng) + snapshot.counts_of(rest, rng)
        assert (parts == row).all()


def errors_of_a_group(persistence: float, groups: int = 400) -> NDArray[np.float64]:
    """Return the sampling errors of groups of 100 of 1,000 users, at two timestamps each."""
    source = constant(users=1_000, timestamps=2, p=0.3)
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(groups):
        group = rng.choice(1_000, 100, replace=False).astype(np.uint32)
        snapshots = PersistentUsers(source, persistence).snapshots(rng)
        drawn.append([int(snapshot.counts_of(group, rng)[1]) - 30 for snapshot in snapshots])
    return np.array(drawn, np.float64)


@pytest.mark.parametrize("persistence", [0.0, 0.25, 0.75, 1.0])
def test_sampling_errors_of_a_group_are_correlated_by_the_persistence(persistence: float) -> None:
    """Fisher's z of 400 pairs is normal with sd 1/sqrt(397): at 5 sd, a false alarm in 1e-6."""
    one, other = errors_of_a_group(persistence).T
    if persistence == 1:
        assert (one == other).all()
        return
    found = np.arctanh(np.corrcoef(one, other)[0, 1])
    assert found == pytest.approx(np.arctanh(persistence), abs=5 / 397**0.5)


def test_a_group_errs_as_much_as_one_of_users_drawn_afresh() -> None:
    """The variance of a hypergeometric draw, from 400 groups: within 5 standard errors."""
    for persistence in (0.5, 1.0):
        first = errors_of_a_group(persistence)[:, 0]
        assert first.var() == pytest.approx(100 * 0.21 * 900 / 999, rel=5 * (2 / 400) ** 0.5)
        assert abs(first.mean()) < 5 * (18.9 / 400) ** 0.5


@pytest.mark.parametrize("name", names())
def test_every_mechanism_runs_on_users_who_persist(name: str) -> None:
    source = zipf(users=2_000, timestamps=30, labels=8, drift=0.1)
    kept, afresh = (
        simulate(source, name, epsilon=1, window=5, persistence=share) for share in (0.7, 0.0)
    )
    assert (kept.runs[0].truth == afresh.runs[0].truth).all()
    assert np.isfinite(kept.runs[0].released).all()


@pytest.mark.parametrize("selection", ["roster", "slots"])
def test_cohorts_repeat_their_sampling_error_every_window(selection: str) -> None:
    """LPU at a huge epsilon: the same users report every w timestamps, with the same values."""
    source = constant(users=2_000, timestamps=12, p=0.3)
    (run,) = simulate(
        source,
        "lpu",
        epsilon=32,
        window=4,
        oracle="grr",
        persistence=1.0,
        selection=selection,
    ).runs
    share = run.released[:, 1].reshape(3, 4)
    assert np.ptp(share, axis=0).max() < 1e-9
    assert np.ptp(share, axis=1).min() > 0


def test_without_persistence_the_figures_are_the_same_as_ever() -> None:
    """Pinned: MSE of the version before populations could persist."""
    source = sin(users=2_000, timestamps=60, b=0.1)
    result = simulate(source, "lpa", epsilon=1, window=5, seed=3, persistence=0.0)
    assert result.mean("mse") == pytest.approx(0.0019496325449903588, rel=1e-9)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(Mistake, match=r"persistence is .*; give a share of the users, 0 to 1"):
        simulate(sin(users=100, timestamps=5), "lpu", epsilon=1, window=5, persistence=share)


def test_users_with_values_of_their_own_are_left_alone() -> None:
    own = ShuffledUsers(sin(users=100, timestamps=5))
    assert persistent(own, 0) is own
    with pytest.raises(Mistake, match=r"persistence is 0\.5; give 0: the users of sin have values"):
        simulate(own, "lpu", epsilon=1, window=5, persistence=0.5)
