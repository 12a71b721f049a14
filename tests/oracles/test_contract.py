"""The contract of every oracle. A new one is tested by being registered in `Oracle`.

Where a test is exact it compares fractions. Where it is statistical, seeds are fixed and a bound
is set such that a correct oracle would miss it with probability below 1e-6 over the whole suite:
there are fewer than 6,000 z-scores, each allowed `MOST_SIGMAS`, which a normal variable exceeds
with 8e-11, and fewer than 100 chi-square tests, each allowed `LEAST_TAIL`: 6e-7 in all.
"""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

from ldpstream.errors import LdpStreamError, MalformedReport, Mistake, Problem
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Support
from ldpstream.oracles.device_half import WIRE_VERSION, DeviceHalf
from ldpstream.oracles.grr.device import Device as GrrDevice
from ldpstream.oracles.hashing import MultiplyShift
from ldpstream.oracles.lab_half import LabHalf
from ldpstream.oracles.local_hash.device import Hashed, LocalHashDevice
from ldpstream.oracles.subset.device import Device as SubsetDevice
from ldpstream.oracles.unary.device import OueDevice, SueDevice
from ldpstream.oracles.unary.lab import Lab as UnaryLab
from ldpstream.privacy.enumeration import distribution
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import Source

MOST_SIGMAS = 6.5
LEAST_TAIL = 1e-9

every_oracle = pytest.mark.parametrize("oracle", list(Oracle))
small_domain = pytest.mark.parametrize("labels", [2, 3, 4])
some_epsilons = pytest.mark.parametrize("epsilon", ["0.000000001", "0.5", "2"])


# --- What one device does, exactly ---------------------------------------------------------------


def enumerable(device: DeviceHalf[Any]) -> DeviceHalf[Any]:
    """The device itself, or if it draws a seed of 64 bits the same code over a tiny hash family."""
    if not isinstance(device, LocalHashDevice):
        return device

    class Tiny(LocalHashDevice):
        family = MultiplyShift(key_bits=2, hash_bits=3)

        def _key(self, label: int) -> int:
            return label

    return Tiny(device.labels, device.epsilon, device.buckets)


def outputs(device: DeviceHalf[Any]) -> list[dict[Any, Fraction]]:
    """Pr[report | value], for each value."""
    return [distribution(partial(device.perturb, value)) for value in range(device.labels)]


def worst_ratio_of(output: list[dict[Any, Fraction]]) -> Fraction:
    """The largest Pr[y | v] / Pr[y | v'], with infinity as a failure."""
    reports = set().union(*output)
    assert all(set(given_value) == reports for given_value in output), "a report gives values away"
    return max(
        max(given_value[report] for given_value in output)
        / min(given_value[report] for given_value in output)
        for report in reports
    )


def check_epsilon(device: DeviceHalf[Any]) -> None:
    assert worst_ratio_of(outputs(device)) == device.worst_ratio
    assert device.worst_ratio <= exp_below(device.epsilon)


def check_probabilities(device: DeviceHalf[Any]) -> None:
    """The p and q that estimates rest on are those of the randomiser, for every pair of labels."""
    for value, output in enumerate(outputs(device)):
        assert sum(output.values()) == 1
        for label in range(device.labels):
            supported = sum(
                share for report, share in output.items() if device.supports(report, label)
            )
            assert supported == (device.p if label == value else device.q)


def exp_below(epsilon: Epsilon) -> Fraction:
    """A partial sum of e^epsilon, so below it, but by less than 2^-100: the audit's own series."""
    exponent = Fraction(epsilon.nano, 10**9)
    term = total = Fraction(1)
    for step in range(1, 240):
        term = term * exponent / step
        total += term
    return total


@every_oracle
def test_reports_support_equally_many_labels_if_it_says_so(oracle: Oracle) -> None:
    device = enumerable(oracle.device(4, Epsilon.of(1)))
    sizes = {
        sum(device.supports(report, label) for label in range(4))
        for output in outputs(device)
        for report in output
    }
    assert (len(sizes) == 1) == oracle.device(4, Epsilon.of(1)).supports_equally_many


@every_oracle
@pytest.mark.parametrize("labels", [2, 5, 70])
def test_fakes_send_reports_that_the_collector_takes(oracle: Oracle, labels: int) -> None:
    lab, collector = oracle.lab(labels, EPSILON), oracle.collector(labels, EPSILON)
    rng, target = np.random.default_rng(1), labels - 1
    targets = np.full(50, target)
    honest = lab.perturb(targets, rng)
    for fake in (lab.supporting(targets, rng), lab.crafted(targets, rng)):
        assert fake.shape == honest.shape
        assert collector.support(fake).counts[target] == 50
    assert lab.arbitrary(50, rng).shape == honest.shape


@every_oracle
@small_domain
@some_epsilons
def test_epsilon_is_exactly_as_stated(oracle: Oracle, labels: int, epsilon: str) -> None:
    check_epsilon(enumerable(oracle.device(labels, Epsilon.of(epsilon))))


@every_oracle
@small_domain
@some_epsilons
def test_support_is_exactly_as_stated(oracle: Oracle, labels: int, epsilon: str) -> None:
    check_probabilities(enumerable(oracle.device(labels, Epsilon.of(epsilon))))


@every_oracle
@pytest.mark.parametrize("labels", [2, 10, 1000, 65536])
def test_never_more_epsilon_than_asked(oracle: Oracle, labels: int) -> None:
    for asked in ["0.000000001", "0.001", "0.1", "1", "2", "5", "10", "32"]:
        epsilon = Epsilon.of(asked)
        device = oracle.device(labels, epsilon)
        assert 1 < device.worst_ratio <= exp_below(epsilon)
        assert device.true_epsilon <= epsilon.nano / 10**9
        assert device.true_epsilon > float(epsilon) * (1 - 1e-9)  # and next to nothing is wasted
        assert 0 < device.q < device.p < 1


class Recording:
    """A source that notes the questions it is asked."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.asked: list[tuple[str, int, int]] = []

    def coin(self, favour: int, total: int) -> bool:
        self.asked.append(("coin", favour, total))
        return self._source.coin(favour, total)

    def below(self, bound: int) -> int:
        self.asked.append(("below", bound, 0))
        return self._source.below(bound)


def check_same_draws(device: DeviceHalf[Any]) -> None:
    """Neither the value nor the coins show in how much, or what, is drawn: timing tells nothing."""

    def questions(value: int, source: Source) -> tuple[tuple[str, int, int], ...]:
        recording = Recording(source)
        device.perturb(value, recording)
        return tuple(recording.asked)

    seen = {
        asked for value in range(device.labels) for asked in distribution(partial(questions, value))
    }
    assert len(seen) == 1


@every_oracle
@small_domain
def test_draws_do_not_depend_on_the_value(oracle: Oracle, labels: int) -> None:
    check_same_draws(enumerable(oracle.device(labels, Epsilon.of(1))))


class Pinned:
    """A source whose first answers to `below` are given."""

    def __init__(self, source: Source, answers: list[int]) -> None:
        self._source = source
        self._answers = answers

    def coin(self, favour: int, total: int) -> bool:
        return self._source.coin(favour, total)

    def below(self, bound: int) -> int:
        return self._answers.pop(0) if self._answers else self._source.below(bound)


@pytest.mark.parametrize("oracle", [Oracle.BLH, Oracle.OLH])
@some_epsilons
def test_each_hash_seed_keeps_epsilon(oracle: Oracle, epsilon: str) -> None:
    """The seed is public: the guarantee must hold given any, not only on average."""
    device = oracle.device(5, Epsilon.of(epsilon))
    assert isinstance(device, LocalHashDevice)

    def under(seed: tuple[int, int], value: int, source: Source) -> Hashed:
        return device.perturb(value, Pinned(source, [*seed]))

    for seed in ((0, 0), (1, 2), (0x9E3779B1, 0x7F4A7C15), (2**32 - 1, 2**31)):
        output = [distribution(partial(under, seed, value)) for value in range(5)]
        buckets = {device.bucket_of(*seed, label) for label in range(5)}
        expected = device.worst_ratio if len(buckets) > 1 else 1
        assert worst_ratio_of(output) == expected


# --- What many devices do, in distribution --------------------------------------------------------


class Seeded:
    """The device's source, reproducible."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def coin(self, favour: int, total: int) -> bool:
        return self._random.randrange(total) < favour

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


EPSILON = Epsilon.of("0.5")
LABELS = 6
"""With these a subset has more than one label, and is not GRR again."""
TRUTH = np.array([35, 0, 25, 10, 7, 3])
"""An uneven histogram, with a label that no one has."""


@cache
def joint_supports(oracle: Oracle) -> NDArray[np.float64]:
    """Pr[a report of value v supports both i and j], indexed v, i, j; on the diagonal p and q.

    From the enumerated device. For hashing it is that of the ideal hash, where labels are
    independent: which the real one must not be seen to differ from.
    """
    device = oracle.device(LABELS, EPSILON)
    p, q = float(device.p), float(device.q)
    if isinstance(device, LocalHashDevice):
        single = np.full((LABELS, LABELS), q) + np.eye(LABELS) * (p - q)
        joint = single[:, :, None] * single[:, None, :]
        for value in range(LABELS):
            np.fill_diagonal(joint[value], single[value])
        return joint
    joint = np.zeros((LABELS, LABELS, LABELS))
    for value, output in enumerate(outputs(device)):
        for report, share in output.items():
            supported = [device.supports(report, label) for label in range(LABELS)]
            joint[value] += float(share) * np.outer(supported, supported)
    return joint


def covariance(joint: NDArray[np.float64], truth: NDArray[np.int64]) -> NDArray[np.float64]:
    """Covariance matrix of the support counts of devices with this histogram."""
    total: NDArray[np.float64] = np.zeros((LABELS, LABELS))
    for devices, moments in zip(truth, joint, strict=True):
        total += devices * (moments - np.outer(moments.diagonal(), moments.diagonal()))
    return total


def worst_sigma(found: Any, expected: Any, variance: Any) -> float:
    """The largest |z|; where there is no variance, the value must be exact."""
    deviation, spread = np.abs(np.asarray(found) - expected), np.sqrt(variance)
    certain = spread < 1e-9
    assert np.all(deviation[certain] < 1e-6)
    return float((deviation[~certain] / spread[~certain]).max())


def patterns(oracle: Oracle, reports: NDArray[Any]) -> NDArray[np.int64]:
    """Return which labels each report supports, as the collector counts it; one row a report."""
    collector = oracle.collector(LABELS, EPSILON)
    return np.stack([collector.support(reports[i : i + 1]).counts for i in range(len(reports))])


def check_joint_of_reports(oracle: Oracle, lab: LabHalf) -> None:
    """Every pair of labels is supported together as often as the enumerated device has it."""
    truth = TRUTH * 300
    reports = lab.perturb(np.repeat(np.arange(LABELS), truth), np.random.default_rng(1))
    supported = patterns(oracle, reports)
    joint = joint_supports(oracle)
    expected = np.tensordot(truth, joint, 1)
    variance = np.tensordot(truth, joint * (1 - joint), 1)
    assert worst_sigma(supported.T @ supported, expected, variance) < MOST_SIGMAS


def check_joint_of_sums(oracle: Oracle, lab: LabHalf) -> None:
    """Means and covariances of sampled support counts are those of the enumerated device.

    The standard error of a sample covariance is that for normal variables, which sums of 80
    independent reports are nearly.
    """
    repeats = 6000
    rng = np.random.default_rng(2)
    counts = np.stack([lab.sample_support(TRUTH, rng).counts for _ in range(repeats)])
    joint = joint_supports(oracle)
    mean = sum(joint[value].diagonal() * devices for value, devices in enumerate(TRUTH))
    exact = covariance(joint, TRUTH)
    spread = exact.diagonal()
    assert worst_sigma(counts.mean(axis=0), mean, spread / repeats) < MOST_SIGMAS
    error = (np.outer(spread, spread) + exact**2) / repeats
    assert worst_sigma(np.cov(counts.T), exact, error) < MOST_SIGMAS


@every_oracle
def test_simulated_reports_have_the_joint_distribution_of_the_device(oracle: Oracle) -> None:
    check_joint_of_reports(oracle, oracle.lab(LABELS, EPSILON))


@every_oracle
def test_sampled_support_has_the_joint_distribution_of_the_device(oracle: Oracle) -> None:
    check_joint_of_sums(oracle, oracle.lab(LABELS, EPSILON))


@every_oracle
def test_device_and_simulation_agree_through_the_wire(oracle: Oracle) -> None:
    """Reports of the real device, encoded, decoded and counted, against simulated ones."""
    device, collector = oracle.device(LABELS, EPSILON), oracle.collector(LABELS, EPSILON)
    values = np.repeat(np.arange(LABELS), 1500)
    source = Seeded(3)
    sent = [device.perturb(int(value), source) for value in values]
    real = patterns(oracle, collector.decode([device.encode(report) for report in sent]))
    assert real.tolist() == [[device.supports(r, label) for label in range(LABELS)] for r in sent]
    reports = oracle.lab(LABELS, EPSILON).perturb(values, np.random.default_rng(4))
    simulated = patterns(oracle, reports)
    for value in range(LABELS):
        chosen = values == value
        tallies = [Counter(map(tuple, rows[chosen].tolist())) for rows in (real, simulated)]
        seen = sorted(set().union(*tallies))
        table = [[tally[pattern] for pattern in seen] for tally in tallies]
        assert chi2_contingency(table).pvalue > LEAST_TAIL


@every_oracle
@pytest.mark.parametrize(("labels", "epsilon"), [(2, "0.3"), (37, "1"), (130, "3")])
def test_estimates_are_unbiased_with_the_stated_variance(
    oracle: Oracle, labels: int, epsilon: str
) -> None:
    """Over repeats, mean error and mean squared error of every bin, of both ways to simulate."""
    lab = oracle.lab(labels, Epsilon.of(epsilon))
    collector = oracle.collector(labels, Epsilon.of(epsilon))
    rng = np.random.default_rng(5)
    repeats, devices = 300, 2000
    values = rng.geometric(0.2, devices) % labels
    truth = np.bincount(values, minlength=labels)
    variance = collector.variance(devices, truth / devices)
    assert np.isclose(variance.mean(), collector.mean_variance(devices), rtol=1e-9)
    for supports in (
        [collector.support(lab.perturb(values, rng)) for _ in range(repeats)],
        [lab.sample_support(truth, rng) for _ in range(repeats)],
    ):
        errors = np.stack([collector.estimate(support) for support in supports]) - truth / devices
        assert worst_sigma(errors.mean(axis=0), 0, variance / repeats) < MOST_SIGMAS
        squares = (errors**2 / variance).sum(axis=0)  # chi-square with `repeats` degrees of freedom
        # Wilson and Hilferty: the cube root of chi-square / k is normal to far out in its tails.
        spread = 2 / (9 * repeats)
        roots = np.cbrt(squares / repeats)
        assert worst_sigma(roots, 1 - spread, np.full(labels, spread)) < MOST_SIGMAS


@every_oracle
def test_sampling_variance_is_added_for_a_share_of_the_population(oracle: Oracle) -> None:
    collector = oracle.collector(LABELS, EPSILON)
    frequencies = TRUTH / TRUTH.sum()
    noise = collector.variance(40, frequencies)
    sampling = frequencies * (1 - frequencies) / 40 * (80 - 40) / (80 - 1)
    assert np.allclose(collector.variance(40, frequencies, population=80), noise + sampling)
    mean = collector.mean_variance(40, 80, concentration=float((frequencies**2).sum()))
    assert np.isclose(mean, (noise + sampling).mean())
    assert np.allclose(collector.variance(80, frequencies, population=80), noise / 2)


@every_oracle
def test_more_reports_than_the_population_are_a_population_of_their_own(oracle: Oracle) -> None:
    """Everyone was asked: there is the randomiser's noise, and no share of it is taken off."""
    collector = oracle.collector(LABELS, EPSILON)
    frequencies = TRUTH / TRUTH.sum()
    for population in (1, 2, 80):
        found = collector.variance(8000, frequencies, population=population)
        assert np.array_equal(found, collector.variance(8000, frequencies))
        mean = collector.mean_variance(8000, population, concentration=0.5)
        assert mean == collector.mean_variance(8000, 8000, concentration=0.5) > 0


# --- Bytes ---------------------------------------------------------------------------------------

domains = st.integers(2, 300)
epsilons = st.sampled_from(["0.001", "0.7", "1", "3", "11"]).map(Epsilon.of)


@every_oracle
@settings(max_examples=60, deadline=None)
@given(data=st.data(), labels=domains, epsilon=epsilons, seed=st.integers(0, 2**32))
def test_reports_survive_the_wire(
    oracle: Oracle, data: st.DataObject, labels: int, epsilon: Epsilon, seed: int
) -> None:
    device, collector = oracle.device(labels, epsilon), oracle.collector(labels, epsilon)
    values = data.draw(st.lists(st.integers(0, labels - 1), max_size=4))
    source = Seeded(seed)
    reports = [device.perturb(value, source) for value in values]
    wires = [device.encode(report) for report in reports]
    assert [device.decode(wire) for wire in wires] == reports
    assert all(len(wire) == device.report_bytes and wire[0] == WIRE_VERSION for wire in wires)
    support = collector.support(collector.decode(wires))
    assert support.reports == len(reports)
    assert support.counts.tolist() == [
        sum(device.supports(report, label) for report in reports) for label in range(labels)
    ]


@every_oracle
def test_merge_is_union(oracle: Oracle) -> None:
    lab, collector = oracle.lab(70, EPSILON), oracle.collector(70, EPSILON)
    reports = lab.perturb(np.arange(1001) % 70, np.random.default_rng(6))
    whole = collector.support(reports)
    borders = [0, 0, 1, 17, 500, 1001]
    parts = [collector.support(reports[start:stop]) for start, stop in pairwise(borders)]
    merged = sum(parts, Support.none(70))
    assert merged.reports == whole.reports == 1001
    assert merged.counts.tolist() == whole.counts.tolist()


def refusal(decode: Any, wire: bytes) -> LdpStreamError | None:
    try:
        decode(wire)
    except MalformedReport as error:
        return error
    return None


def refusals(oracle: Oracle, labels: int, wire: bytes) -> list[str]:
    """Return what device and collector say to these bytes; an empty text if they take them."""
    device, collector = oracle.device(labels, EPSILON), oracle.collector(labels, EPSILON)
    good = device.encode(device.perturb(0, Seeded(7)))
    found = [refusal(device.decode, wire), refusal(lambda w: collector.decode([good, w]), wire)]
    return [f"{error.problem.name}: {error}" if error else "" for error in found]


@every_oracle
def test_bad_bytes_are_refused_by_name(oracle: Oracle) -> None:
    device = oracle.device(LABELS, EPSILON)
    good = device.encode(device.perturb(0, Seeded(8)))
    cases = {
        b"": Problem.REPORT_LENGTH,
        good[:-1]: Problem.REPORT_LENGTH,
        good + b"\0": Problem.REPORT_LENGTH,
        bytes([WIRE_VERSION + 1]) + good[1:]: Problem.REPORT_VERSION,
        good[:-1] + b"\xff": Problem.REPORT_RANGE,
    }
    assert refusals(oracle, LABELS, good) == ["", ""]
    for wire, problem in cases.items():
        by_device, by_collector = refusals(oracle, LABELS, wire)
        assert by_device == by_collector
        assert by_device.startswith(problem.name + ":")


@pytest.mark.parametrize("bitmap", [0b000000, 0b000100, 0b111111])
def test_a_subset_of_another_size_is_refused(bitmap: int) -> None:
    by_device, by_collector = refusals(Oracle.SUBSET, LABELS, bytes([WIRE_VERSION, bitmap]))
    assert by_device == by_collector
    assert "number of labels" in by_device


@every_oracle
@settings(max_examples=60, deadline=None)
@given(labels=domains, wire=st.data())
def test_device_and_collector_refuse_the_same_bytes(
    oracle: Oracle, labels: int, wire: st.DataObject
) -> None:
    size = oracle.device(labels, EPSILON).payload_bytes
    payload = wire.draw(st.binary(min_size=size, max_size=size))
    by_device, by_collector = refusals(oracle, labels, bytes([WIRE_VERSION]) + payload)
    assert by_device == by_collector


@every_oracle
@pytest.mark.parametrize("value", [-1, LABELS])
def test_values_outside_the_domain_are_refused(oracle: Oracle, value: int) -> None:
    with pytest.raises(Mistake, match="outside the domain of 6 labels"):
        oracle.device(LABELS, EPSILON).perturb(value, Seeded(9))
    with pytest.raises(Mistake, match="outside the domain of 6 labels"):
        oracle.lab(LABELS, EPSILON).perturb(np.array([0, value]), np.random.default_rng(9))


@every_oracle
def test_nothing_comes_of_no_reports(oracle: Oracle) -> None:
    collector, lab = oracle.collector(LABELS, EPSILON), oracle.lab(LABELS, EPSILON)
    nothing = collector.support(collector.decode([]))
    assert nothing.counts.tolist() == [0] * LABELS
    rng = np.random.default_rng(10)
    assert len(lab.perturb(np.array([], np.int64), rng)) == 0
    assert lab.sample_support(np.zeros(LABELS, np.int64), rng).counts.tolist() == [0] * LABELS
    with pytest.raises(LdpStreamError) as refused:
        collector.estimate(nothing)
    assert refused.value.problem is Problem.NO_REPORTS


# --- The tests tested: planted bugs are caught ---------------------------------------------------


class SlightlyBiasedCoin(GrrDevice):
    """Keeps the value with a probability that is too high by less than 1e-19."""

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        self._favour += 1


class NeverClearsABit(SueDevice):
    """Sets other bits as it should, but leaves the true one set."""

    def _perturb(self, value: int, source: Source) -> int:
        return super()._perturb(value, source) | 1 << value


class HalfEpsilonForgotten(SueDevice):
    """Flips bits as if two values differed in one."""

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, Epsilon(2 * epsilon.nano))
        self.epsilon = epsilon


@pytest.mark.parametrize("broken", [SlightlyBiasedCoin, NeverClearsABit, HalfEpsilonForgotten])
def test_too_much_epsilon_is_caught(broken: type[DeviceHalf[Any]]) -> None:
    with pytest.raises(AssertionError):
        check_epsilon(broken(3, EPSILON))


class EvenBuckets(LocalHashDevice):
    """Takes the buckets of a hash to be even, which three of eight hashes cannot be."""

    family = MultiplyShift(key_bits=2, hash_bits=3)

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon, buckets=3)
        self.q = Fraction(1, 3)

    def _key(self, label: int) -> int:
        return label


class ReplacesTheWrongOne(SubsetDevice):
    """Forgets that the true label takes the place of another."""

    def _perturb(self, value: int, source: Source) -> int:
        return super()._perturb(value, source) | source.coin(1, 2) << value


@pytest.mark.parametrize("broken", [EvenBuckets, ReplacesTheWrongOne, NeverClearsABit])
def test_wrong_probabilities_are_caught(broken: type[DeviceHalf[Any]]) -> None:
    with pytest.raises(AssertionError):
        check_probabilities(broken(3, EPSILON))


class DrawsOnlyWhenItMust(OueDevice):
    """Correct in distribution, but the number of draws tells where the value is."""

    def _perturb(self, value: int, source: Source) -> int:
        bits = [
            source.coin(1, 2) if label == value else source.coin(self._against, self._total)
            for label in range(self.labels)
        ]
        return sum(bit << label for label, bit in enumerate(bits))


def test_telltale_draws_are_caught() -> None:
    check_epsilon(DrawsOnlyWhenItMust(3, EPSILON))
    with pytest.raises(AssertionError):
        check_same_draws(DrawsOnlyWhenItMust(3, EPSILON))


def test_right_marginals_with_a_wrong_joint_are_caught() -> None:
    """Bits of a subset drawn as if they were independent."""
    lab = UnaryLab(Oracle.SUBSET.device(LABELS, EPSILON))
    with pytest.raises(AssertionError):
        check_joint_of_reports(Oracle.SUBSET, lab)
    with pytest.raises(AssertionError):
        check_joint_of_sums(Oracle.SUBSET, lab)
