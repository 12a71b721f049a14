"""The collector half of every randomiser of numbers: from many reports to an unbiased mean."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Bytes, Floats
from ldpstream.errors import LdpStreamError, Problem
from ldpstream.numeric.device_half import NumericDevice
from ldpstream.oracles.collector_half import (
    ReportReader,
    Reports,
    Support,
    check_all_below,
    little_endian,
    sampling,
)

LEAST_TELLING = 1e-6
"""The spread of values is not estimated if the variance of reports depends on it less than this."""


class NumericCollector(ReportReader):
    """The decoder, counter and estimator for the reports of one device half.

    What is kept of a round is how often each output occurred: a `Support` over outputs, which adds
    up like any other. Means and variances are in units of the range, from 0 for low to 1 for high.
    """

    def __init__(self, device: NumericDevice) -> None:
        super().__init__(device.report_bytes, device.outputs)
        self.device = device
        self.base = float(device.base)
        self.bend = float(device.bend)
        self.numbers = np.concatenate(
            [
                (np.arange(scale.outputs) - float(scale.zero)) / float(scale.unit)
                for scale in device.scales
            ]
        )
        """The number that each output stands for."""

    def support(self, reports: Reports) -> Support:
        """Count each output."""
        return Support(np.bincount(reports, minlength=self.device.outputs), len(reports))

    def estimate(self, support: Support) -> Floats:
        """Return the unbiased mean, as an array of one number, not clipped."""
        if support.reports == 0:
            raise LdpStreamError(Problem.NO_REPORTS)
        return np.array([support.counts @ self.numbers / support.reports])

    def spread(self, support: Support) -> float:
        """Return the variance of the true values among users, as far as reports reveal it.

        The numbers have variance spread + base + bend * mean of u(1-u): what exceeds the noise is
        spread. It is 0 where reports do not reveal it: that can only overstate the noise.
        """
        mean = float(self.estimate(support)[0])
        scatter = float(support.counts @ (self.numbers - mean) ** 2) / support.reports
        return self._spread_behind(scatter, mean, told=1 - self.bend)

    def variance(
        self, reports: int, mean: float, spread: float, population: int | None = None
    ) -> float:
        """Return the variance of an estimate from `reports` reports, at this mean and spread.

        It is the randomiser's, (base + bend * (mean (1-mean) - spread)) / n; with `population`,
        plus that of drawing n of N users without replacement, spread/n * (N-n)/(N-1).
        """
        noise = (self.base + self.bend * (mean * (1 - mean) - spread)) / reports
        if population is None:
            return noise
        return noise + sampling(reports, population) * spread

    def spread_within(self, variance: float, reports: int, mean: float, population: int) -> float:
        """Return the spread that a `variance` was computed with: the inverse of that method."""
        told = sampling(reports, population) * reports - self.bend
        return self._spread_behind(variance * reports, mean, told)

    def worst_variance(self, reports: int) -> float:
        """Return the variance if all values were the worst one: the literature's V(epsilon, n)."""
        return float(self.device.worst_noise) / reports

    def _spread_behind(self, scatter: float, mean: float, told: float) -> float:
        """Solve base + bend * mean(1-mean) + told * s = scatter for the spread s, in its bounds."""
        mean = min(max(mean, 0.0), 1.0)
        most = mean * (1 - mean)
        if told < LEAST_TELLING:
            return 0.0
        return min(max((scatter - self.base - self.bend * most) / told, 0.0), most)

    def _unpack(self, payloads: Bytes) -> Reports:
        reports = little_endian(payloads)
        check_all_below("output", reports, self.device.outputs)
        return reports
