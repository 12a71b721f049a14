"""A stream that does not change, and the tallies that a fleet would give of it.

Who answers does not matter here, only how far the answers are off: tallies are drawn as normal
numbers with the mean and the variance that the oracle states. That costs O(bins), whatever the
number of users, and a plan needs thousands of them.
"""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.mean_noise import MeanNoise
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.noise import Noise, NoiseModel
from ldpstream.privacy.epsilon import Epsilon

EVEN_SPREAD = 1 / 12
"""Variance of numbers that are spread evenly over a range of length 1."""


def skewed(labels: int) -> Floats:
    """Return frequencies in proportion to 1/k: a few labels are common and most are rare.

    Even frequencies would flatter a filter, which starts from them.

    >>> skewed(3).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    weights = 1 / np.arange(1, labels + 1)
    frequencies: Floats = weights / weights.sum()
    return frequencies


class StillStream:
    """A stream whose bins stay at `truth`, seen through `noise`."""

    def __init__(self, noise: Noise, truth: Floats) -> None:
        self.noise = noise
        self.truth = truth
        self._variances: dict[tuple[Epsilon, int], Floats] = {}

    @classmethod
    def under(cls, noise: Noise) -> StillStream:
        """Return the stream that plans assume: skewed labels, or numbers spread evenly."""
        if isinstance(noise, MeanNoise):
            return cls(noise, np.array([0.5]))
        return cls(noise, skewed(noise.labels))

    def exact(self, ask: Ask) -> Tally:
        """Return a tally that equals the truth, with the variance that a real one has."""
        return Tally(self.truth, self._variance(ask), ask.users)

    def draw(self, ask: Ask, rng: np.random.Generator) -> Tally:
        return Tally(self.draw_many(ask, 1, rng)[0], self._variance(ask), ask.users)

    def draw_many(self, ask: Ask, copies: int, rng: np.random.Generator) -> Floats:
        """Return the estimates of `copies` tallies, a row for each."""
        bins = len(self.truth)
        errors: Floats = rng.standard_normal((copies, bins)) * np.sqrt(self._variance(ask))
        if self._sums_to_one(ask.epsilon):
            # Less their mean, the errors sum to 0; the factor restores the variance this removes.
            # With few labels this matters: at d = 2 both bins are off by the same amount.
            errors -= errors.mean(axis=1, keepdims=True)
            errors *= np.sqrt(bins / (bins - 1))
        return self.truth + errors

    def _sums_to_one(self, epsilon: Epsilon) -> bool:
        """Return whether the estimates of a tally always sum to 1."""
        noise = self.noise
        return isinstance(noise, NoiseModel) and noise.pure(epsilon).device.supports_equally_many

    def _variance(self, ask: Ask) -> Floats:
        known = self._variances.get((ask.epsilon, ask.users))
        if known is None:
            known = _variance(self.noise, self.truth, ask)
            self._variances[ask.epsilon, ask.users] = known
        return known


def _variance(noise: Noise, truth: Floats, ask: Ask) -> Floats:
    """Return the variance of each bin of a tally: of the noise, and of sampling users."""
    if isinstance(noise, NoiseModel):
        return noise.pure(ask.epsilon).variance(ask.users, truth, noise.population)
    assert isinstance(noise, MeanNoise), "distributions state no variance, so no error is predicted"
    collector = noise.oracle.collector(noise.levels, ask.epsilon)
    mean = float(truth[0])
    return np.array([collector.variance(ask.users, mean, EVEN_SPREAD, noise.population)])
