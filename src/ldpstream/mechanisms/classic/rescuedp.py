"""RescueDP: adaptive sampling and budgets, and small bins are measured together.

Wang et al., "RescueDP: Real-time Spatio-temporal Crowd-sourced Data Publishing with Differential
Privacy", INFOCOM 2016. The constants are those of a public benchmark (VLDB 2023), which takes the
process noise from the true stream; here it is a share of a sample's noise, since nobody knows more.

Assumed: a report tells of all bins, so that they are sampled together; bins are alike if their last
values were below the noise of a sample, which is also the reference error lambda_r.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p
from typing import ClassVar

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.classic.sampler import AdaptiveSampler, Memory
from ldpstream.mechanisms.messages import Release, Tally


class RescueDp(AdaptiveSampler):
    """A sample takes a share of what is left of the window, the larger the longer none was made."""

    @dataclass(frozen=True)
    class Parameters:
        """The constants of RescueDP."""

        theta: float = 10.0
        """How strongly the interval follows the error, in timestamps."""
        share: float = 0.2
        """A sample takes share * ln(interval + 1) of what is left of the window,"""
        most_left: float = 0.6
        """at most this share of what is left,"""
        most: float = 0.2
        """and at most this share of the whole."""
        drift: float = 0.1
        """The variance of a step of the walk, in units of a sample's."""

    parameters: Parameters
    default_parameters: ClassVar[Parameters] = Parameters()

    def amount_at(self, t: int) -> int:
        constants, total = self.parameters, self.division.total
        left = total - self.spent_before(t)
        share = min(constants.share * log1p(self.memory.interval), constants.most_left, 1.0)
        return min(int(share * left), int(min(constants.most, 1.0) * total))

    def measured(self, tally: Tally, predicted: Release) -> tuple[Floats, Floats]:
        if not self.memory.noise:  # nothing is known yet
            return tally.estimate, tally.variance
        return grouped(tally, predicted.values, float(tally.variance.mean()) ** 0.5)

    def controlled(self, change: Floats, noise: float, elapsed: int) -> Memory:
        error = float(np.mean(change**2))
        interval = self.memory.interval + self.parameters.theta * (1 - error / max(noise, 1e-12))
        return Memory(self.possible(interval), noise)


def grouped(tally: Tally, known: Floats, width: float) -> tuple[Floats, Floats]:
    """Return a tally in which the small bins have their mean, and its variance.

    A bin is small if it was below `width`, the noise of a sample, and is now below 4 `width`.

    >>> tally = Tally(np.array([0.1, 0.2, 0.7]), np.full(3, 0.01), reports=9)
    >>> values, variance = grouped(tally, np.array([0.05, 0.02, 0.93]), width=0.1)
    >>> values.round(2).tolist(), variance.round(3).tolist()
    ([0.15, 0.15, 0.7], [0.005, 0.005, 0.01])
    """
    small = (known < width) & (tally.estimate < 4 * width)
    values, variance = tally.estimate.copy(), tally.variance.copy()
    if small.any():
        values[small] = values[small].mean()
        variance[small] = variance[small].mean() / small.sum()
    return values, variance
