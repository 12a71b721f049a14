"""Means and distributions under the same mechanisms as histograms."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ldpstream.errors import Mistake
from ldpstream.lab.simulation import Run, Simulation, settings_of, simulate
from ldpstream.lab.tasks import perform, task
from ldpstream.mechanisms.mean_noise import MeanNoise
from ldpstream.mechanisms.messages import Tally
from ldpstream.mechanisms.noise import NoiseContext, VarianceRule
from ldpstream.mechanisms.queries import HISTOGRAM, DistributionQuery, MeanQuery
from ldpstream.mechanisms.registry import PAPER, build, names
from ldpstream.mechanisms.settings import RunOptions, Settings
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import ShuffledUsers
from ldpstream.streams.synthetic import latency, meter

STREAM = meter(users=40_000, timestamps=120, steps=256)
VOLTS = MeanQuery(0, 5)


@cache
def simulated(
    mechanism: str, query: MeanQuery | DistributionQuery = VOLTS, oracle: str = "auto"
) -> Simulation:
    return simulate(STREAM, mechanism, epsilon=1, window=10, query=query, oracle=oracle)


def only_run(
    mechanism: str, query: MeanQuery | DistributionQuery = VOLTS, oracle: str = "auto"
) -> Run:
    (run,) = simulated(mechanism, query, oracle).runs
    return run


@pytest.mark.parametrize("mechanism", names())
def test_every_mechanism_publishes_a_mean(mechanism: str) -> None:
    """Under the accountant, which stops a run that would break the guarantee."""
    run = only_run(mechanism)
    assert run.truth.shape == run.released.shape == (120, 1)
    levels = STREAM.table @ np.arange(257) / 256 / 40_000
    np.testing.assert_allclose(run.truth[:, 0], 5 * levels)
    # Far better than any constant could be, or at least than the middle of the range.
    assert run.metrics.mse < np.mean((run.truth - 2.5) ** 2) / 3
    assert run.metrics.publications >= 2


@pytest.mark.parametrize("mechanism", names())
@pytest.mark.parametrize("query", [VOLTS, DistributionQuery(0, 5, 8)], ids=["mean", "distribution"])
@pytest.mark.parametrize("variance", list(VarianceRule))
def test_the_accountant_is_content(
    mechanism: str, query: MeanQuery | DistributionQuery, variance: VarianceRule
) -> None:
    stream = meter(users=400, timestamps=25, steps=16)
    simulate(stream, mechanism, epsilon=2, window=3, query=query, variance=variance, pool=True)


def test_dividing_the_population_beats_dividing_the_budget() -> None:
    """As for histograms (paper, section 6)."""
    for population, budget in (("lpu", "lbu"), ("lpd", "lbd"), ("lpa", "lba")):
        assert simulated(population).mean("mse") < simulated(budget).mean("mse") / 3
    assert simulated("lpf").mean("mse") < simulated("lpu").mean("mse")


@pytest.mark.parametrize("mechanism", PAPER)
def test_messages_sent_do_not_depend_on_what_is_asked(mechanism: str) -> None:
    cost = simulated(mechanism).mean("cfpu")
    assert cost >= 1 if mechanism in ("lbu", "lbd", "lba") else cost <= 1 / 10


def test_stated_errors_are_those_made() -> None:
    """z-scores of fresh releases have variance 1; 120 of them err by 13 %."""
    for mechanism in ("lpu", "lbu"):
        for oracle in ("auto", "piecewise", "duchi"):
            run = only_run(mechanism, VOLTS, oracle)
            z = (run.released - run.truth) / np.sqrt(run.variance)
            assert 0.5 < float(np.mean(z**2)) < 1.7
            assert 0.8 < run.metrics.covered < 0.99


def test_the_oracle_is_chosen_for_the_epsilon_of_a_report() -> None:
    assert simulated("lbu").oracle == Numeric.DUCHI
    assert simulated("lpu").oracle == Numeric.HYBRID
    assert simulated("lpu", VOLTS, "piecewise").oracle == Numeric.PIECEWISE


def test_means_do_not_depend_on_the_unit() -> None:
    """The same seed on another range: the same releases, on that range."""
    for mechanism in ("lpa", "lpf"):
        volts, celsius = only_run(mechanism), only_run(mechanism, MeanQuery(-20, 60))
        np.testing.assert_allclose(celsius.released, 16 * volts.released - 20, rtol=1e-12)
        np.testing.assert_allclose(celsius.variance, 256 * volts.variance, rtol=1e-12)
        np.testing.assert_allclose(celsius.low, 16 * volts.low - 20, rtol=1e-9)
        assert celsius.metrics.mae == pytest.approx(16 * volts.metrics.mae)
        assert celsius.metrics.auc == volts.metrics.auc


def test_users_with_values_of_their_own_are_as_good() -> None:
    stream = ShuffledUsers(meter(users=5000, timestamps=30, steps=64))
    result = simulate(stream, "lpu", epsilon=2, window=5, query=VOLTS)
    assert result.mean("mae") < 0.3


def test_experiments_take_queries() -> None:
    asked = task(STREAM, "lpu", settings_of(STREAM, 1, 10, RunOptions(query=VOLTS)))
    other = task(STREAM, "lpu", settings_of(STREAM, 1, 10, RunOptions()))
    assert asked.key != other.key
    assert perform(asked, STREAM)["oracle"] == "hybrid"


# --- The noise of a mean --------------------------------------------------------------------------

EPSILON = Epsilon.of(2)


def evidence(noise: MeanNoise, counts: list[int]) -> NoiseContext:
    release = build("lpu", settings()).state.release
    probe = noise.tally(EPSILON, Support(np.array(counts), sum(counts)))
    return NoiseContext(release, probe, EPSILON)


def settings(**changes: object) -> Settings:
    given = Settings(labels=17, users=1000, epsilon=EPSILON, window=5, query=VOLTS)
    return replace(given, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("oracle", [Numeric.DUCHI, Numeric.PIECEWISE, Numeric.HYBRID])
def test_the_corrected_rule_says_of_the_probe_what_the_probe_says_of_itself(
    oracle: Numeric,
) -> None:
    noise = MeanNoise(oracle, 17, 1000, VarianceRule.CORRECTED)
    rng = np.random.default_rng(1)
    support = oracle.lab(17, EPSILON).sample_support(np.full(17, 20), rng)
    known = evidence(noise, support.counts.tolist())
    again = noise.expected(EPSILON, known.probe.reports, known)
    assert again == pytest.approx(known.probe.variance[0], rel=1e-9)
    assert noise.expected(EPSILON, 2 * known.probe.reports, known) < again


def test_the_paper_rule_is_the_worst_noise() -> None:
    noise = MeanNoise(Numeric.DUCHI, 17, 1000, VarianceRule.PAPER)
    worst = float(Numeric.DUCHI.device(17, EPSILON).worst_noise)
    assert noise.expected(EPSILON, 50, evidence(noise, [3, 9])) == worst / 50


def test_no_answer_is_an_empty_tally() -> None:
    noise = MeanNoise(Numeric.DUCHI, 17, 1000, VarianceRule.CORRECTED)
    assert not noise.tally(EPSILON, Support.none(2))
    assert Tally.empty(1).estimate.shape == noise.tally(EPSILON, Support.none(2)).estimate.shape


# --- Distributions --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["lpu", "lpa", "lpf"])
def test_a_distribution_is_published(mechanism: str) -> None:
    run = only_run(mechanism, DistributionQuery(0, 5, 16))
    assert run.released.shape == run.truth.shape == (120, 21)
    released, truth = run.released[:, :16], run.truth[:, :16]
    np.testing.assert_allclose(released.sum(axis=1), 1)
    assert (released >= 0).all()
    distance = np.abs(np.cumsum(released - truth, axis=1)).mean()
    uniform = np.abs(np.cumsum(1 / 16 - truth, axis=1)).mean()
    assert distance < uniform / 4
    assert np.abs((released - truth).mean(axis=0)).sum() < 0.25


def test_quantiles_of_latencies_lie_in_their_intervals() -> None:
    """As asked of the whole stream, with some room: this is a part of it."""
    stream = latency(timestamps=80, steps=255)
    query = DistributionQuery(0, 2, 32)
    result = simulate(stream, "lpf", epsilon=1, window=20, query=query, seed=3)
    assert result.mean("p50_mae") < 0.012
    assert result.mean("p99_mae") < 0.06
    assert 0.8 < result.mean("coverage") < 0.99
    (run,) = result.runs
    assert (run.low <= run.released + 1e-9).all()
    assert (run.released <= run.high + 1e-9).all()
    assert (np.diff(run.released[:, 32:36], axis=1) > 0).all()
    row = result.row()
    assert row["p50_mae"] == result.mean("p50_mae")
    assert simulated("lpu").row()["p50_mae"] is None


def test_before_the_first_report_nothing_is_known() -> None:
    query = DistributionQuery(0, 10, 8)
    mechanism = build("lpf", settings(query=query))
    shown = query.shown(mechanism.state.release, mechanism.noise)
    low, high = (end[9] for end in shown.interval)  # of the median
    assert low < 2.5
    assert high > 7.5


def test_the_truth_of_a_distribution_is_its_histogram_and_its_quantiles() -> None:
    counts = np.ones(1025, np.int64)
    truth = DistributionQuery(0, 1, 10).truth(counts * np.arange(1025))
    by_hand = np.bincount(np.arange(1025) * 10 // 1025, weights=np.arange(1025))
    np.testing.assert_allclose(truth[:10], by_hand / by_hand.sum())
    numbers = DistributionQuery(-10, 10, 2).truth(counts)[2:]
    np.testing.assert_allclose(numbers, [-8, 0, 8, 9.8, 0], atol=0.02)


@pytest.mark.parametrize("bins", [2, 3, 7, 16])
def test_devices_merge_levels_as_bins_do(bins: int) -> None:
    counts = np.arange(1, 18)
    query = DistributionQuery(0, 1, bins)
    noise = query.noise(settings(query=query), EPSILON)
    inputs = noise.inputs(counts)
    np.testing.assert_allclose(
        inputs.reshape(bins, -1).sum(axis=1) / counts.sum(), query.truth(counts)[:bins]
    )


# --- What is refused ------------------------------------------------------------------------------


def test_bad_queries_are_refused_in_one_line() -> None:
    with pytest.raises(Mistake, match=r"the range is 5 to 0; give two finite numbers"):
        MeanQuery(5, 0)
    with pytest.raises(Mistake, match="the range is in 1 bins; give 2 to 256"):
        DistributionQuery(0, 1, 1)
    with pytest.raises(Mistake, match="in 32 bins of 17 levels; give at most one bin per level"):
        build("lpu", settings(query=DistributionQuery(0, 1, 32)))
    with pytest.raises(Mistake, match="there is no oracle 'grr'"):
        simulated("lpu", VOLTS, "grr")
    with pytest.raises(Mistake, match="there is no oracle"):
        build("lpu", settings(oracle=Oracle.GRR))
    with pytest.raises(Mistake, match=r"the query of central-ba is mean of .*; give a histogram"):
        task(STREAM, "central-ba", settings_of(STREAM, 1, 10, RunOptions(query=VOLTS))).check()
    with pytest.raises(Mistake, match="there is no oracle 'duchi'"):
        simulated("lpu", DistributionQuery(0, 5, 16), "duchi")
    with pytest.raises(Mistake, match="there is no oracle 'duchi'"):
        simulate(STREAM, "lpu", epsilon=1, window=10, oracle="duchi", query=HISTOGRAM)
