"""A random walk that is sampled now and then: what FAST and RescueDP have in common.

A sample corrects the prediction as a Kalman filter does, and how far off the prediction was decides
when the next one is taken. Between samples the prediction is released.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from ldpstream.arrays import Floats
from ldpstream.mechanisms.mechanism import Mechanism, Step
from ldpstream.mechanisms.messages import Release, Tally


@dataclass(frozen=True)
class Memory:
    """What every sampler remembers."""

    interval: float = 1.0
    """Timestamps until the next sample."""
    noise: float = 0.0
    """The mean variance of the last sample."""


class AdaptiveSampler(Mechanism):
    """A mechanism that chooses its sampling interval; `parameters.drift` is that of the walk."""

    def first_memory(self) -> Any:
        return Memory()

    def decide(self, t: int) -> Step:
        elapsed = t - self.last_publication.t
        predicted = drifted(self.state.release, self.parameters.drift * self.memory.noise, t)
        amount = self.amount_at(t)
        waits = self.publications and elapsed < self.memory.interval
        if waits or amount < 1:
            return predicted
        tally = yield self.ask_publication(t, amount)
        if not tally:
            return predicted
        release = corrected(predicted, *self.measured(tally, predicted), t)
        noise = float(tally.variance.mean())
        self.memory = self.controlled(release.values - predicted.values, noise, elapsed)
        return release

    @abstractmethod
    def amount_at(self, t: int) -> int:
        """Return the units that a sample may take at t; 0 if there can be none."""

    def measured(self, tally: Tally, predicted: Release) -> tuple[Floats, Floats]:
        """Return the values of a sample, and their variances."""
        return tally.estimate, tally.variance

    @abstractmethod
    def controlled(self, change: Floats, noise: float, elapsed: int) -> Any:
        """Return the memory after a sample that changed the prediction by this much."""

    def possible(self, interval: float) -> float:
        """Return the nearest interval between one timestamp and a window."""
        return min(max(interval, 1.0), float(self.window))


def corrected(prior: Release, measured: Floats, variance: Floats, t: int) -> Release:
    """Return the release after a measurement with this variance.

    >>> import numpy as np
    >>> prior = Release(1, np.array([0.2]), np.array([1e-4]), fresh=True)
    >>> corrected(prior, np.array([0.4]), np.array([3e-4]), 2).values.round(3).tolist()
    [0.25]
    """
    gain = prior.variance / (prior.variance + variance)
    values = prior.values + gain * (measured - prior.values)
    return Release(t, values, gain * variance, fresh=True)


def drifted(release: Release, drift: float, t: int) -> Release:
    """Return the prediction for t: the same values, and each variance larger by `drift`."""
    return replace(release, t=t, variance=release.variance + drift, fresh=False)
