"""Strata: one tally of the fleet, unbiased whoever chose what, and covered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, norm

from ldpstream.arrays import Floats
from ldpstream.lab.selection import SlotSelector
from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.mechanisms.mixed import MixedNoise, TermsPart
from ldpstream.mechanisms.noise import NoiseModel, VarianceRule
from ldpstream.mechanisms.strata import StrataMemory, Stratum, combine
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.slots import EPOCH_WINDOWS
from ldpstream.refine.intervals import LEVEL, QUANTILE
from ldpstream.streams.stream import CountsSnapshot

FALSE_ALARM = 1e-7
"""Of each of the tests below, which are fewer than ten."""


@dataclass(frozen=True)
class Level:
    """A stratum of a small world, and how many of its devices hold each label."""

    epsilon: str
    window: int
    counts: tuple[int, ...]
    oracle: Oracle = Oracle.GRR
    to: tuple[int, ...] | None = None

    def stratum(self, name: str) -> Stratum:
        noise = NoiseModel(self.oracle, len(self.counts), 1, VarianceRule.CORRECTED)
        return Stratum(name, Epsilon.of(self.epsilon), self.window, noise, self.to)


CORRELATED = (
    Level("0.5", 8, (100, 300, 1600)),
    Level("1", 4, (700, 700, 600), Oracle.OUE),
    Level("2", 4, (1500, 400, 100)),
)
"""The careful hold other values than the others."""


def everyone_reports(t: int, name: str) -> bool:
    return True


def lives(
    levels: Sequence[Level],
    timestamps: int,
    seed: int,
    heard: Callable[[int, str], bool] = everyone_reports,
    bins: int = 3,
) -> Iterator[tuple[int, Tally, Floats]]:
    """Yield each timestamp, the fleet's tally and its truth; reports that are not `heard` are lost.

    Who reports follows the slots of each level, over changes of epoch.
    """
    rng = np.random.default_rng(seed)
    strata = [level.stratum(str(place)) for place, level in enumerate(levels)]
    selectors = [SlotSelector(sum(level.counts), level.window, rng) for level in levels]
    total = sum(sum(level.counts) for level in levels)
    truth = sum(
        s.shown(np.array(v.counts, float), bins) for s, v in zip(strata, levels, strict=True)
    )
    memory = StrataMemory()
    for t in range(1, timestamps + 1):
        supports = {}
        for stratum, level, selector in zip(strata, levels, selectors, strict=True):
            users = selector.select(t, Ask(1, stratum.epsilon, Purpose.PUBLICATION))
            if heard(t, stratum.name):
                held = CountsSnapshot(np.array(level.counts)).counts_of(users, rng)
                lab = stratum.noise.lab(stratum.epsilon)
                supports[stratum.name] = lab.sample_support(held, rng)
        tally, memory = combine(t, strata, supports, memory, bins)
        yield t, tally, np.asarray(truth / total)


def check(found: Sequence[tuple[Tally, Floats]]) -> None:
    """Check that errors have mean zero, and that the stated variance covers them.

    The noise of each timestamp is new, so that the errors of one label are independent but for what
    lasts, the errors of offsets and sizes, which is a small part here.
    """
    errors = np.array([tally.estimate - truth for tally, truth in found])
    variances = np.array([tally.variance for tally, _ in found])
    labels = errors.shape[1]
    standard = errors.sum(axis=0) / np.sqrt(variances.sum(axis=0))
    assert np.abs(standard).max() < norm.isf(FALSE_ALARM / labels / 2)
    covered = (np.abs(errors) < QUANTILE * np.sqrt(variances)).sum(axis=0)
    assert covered.min() >= binom.ppf(FALSE_ALARM / labels, len(errors), LEVEL)


def test_unbiased_and_covered_though_the_careful_hold_other_values() -> None:
    """From the first timestamp on, and over changes of epoch, in which few devices have a turn."""
    timestamps = 2 * EPOCH_WINDOWS * 4 + 40
    found = [
        (tally, truth) for s in range(8) for _, tally, truth in lives(CORRELATED, timestamps, s)
    ]
    check(found)


def test_weights_that_are_known_from_a_single_count_are_covered() -> None:
    """Where strata are opposites and reports hardly noisy, nothing but the weights can be wrong."""
    opposed = (Level("9", 4, (2_000, 0)), Level("9", 4, (0, 2_000)))
    found = [
        (tally, truth) for s in range(1_500) for _, tally, truth in lives(opposed, 1, s, bins=2)
    ]
    check(found)
    noise = Oracle.GRR.collector(2, Epsilon.of(9)).variance(500, np.array([0.0, 1.0]))
    assert np.mean([(tally.estimate - truth) ** 2 for tally, truth in found]) > 4 * noise.mean()


def test_a_stratum_of_fewer_devices_than_timestamps() -> None:
    """Most of the time it has no report; its devices still count, each as much as any other."""
    levels = (*CORRELATED[1:], Level("1", 40, (0, 0, 30)))
    found = [
        (tally, truth) for s in range(10) for t, tally, truth in lives(levels, 240, s) if t > 80
    ]
    check(found)


@pytest.mark.slow
def test_silence_of_a_stratum_does_not_bias_the_figure() -> None:
    """Left out, its devices would bias a label by 0.19; what is stated grows with its silence."""
    silence = range(21, 29)

    def heard(t: int, name: str) -> bool:
        return name != "0" or t not in silence

    for at in (21, 28):
        found = []
        for seed in range(500):
            life = {t: (tally, truth) for t, tally, truth in lives(CORRELATED, at, seed, heard)}
            found.append(life[at])
        check(found)
    assert life[21][0].variance.mean() < life[28][0].variance.mean()


def test_devices_that_are_gone_stop_counting() -> None:
    """After some windows of silence the figure is that of the devices that are left."""
    life = list(lives(CORRELATED, 200, 1, lambda t, name: name != "0" or t <= 40))
    left = np.sum([level.counts for level in CORRELATED[1:]], axis=0) / 4_000
    tallies = [tally for _, tally, _ in life[120:]]
    error = np.mean([tally.estimate for tally in tallies], axis=0) - left
    spread = np.sqrt(np.mean([tally.variance for tally in tallies], axis=0) / len(tallies))
    assert (np.abs(error) < norm.isf(FALSE_ALARM / 6) * spread).all()


def test_older_labels_are_mapped() -> None:
    """Two old labels became one, one was renamed, and one is new: old devices hold none of it."""
    old = Level("1", 4, (500, 300, 200), Oracle.OUE, to=(0, 0, 1))
    new = Level("1", 4, (400, 300, 300))
    found = [(tally, truth) for s in range(10) for _, tally, truth in lives((old, new), 100, s)]
    assert_allclose(found[0][1], [0.6, 0.25, 0.15])
    check(found)


def test_what_earlier_terms_cannot_say_is_never_averaged_out() -> None:
    """Three fifths of the devices do not know the third label; a filter must not forget that."""
    old, new = (NoiseModel(Oracle.GRR, d, 1, VarianceRule.CORRECTED) for d in (2, 3))
    epsilon = Epsilon.of(3)
    parts = (
        TermsPart(new, epsilon, Support(np.array([100, 100, 200]), 400), 4, None),
        TermsPart(old, epsilon, Support(np.array([300, 300]), 600), 4, (0, 1)),
    )
    stratum = Stratum("", epsilon, 4, MixedNoise(parts, new))
    tally, _ = combine(1, [stratum], {"": Support(np.zeros(0, np.int64), 1000)}, StrataMemory(), 3)
    assert_allclose(tally.lasting, [0, 0, 0.6**2], atol=1e-12)
    assert (tally.variance >= tally.lasting).all()


def test_one_stratum_alone_is_the_fleet() -> None:
    """Its tally is that of the oracle, up to the frequencies at which the variance is taken."""
    level = CORRELATED[2]
    stratum = level.stratum("all")
    support = Support(np.array([300, 100, 100]), 500)
    tally, _ = combine(1, [stratum], {"all": support}, StrataMemory(), 3)
    plain = stratum.noise.among(2_000).tally(stratum.epsilon, support)
    assert_allclose(tally.estimate, plain.estimate)
    assert_allclose(tally.variance, plain.variance)
    assert tally.sampled == pytest.approx(1_500 / 1_999 / 500)


def test_nobody_at_all() -> None:
    strata = [level.stratum(str(place)) for place, level in enumerate(CORRELATED)]
    tally, memory = combine(1, strata, {}, StrataMemory(), 3)
    assert not tally
    tally, _ = combine(2, strata, {"1": Support(np.array([5, 5, 5]), 9)}, memory, 3)
    assert tally.reports == 9


def test_a_saved_memory_goes_on_and_a_timestamp_can_be_replayed() -> None:
    strata = [level.stratum(str(place)) for place, level in enumerate(CORRELATED)]
    rng, memory = np.random.default_rng(1), StrataMemory()
    for t in (1, 2, 3, 7, 8):
        counts = {s.name: rng.integers(0, 40, 3) for s in strata}
        supports = {name: Support(found, int(found.sum())) for name, found in counts.items()}
        saved = StrataMemory.from_json(json.loads(json.dumps(memory.to_json())))
        first, after = combine(t, strata, supports, memory, 3)
        again, _ = combine(t, strata, supports, saved, 3)
        assert first.estimate.tolist() == again.estimate.tolist()
        assert first.variance.tolist() == again.variance.tolist()
        memory = after
    _, fewer = combine(9, strata[:1], {}, memory, 3)
    assert list(fewer.heard) == ["0"]
