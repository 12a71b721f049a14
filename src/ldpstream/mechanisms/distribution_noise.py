from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.mechanisms.messages import Release, Tally
from ldpstream.mechanisms.noise import NoiseContext, ReportSampler
from ldpstream.numeric import Numeric
from ldpstream.numeric.square_wave.device import Device
from ldpstream.numeric.square_wave.lab import Lab
from ldpstream.numeric.square_wave.readings import Readings
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine.density import Density, Instrument, IntervalEstimates

COARSEST = 64
"""Cells of a fitted density, or a few more."""
LEAST_VARIANCE = 1e-12
"""A variance below that of any fleet, in place of 0."""


@dataclass(frozen=True)
class DistributionNoise:
    """The noise of the square wave's readings, which a mechanism follows for a distribution.

    A bin is a cosine of the cover, or the mean (`Readings`): unbiased, with a known variance, which
    no estimate of a density is. So mechanisms compare and filter readings, and a density is fitted
    to what they release only where it is shown. All reports of a stream have one `width`, whatever
    their epsilon.
    """

    oracle: Numeric
    levels: int
    """The levels that numbers are rounded to; several of them may be one input of the wave."""
    cells: int
    """The inputs of the wave."""
    width: int
    epsilon: Epsilon
    """The epsilon of an even share."""
    population: int

    @property
    def labels(self) -> int:
        return self._readings(self.epsilon).count

    def among(self, population: int) -> DistributionNoise:
        return replace(self, population=population)

    def expected(self, epsilon: Epsilon, reports: int, evidence: NoiseContext) -> float:
        """Return V for outputs that are even, as they nearly are whatever the values."""
        return self._readings(epsilon).even_variance / reports

    def bin_variance(self, epsilon: Epsilon, tally: Tally, known: Floats) -> Floats:
        """Return the tally's variance: it depends on the scatter of reports, hardly on means."""
        return tally.variance

    def tally(self, epsilon: Epsilon, support: Support) -> Tally:
        if support.reports == 0:
            return Tally.empty(self.labels)
        return Tally(*self._readings(epsilon).estimate(support), support.reports)

    def inputs(self, counts: Counts) -> Counts:
        return merged(counts, self.cells)

    def lab(self, epsilon: Epsilon) -> ReportSampler:
        return Lab(self._readings(epsilon).device)

    def density(self, release: Release, bins: int) -> Density:
        """Return the density that explains the readings of a release, in cells that fit `bins`."""
        cells = self.cells
        while cells >= 2 * COARSEST and cells % (2 * bins) == 0:
            cells //= 2
        instrument = _instrument(self.cells, self.width, self.epsilon, cells)
        variance = np.maximum(release.variance[:-1], LEAST_VARIANCE)
        return Density.of(instrument, release.values[:-1], variance)

    def mean(self, release: Release) -> IntervalEstimates:
        """Return the mean of a release, as a fraction of the range that all cells cover."""
        low, high = release.interval
        means = (np.clip(part[-1:], 0.0, 1.0) for part in (release.values, low, high))
        return IntervalEstimates(*((mean * (self.cells - 1) + 0.5) / self.cells for mean in means))

    def _readings(self, epsilon: Epsilon) -> Readings:
        return _readings(self.cells, self.width, epsilon)


@lru_cache(maxsize=1024)
def _readings(cells: int, width: int, epsilon: Epsilon) -> Readings:
    return Readings(Device(cells, epsilon, width))


@lru_cache(maxsize=64)
def _instrument(inputs: int, width: int, epsilon: Epsilon, cells: int) -> Instrument:
    """Return the readings of a cosine, by cells that each have equally many inputs of the wave."""
    readings = _readings(inputs, width, epsilon)
    means, products = readings.means, readings.products
    return Instrument(
        means.reshape(len(means), cells, -1).mean(axis=2),
        products.reshape(*products.shape[:2], cells, -1).mean(axis=3),
    )


def merged(counts: Counts, parts: int) -> Counts:
    """Return the counts of `parts` runs of neighbouring values, as equal in length as possible.

    >>> merged(np.array([1, 2, 3, 4, 5]), 2).tolist()
    [6, 9]
    """
    starts = -(-np.arange(parts) * len(counts) // parts)
    return np.add.reduceat(counts, starts)
