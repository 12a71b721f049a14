from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.mechanisms.messages import Tally
from ldpstream.mechanisms.noise import NoiseContext, ReportSampler, VarianceRule
from ldpstream.numeric import Numeric
from ldpstream.numeric.collector_half import NumericCollector
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon


@dataclass(frozen=True)
class MeanNoise:
    """The noise of a mean, in units of the range: one bin, from 0 for low to 1 for high.

    PAPER counts the randomiser's noise only, at the worst value. CORRECTED counts it at the mean
    and spread that the probe shows, and the variance of sampling n of N users.
    """

    oracle: Numeric
    levels: int
    population: int
    rule: VarianceRule
    labels: int = 1

    def among(self, population: int) -> MeanNoise:
        return replace(self, population=population)

    def expected(self, epsilon: Epsilon, reports: int, evidence: NoiseContext) -> float:
        collector = self._collector(epsilon)
        if self.rule is VarianceRule.PAPER:
            return collector.worst_variance(reports)
        mean = _inside(evidence.probe.estimate)
        spread = self._collector(evidence.epsilon).spread_within(
            float(evidence.probe.variance[0]), evidence.probe.reports, mean, self.population
        )
        return collector.variance(reports, mean, spread, self.population)

    def bin_variance(self, epsilon: Epsilon, tally: Tally, known: Floats) -> Floats:
        """Return the tally's variance: it depends on the scatter of reports, hardly on the mean."""
        return tally.variance

    def tally(self, epsilon: Epsilon, support: Support) -> Tally:
        if support.reports == 0:
            return Tally.empty(self.labels)
        collector = self._collector(epsilon)
        estimate, spread = collector.estimate(support), collector.spread(support)
        variance = collector.variance(support.reports, _inside(estimate), spread, self.population)
        return Tally(estimate, np.array([variance]), support.reports)

    def inputs(self, counts: Counts) -> Counts:
        return counts

    def lab(self, epsilon: Epsilon) -> ReportSampler:
        return self.oracle.lab(self.levels, epsilon)

    def _collector(self, epsilon: Epsilon) -> NumericCollector:
        return self.oracle.collector(self.levels, epsilon)


def _inside(estimate: Floats) -> float:
    """Return the mean, clipped to the range."""
    return float(np.clip(estimate[0], 0.0, 1.0))
