from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.mechanisms.noise import (
    Evidence,
    PureNoise,
    Sampler,
    VarianceRule,
    sum_of_squares,
)
from ldpstream.numeric import Numeric
from ldpstream.numeric.square_wave.collector import Collector
from ldpstream.numeric.square_wave.device import Device
from ldpstream.numeric.square_wave.lab import Lab
from ldpstream.oracles.collector_half import Pure, sampling
from ldpstream.privacy.epsilon import Epsilon


@dataclass(frozen=True)
class CoverNoise(PureNoise):
    """The noise of a square wave's cover, which a mechanism follows for a distribution query.

    A bin is an output of the wave; its value is the share of users whose band covers it. That is
    unbiased with a known variance, unlike a reconstructed distribution, so mechanisms compare and
    filter covers; only what is shown is reconstructed. All reports of a stream have one
    `width`, whatever their epsilon.
    """

    oracle: Numeric
    cells: int
    width: int
    epsilon: Epsilon
    """The epsilon of an even share: covers are read as reports of this epsilon."""
    population: int
    rule: VarianceRule

    @property
    def labels(self) -> int:
        return self.cells - 1 + self.width

    def among(self, population: int) -> CoverNoise:
        return replace(self, population=population)

    def expected(self, epsilon: Epsilon, reports: int, evidence: Evidence) -> float:
        """Return V at the covers of the last release less their noise; covers sum to `width`."""
        estimator = self.pure(epsilon)
        if self.rule is VarianceRule.PAPER:
            return estimator.paper_variance(reports)
        mean = self.width / self.labels
        square = min(max(sum_of_squares(evidence.release) / self.labels, mean**2), mean)
        noise = float(estimator.variance(reports, np.array([mean]))[0])
        return noise + sampling(reports, self.population) * (mean - square)

    def pure(self, epsilon: Epsilon) -> Pure:
        return _collector(self.cells, self.width, epsilon).cover

    def inputs(self, counts: Counts) -> Counts:
        return merged(counts, self.cells)

    def lab(self, epsilon: Epsilon) -> Sampler:
        return Lab(_collector(self.cells, self.width, epsilon).device)

    def distribution(self, cover: Floats, bins: int) -> Floats:
        """Return the shares of `bins` bins that explain a cover best."""
        cells = _collector(self.cells, self.width, self.epsilon).reconstruct(cover)
        shares: Floats = cells.reshape(bins, -1).sum(axis=1)
        return shares


@lru_cache(maxsize=1024)
def _collector(cells: int, width: int, epsilon: Epsilon) -> Collector:
    return Collector(Device(cells, epsilon, width))


def merged(counts: Counts, parts: int) -> Counts:
    """Return the counts of `parts` runs of neighbouring values, as equal in length as possible.

    >>> merged(np.array([1, 2, 3, 4, 5]), 2).tolist()
    [6, 9]
    """
    starts = -(-np.arange(parts) * len(counts) // parts)
    return np.add.reduceat(counts, starts)
