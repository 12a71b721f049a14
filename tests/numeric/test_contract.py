"""The contract of every randomiser of numbers. A new one is tested by being registered.

Where a test is exact it compares fractions. Where it is statistical, seeds are fixed and a bound is
set such that a correct one would miss it with probability below 1e-6 over the whole suite: there
are fewer than 3,000 z-scores, each allowed `MOST_SIGMAS`, which a normal variable exceeds with
8e-11, and fewer than 300 chi-square tests, each allowed `LEAST_TAIL`: 6e-7 in all.
"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import chisquare

from ldpstream.errors import LdpStreamError, MalformedReport, Mistake, Problem
from ldpstream.numeric import Numeric
from ldpstream.numeric.band_device import BandDevice
from ldpstream.numeric.band_lab import BandLab
from ldpstream.numeric.collector_half import NumericCollector
from ldpstream.numeric.device_half import NumericDevice
from ldpstream.numeric.duchi.device import Device as DuchiDevice
from ldpstream.numeric.lab_half import NumericLab
from ldpstream.oracles.collector_half import Support
from ldpstream.oracles.device_half import WIRE_VERSION
from ldpstream.privacy.enumeration import distribution
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import Source
from tests.oracles.test_contract import (
    LEAST_TAIL,
    MOST_SIGMAS,
    Recording,
    Seeded,
    exp_below,
    worst_ratio_of,
    worst_sigma,
)

every_one = pytest.mark.parametrize("numeric", list(Numeric))
small_grid = pytest.mark.parametrize("levels", [2, 3, 4, 6])
some_epsilons = pytest.mark.parametrize("epsilon", ["0.000000001", "0.5", "1", "3"])


# --- What one device does, exactly ---------------------------------------------------------------


def outputs(device: NumericDevice) -> list[dict[int, Fraction]]:
    """Pr[output | level], for each level, from the code that runs."""
    return [distribution(partial(device.perturb, level)) for level in range(device.labels)]


def check_epsilon(device: NumericDevice) -> None:
    assert worst_ratio_of(outputs(device)) == device.worst_ratio
    assert device.worst_ratio <= exp_below(device.epsilon)


def check_probabilities(device: NumericDevice) -> None:
    for level, output in enumerate(outputs(device)):
        assert sum(output.values()) == 1
        for report in range(device.outputs):
            assert output.get(report, 0) == device.probability(report, level)


def check_moments(device: NumericDevice) -> None:
    """The number read has the level as its mean, and the stated variance: for every level."""
    for level, output in enumerate(outputs(device)):
        u = Fraction(level, device.steps)
        mean = sum(share * device.number(report) for report, share in output.items())
        square = sum(share * device.number(report) ** 2 for report, share in output.items())
        assert mean == u
        assert square - u**2 == device.base + device.bend * u * (1 - u)
        assert square - u**2 <= device.worst_noise


def check_same_draws(device: NumericDevice) -> None:
    """Neither the value nor the coins show in how much, or what, is drawn: timing tells nothing."""

    def questions(level: int, source: Source) -> tuple[tuple[str, int, int], ...]:
        recording = Recording(source)
        device.perturb(level, recording)
        return tuple(recording.asked)

    levels = range(device.labels)
    assert (
        len({asked for level in levels for asked in distribution(partial(questions, level))}) == 1
    )


@every_one
@small_grid
@some_epsilons
def test_epsilon_is_exactly_as_stated(numeric: Numeric, levels: int, epsilon: str) -> None:
    check_epsilon(numeric.device(levels, Epsilon.of(epsilon)))


@every_one
@small_grid
@some_epsilons
def test_probabilities_are_exactly_as_stated(numeric: Numeric, levels: int, epsilon: str) -> None:
    check_probabilities(numeric.device(levels, Epsilon.of(epsilon)))


@every_one
@small_grid
@some_epsilons
def test_mean_and_variance_are_exactly_as_stated(
    numeric: Numeric, levels: int, epsilon: str
) -> None:
    check_moments(numeric.device(levels, Epsilon.of(epsilon)))


@every_one
@small_grid
def test_draws_do_not_depend_on_the_value(numeric: Numeric, levels: int) -> None:
    check_same_draws(numeric.device(levels, Epsilon.of(1)))


@every_one
@pytest.mark.parametrize("levels", [2, 1025, 65536])
def test_never_more_epsilon_than_asked(numeric: Numeric, levels: int) -> None:
    for asked in ["0.000000001", "0.001", "0.1", "1", "2", "5", "10", "32"]:
        epsilon = Epsilon.of(asked)
        device = numeric.device(levels, epsilon)
        assert 1 < device.worst_ratio <= exp_below(epsilon)
        assert device.true_epsilon <= epsilon.nano / 10**9
        assert device.true_epsilon > float(epsilon) * (1 - 1e-9)  # and next to nothing is wasted


# --- What many devices do, in distribution --------------------------------------------------------

LEVELS = 7
EPSILON = Epsilon.of("1.5")
TRUTH = np.array([35, 0, 25, 10, 7, 3, 20])
"""An uneven histogram, with a level that no one has."""


def exact(numeric: Numeric, level: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    device = numeric.device(LEVELS, EPSILON)
    return np.array([float(device.probability(y, level)) for y in range(device.outputs)])


def check_lab(numeric: Numeric, lab: NumericLab) -> None:
    """Reports and sampled counts of each level are drawn from the device's distribution."""
    rng = np.random.default_rng(1)
    collector = numeric.collector(LEVELS, EPSILON)
    devices = 20_000
    for level in range(LEVELS):
        expected = devices * exact(numeric, level)
        reports = lab.perturb(np.full(devices, level), rng)
        sampled = lab.sample_support(devices * (np.arange(LEVELS) == level), rng)
        assert sampled.reports == devices
        for support in (collector.support(reports), sampled):
            assert chisquare(support.counts, expected).pvalue > LEAST_TAIL


@every_one
def test_simulation_has_the_distribution_of_the_device(numeric: Numeric) -> None:
    check_lab(numeric, numeric.lab(LEVELS, EPSILON))


@every_one
def test_the_device_itself_agrees_through_the_wire(numeric: Numeric) -> None:
    device, collector = numeric.device(LEVELS, EPSILON), numeric.collector(LEVELS, EPSILON)
    source = Seeded(2)
    for level in (0, 2, LEVELS - 1):
        sent = [device.perturb(level, source) for _ in range(4000)]
        received = collector.decode([device.encode(report) for report in sent])
        assert received.tolist() == sent
        counts = collector.support(received).counts
        assert chisquare(counts, 4000 * exact(numeric, level)).pvalue > LEAST_TAIL


@every_one
def test_sampled_counts_of_mixed_levels_have_the_right_moments(numeric: Numeric) -> None:
    repeats, rng = 3000, np.random.default_rng(3)
    lab = numeric.lab(LEVELS, EPSILON)
    counts = np.stack([lab.sample_support(TRUTH, rng).counts for _ in range(repeats)])
    chances = np.stack([exact(numeric, level) for level in range(LEVELS)])
    mean, variance = TRUTH @ chances, TRUTH @ (chances * (1 - chances))
    assert worst_sigma(counts.mean(axis=0), mean, variance / repeats) < MOST_SIGMAS
    # A count is a sum of many coins: its sample variance errs by about sqrt(2/repeats).
    assert worst_sigma(counts.var(axis=0), variance, variance**2 * 3 / repeats) < MOST_SIGMAS


@every_one
@pytest.mark.parametrize(("levels", "epsilon"), [(2, "0.3"), (65, "1"), (1025, "3")])
def test_estimates_are_unbiased_with_the_stated_variance(
    numeric: Numeric, levels: int, epsilon: str
) -> None:
    """Over repeats of drawing users and of randomising their values."""
    lab = numeric.lab(levels, Epsilon.of(epsilon))
    collector = numeric.collector(levels, Epsilon.of(epsilon))
    rng = np.random.default_rng(4)
    repeats, users, asked = 1500, 1000, 600
    population = rng.binomial(levels - 1, rng.beta(1, 4, users))
    unit = population / (levels - 1)
    errors = []
    for _ in range(repeats):
        values = rng.permutation(population)[:asked]
        support = collector.support(lab.perturb(values, rng))
        errors.append(float(collector.estimate(support)[0]) - unit.mean())
    variance = collector.variance(asked, unit.mean(), unit.var(), users)
    assert abs(np.mean(errors)) < MOST_SIGMAS * np.sqrt(variance / repeats)
    assert abs(np.mean(np.square(errors)) / variance - 1) < MOST_SIGMAS * np.sqrt(2 / repeats)
    assert variance > collector.variance(asked, unit.mean(), unit.var())


@every_one
def test_the_spread_of_values_is_told_or_said_to_be_0(numeric: Numeric) -> None:
    collector = numeric.collector(LEVELS, EPSILON)
    unit = np.repeat(np.arange(LEVELS) / (LEVELS - 1), TRUTH)
    chances = np.stack([exact(numeric, level) for level in range(LEVELS)])
    support = Support(np.rint(10**7 * TRUTH @ chances).astype(np.int64), int(10**7 * TRUTH.sum()))
    told = 0.0 if numeric is Numeric.DUCHI else float(unit.var())
    assert collector.spread(support) == pytest.approx(told, abs=1e-4)


@every_one
@pytest.mark.parametrize("reports", [10, 900])
def test_a_variance_tells_the_spread_behind_it(numeric: Numeric, reports: int) -> None:
    collector = numeric.collector(LEVELS, EPSILON)
    for mean, spread in ((0.5, 0.1), (0.2, 0.02), (0.9, 0.0)):
        variance = collector.variance(reports, mean, spread, 1000)
        told = collector.spread_within(variance, reports, mean, 1000)
        assert told == pytest.approx(0.0 if numeric is Numeric.DUCHI else spread, abs=1e-9)


@every_one
def test_merging_is_counting_the_union(numeric: Numeric) -> None:
    lab, collector = numeric.lab(LEVELS, EPSILON), numeric.collector(LEVELS, EPSILON)
    reports = lab.perturb(np.arange(1000) % LEVELS, np.random.default_rng(5))
    union = collector.support(reports)
    merged = collector.support(reports[:300]) + collector.support(reports[300:])
    assert (merged.counts == union.counts).all()
    assert merged.reports == union.reports
    assert collector.estimate(merged) == collector.estimate(union)


# --- What is refused ------------------------------------------------------------------------------


@every_one
def test_bad_reports_are_refused_by_name(numeric: Numeric) -> None:
    device, collector = numeric.device(LEVELS, EPSILON), numeric.collector(LEVELS, EPSILON)
    good = device.encode(0)
    beyond = bytes([WIRE_VERSION]) + device.outputs.to_bytes(device.payload_bytes, "little")
    cases = {
        good + b"\0": Problem.REPORT_LENGTH,
        good[:-1]: Problem.REPORT_LENGTH,
        b"": Problem.REPORT_LENGTH,
        bytes([WIRE_VERSION + 1]) + good[1:]: Problem.REPORT_VERSION,
        beyond: Problem.REPORT_RANGE,
    }
    for wire, problem in cases.items():
        with pytest.raises(MalformedReport) as by_device:
            device.decode(wire)
        with pytest.raises(MalformedReport) as by_collector:
            collector.decode([good, wire])
        assert by_device.value.problem is by_collector.value.problem is problem


@every_one
def test_levels_outside_the_range_are_refused(numeric: Numeric) -> None:
    for level in (-1, LEVELS):
        with pytest.raises(Mistake, match="outside the domain"):
            numeric.device(LEVELS, EPSILON).perturb(level, Seeded(6))
        with pytest.raises(Mistake, match="outside the domain"):
            numeric.lab(LEVELS, EPSILON).perturb(np.array([0, level]), np.random.default_rng(6))


@every_one
def test_no_reports_no_estimate(numeric: Numeric) -> None:
    collector = numeric.collector(LEVELS, EPSILON)
    nobody = collector.support(collector.decode([]))
    assert nobody.reports == 0
    with pytest.raises(LdpStreamError, match="zero reports"):
        collector.estimate(nobody)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(Mistake, match="use one of: duchi, piecewise"):
        Numeric.named("laplace")


BARE_DEVICE = """
import sys
sys.modules["numpy"] = sys.modules["numba"] = None  # importing them now fails
from ldpstream.numeric import Numeric, Range, choose_mean
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import SystemSource
volts = Range(0, 5)
for numeric in [*Numeric, choose_mean(volts.levels, Epsilon.of(1))]:
    device = numeric.device(volts.levels, Epsilon.of(1))
    report = device.perturb(volts.level(3.3), SystemSource())
    assert device.decode(device.encode(report)) == report
    print(numeric)
"""


def test_every_one_runs_on_a_device_without_numpy() -> None:
    run = subprocess.run(
        [sys.executable, "-c", BARE_DEVICE], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == [*Numeric, "hybrid"]


# --- Planted bugs ---------------------------------------------------------------------------------


class Clipped(BandDevice):
    """The usual mistake: outputs beyond the range are moved to its end."""

    def _perturb(self, value: int, source: Source) -> int:
        return min(super()._perturb(value, source), self.steps)


class CutOff(BandDevice):
    """The other: a band is cut off at the end of the range, and all its weight put on the rest."""

    def _perturb(self, value: int, source: Source) -> int:
        report = super()._perturb(value, source)
        return 1 if (value, report) == (0, 0) else report


class Eager(DuchiDevice):
    """Asks for a coin only when it matters, so that the time it takes tells the value."""

    def _perturb(self, value: int, source: Source) -> int:
        if value in (0, self.steps):
            return int(source.coin(self._favour, self._total) == (value > 0))
        return super()._perturb(value, source)


class Truthful(DuchiDevice):
    """Lies a little less often than it may not."""

    def _perturb(self, value: int, source: Source) -> int:
        rounded = source.below(self.steps) < value
        return int(rounded == source.coin(self._favour + self._total // 100, self._total))


class Unfocused(BandLab):
    """Takes p for the chance to draw from the band, when the rest covers the band as well."""

    @property
    def _focus(self) -> float:
        return float(self.device.width * self.device.p)


def test_planted_bugs_are_caught() -> None:
    clipped = Clipped(5, EPSILON, width=3)
    for check in (check_probabilities, check_moments):
        with pytest.raises(AssertionError):
            check(clipped)
    for check in (check_epsilon, check_moments):
        with pytest.raises(AssertionError):
            check(CutOff(5, EPSILON, width=3))
    with pytest.raises(AssertionError):
        check_same_draws(Eager(5, EPSILON))
    for check in (check_epsilon, check_moments):
        with pytest.raises(AssertionError):
            check(Truthful(5, EPSILON))
    device = Numeric.PIECEWISE.device(LEVELS, EPSILON)
    assert isinstance(device, BandDevice)
    with pytest.raises(AssertionError):
        check_lab(Numeric.PIECEWISE, Unfocused(device))


def test_the_halves_are_made_once() -> None:
    assert Numeric.HYBRID.collector(9, EPSILON) is Numeric.HYBRID.collector(9, EPSILON)
    assert isinstance(Numeric.HYBRID.collector(9, EPSILON), NumericCollector)
