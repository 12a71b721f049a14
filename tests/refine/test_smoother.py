"""Revised history: better than any figure of its moment, honest about it, and cut at changes."""

from __future__ import annotations

import numpy as np
import pytest

from ldpstream.arrays import Floats
from ldpstream.mechanisms.messages import Tally
from ldpstream.mechanisms.noise import NoiseModel, VarianceRule
from ldpstream.mechanisms.revision import Record, RecordedTally, revision
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine import chain, disturbances
from ldpstream.refine.bank import Bank, TallyBlock
from ldpstream.refine.cohorts import ReportingFleet
from ldpstream.refine.consistency import Consistency
from ldpstream.refine.hindsight import Member, curve, level, members
from ldpstream.refine.linear import Model, season, trend
from ldpstream.refine.smoother import History, Revised, revise

ERROR = 0.01
TIMES = np.arange(500)
SMOOTH = {
    "sine": 0.2 + 0.05 * np.sin(TIMES / 80),
    "season": 0.2 + 0.05 * np.sin(TIMES / 8),
    "ramp": 0.1 + TIMES / 5000,
}


def drawn(share: Floats, seed: int = 1) -> History:
    noisy = share + np.random.default_rng(seed).normal(0, ERROR, len(share))
    measured = np.column_stack([1 - noisy, noisy])
    return History(measured, np.full_like(measured, ERROR**2), np.zeros(len(share)))


def error(revised: Revised, share: Floats) -> float:
    return float(np.mean((revised.values[:, 1] - share) ** 2))


def coverage(revised: Revised, share: Floats) -> float:
    low, high = revised.low[:, 1], revised.high[:, 1]
    return float(np.mean((low <= share) & (share <= high)))


@pytest.mark.parametrize(
    "model",
    [level(0.1), trend(1e-3), curve(1e-6), season(0.01, (12.0, 2))],
    ids=["level", "trend", "curve", "season"],
)
def test_what_all_other_tallies_say_is_the_posterior(model: Model) -> None:
    """Against the joint normal of states and tallies, written out, with gaps and a shift."""
    rng, length, scale = np.random.default_rng(2), 12, 0.5
    heard = np.ones(length, np.bool_)
    heard[[3, 4, 9]] = False
    shifts, variance = np.zeros(length), rng.uniform(0.5, 2, length)
    shifts[6] = 2.0
    bank = Bank.of([Member(model, 1.0)], labels=2, scale=scale)
    observation = model.observation
    start = np.diag([0.25, *(model.prior * scale)])
    covariance = start
    blocks = np.zeros((length, length))
    states: list[Floats] = []
    for t in range(length):
        noise = model.noise * scale
        noise[0, 0] += shifts[t]  # before the tally of t
        covariance = model.transition @ covariance @ model.transition.T + noise
        states.append(covariance)
    for s in range(length):
        reached = states[s]
        for t in range(s, length):
            blocks[s, t] = blocks[t, s] = observation @ reached @ observation
            reached = model.transition @ reached
    measured = rng.normal(0.5, 1, length) * heard
    (seen,) = bank.over(TallyBlock(measured[:, None], variance[:, None], heard), shifts)
    mean = 0.5
    for t in range(length):
        others = np.flatnonzero(heard & (np.arange(length) != t))
        inverse = np.linalg.inv(blocks[np.ix_(others, others)] + np.diag(variance[others]))
        weights = blocks[t, others] @ inverse
        assert seen.means[t, 0] == pytest.approx(mean + weights @ (measured[others] - mean))
        left = blocks[t, t] - weights @ blocks[t, others]
        assert seen.variances[t, 0] == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_it_is_far_better_than_a_tally_and_covers(name: str) -> None:
    found = [revise(drawn(SMOOTH[name], seed)) for seed in range(6)]
    assert np.mean([error(one, SMOOTH[name]) for one in found]) < ERROR**2 / 25
    assert 0.8 < np.mean([coverage(one, SMOOTH[name]) for one in found]) < 0.99
    assert not any(one.changes for one in found)


def test_a_step_is_found_and_not_smoothed_away() -> None:
    share = np.where(TIMES < 240, 0.2, 0.25)
    revised = revise(drawn(share))
    (change,) = (one for one in revised.changes if one.label == 1)
    assert change.first <= 240 <= change.last
    assert change.low < 0.05 < change.high
    assert error(revised, share) < ERROR**2 / 50
    assert np.abs(np.diff(revised.values[:, 1])).argmax() == 239


@pytest.mark.parametrize("errors", [15, 25, 60, 200])
def test_the_size_of_a_giant_step_is_not_taken_for_movement(errors: float) -> None:
    """Of a step that the prior all but ruled out, members that walk once took nearly all."""
    size = errors * ERROR
    share = np.where(TIMES < 240, 0.2, 0.2 + size)
    (change,) = (one for one in revise(drawn(share)).changes if one.label == 1)
    assert change.low < size < change.high
    assert change.high - change.low < 5 * ERROR


@pytest.mark.slow
def test_a_lag_sees_no_further() -> None:
    share = SMOOTH["sine"]
    seen = drawn(share)
    later = seen.measured.copy()
    later[300:] += 0.3
    changed = History(later, seen.variance, seen.sampled)
    one, other = (revise(history, lag=40) for history in (seen, changed))
    assert np.array_equal(one.values[:260], other.values[:260])
    assert not np.array_equal(one.values[260:300], other.values[260:300])
    assert error(one, share) < ERROR**2 / 10


def test_silence_is_bridged_and_its_interval_is_wider() -> None:
    seen = drawn(SMOOTH["sine"])
    seen.measured[200:240] = np.nan
    revised = revise(seen)
    width = revised.high[:, 1] - revised.low[:, 1]
    assert np.isfinite(revised.values).all()
    assert width[220] > 1.2 * width[100]
    assert revised.low[220, 1] <= SMOOTH["sine"][220] <= revised.high[220, 1]


@pytest.mark.parametrize("alone", [1, 3])
def test_a_tally_with_no_other_near_it_is_searched_for_a_change(alone: int) -> None:
    """It is the first one after a silence, and another silence follows."""
    heard = (TIMES < 200) | (TIMES >= 400)
    heard[300 : 300 + alone] = True
    share = np.where(heard, np.where(TIMES < 250, 0.2, 0.6), np.nan)
    revised = revise(drawn(share))
    assert revised.values[[100, 300, 450], 1] == pytest.approx([0.2, 0.6, 0.6], abs=0.03)
    assert {one.place for one in revised.changes} <= {300}


def test_of_nothing_nothing_is_known() -> None:
    revised = revise(History(np.full((3, 2), np.nan), np.ones((3, 2)), np.zeros(3)))
    assert (revised.low == 0).all()
    assert (revised.high == 1).all()


ROUND = 2 * np.pi * np.arange(20) / 20


@pytest.mark.parametrize(
    "pattern",
    [np.random.default_rng(3).normal(0, 1, 20), np.sin(ROUND) + np.cos(2 * ROUND)],
    ids=["any", "smooth"],
)
def test_users_who_keep_their_values_are_taken_off(pattern: Floats) -> None:
    """Each of 20 cohorts is off by its own sampling error, which comes again.

    A pattern that happens to be smooth is one that members could follow.
    """
    rng, window, users = np.random.default_rng(3), 20, 20_000
    offsets = np.sqrt(0.21 / (users / window)) * pattern
    noisy = 0.3 + offsets[TIMES % window] + rng.normal(0, 0.004, len(TIMES))
    variance = np.full((len(TIMES), 2), 0.21 / 1000 + 0.004**2)
    history = History(np.column_stack([1 - noisy, noisy]), variance, np.full(len(TIMES), 1 / 1000))
    aware = revise(history, ReportingFleet(users, window))
    truth = np.full(len(TIMES), 0.3 + offsets.mean())
    assert error(aware, truth) < 2e-6
    assert coverage(aware, truth) > 0.5
    assert np.mean(aware.high - aware.low) < np.mean(revise(history).high - revise(history).low)


def test_chunks_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """A history in several chunks is that of one, but for what is far away."""
    share = 0.2 + 0.05 * np.sin(np.arange(3000) / 80)
    whole = revise(drawn(share))
    monkeypatch.setattr("ldpstream.refine.smoother.MOST_CELLS", 1000)
    monkeypatch.setattr("ldpstream.refine.smoother.OVERLAP", 400)
    parts = revise(drawn(share))
    assert parts.values.shape == whole.values.shape
    assert np.abs(parts.values - whole.values).max() < ERROR / 4


@pytest.mark.skipif(not hasattr(chain.two_sided, "py_func"), reason="there is no Numba")
def test_kernels_do_what_they_say_without_numba() -> None:
    rng = np.random.default_rng(4)
    said = rng.normal(0, 1, (30, 4))
    prior = np.full(4, 0.25)
    kernel, plain = chain.two_sided, chain.two_sided.py_func  # type: ignore[attr-defined]
    assert np.allclose(kernel(said, prior, 0.01)[0], plain(said, prior, 0.01)[0])
    model = disturbances.Sparse.of(trend(0.1), 0.25, 1.0)
    arguments = (
        *(model.onward, model.backward, model.noise, model.observation, model.start),
        *(np.ones(20), np.ones(20, np.bool_), np.zeros(20)),
    )
    gains = disturbances._gains
    for one, other in zip(gains(*arguments), gains.py_func(*arguments), strict=True):  # type: ignore[attr-defined]
        assert np.allclose(one, other)


def test_members_have_priors_that_can_be_shared_out() -> None:
    found = members(24.0, 168.0)
    assert all(member.prior > 0 for member in found)
    assert sum(member.is_season for member in found) == 11


def test_silence_at_an_end_holds_the_level_and_widens_the_interval() -> None:
    """A ramp was seen for 45 timestamps, after 10 and before 120 without any report."""
    share = np.full(175, np.nan)
    share[10:55] = 0.1 + np.arange(45) / 300
    revised = revise(drawn(share))
    assert revised.values[50, 1] - revised.values[15, 1] > 0.08
    widths = revised.high[:, 1] - revised.low[:, 1]
    for silent, seen in ((slice(55, None), 54), (slice(9, None, -1), 10)):
        assert revised.values[silent, 1] == pytest.approx(revised.values[seen, 1])
        assert np.all(np.diff(widths[silent]) > 0)
    assert widths[-1] > 5 * widths[54]


def test_silence_at_the_end_moves_no_consistent_figure() -> None:
    """Of 40 labels 45 tallies were heard, then nothing: a wide interval is no reason to cut."""
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.full(40, 0.3))
    record = Record(NoiseModel(Oracle.GRR, 40, 10_000, VarianceRule.CORRECTED))
    for _ in range(45):
        tally = Tally(shares + rng.normal(0, 0.02, 40), np.full(40, 4e-4), 400)
        record.add(shares, [RecordedTally(Epsilon.of(1), tally)])
    for _ in range(100):
        record.add(shares, [])
    for consistency in Consistency:
        done = revision(record, ReportingFleet(), consistency).values
        assert done[-1] == pytest.approx(done[44])
