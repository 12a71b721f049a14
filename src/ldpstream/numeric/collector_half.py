"""The collector half of every randomiser of numbers: many reports -> an unbiased mean."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Bytes, Floats
from ldpstream.errors import LdpStreamError, Problem
from ldpstream.numeric.device_half import NumericDevice
from ldpstream.oracles.collector_half import (
    Reader,
    Reports,
    Support,
    check_all_below,
    little_endian,
    sampling,
)

LEAST_TELLING = 1e-6
"""Reports whose variance depends less than this on how far values spread do not tell it."""


class NumericCollector(Reader):
    """Decoding, counting and estimation for the reports of one device half.

    What is kept of a round is how often each output occurred: a `Support` over outputs, which adds
    up as any other. Means and variances are in units of the range, from 0 for low to 1 for high.
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
        """What each output is read as."""

    def support(self, reports: Reports) -> Support:
        """Count each output."""
        return Support(np.bincount(reports, minlength=self.device.outputs), len(reports))

    def estimate(self, support: Support) -> Floats:
        """The unbiased mean, as an array of one: not clipped."""
        if support.reports == 0:
            raise LdpStreamError(Problem.NO_REPORTS)
        return np.array([support.counts @ self.numbers / support.reports])

    def spread(self, support: Support) -> float:
        """The variance of the true values among users, as far as reports tell it.

        A number read has variance spread + base + bend * mean of u(1-u), and what it has in excess
        of noise is spread. Where reports do not tell, 0: that overstates the noise, never the
        other way.
        """
        mean = float(self.estimate(support)[0])
        scatter = float(support.counts @ (self.numbers - mean) ** 2) / support.reports
        return self._spread_behind(scatter, mean, told=1 - self.bend)

    def variance(
        self, reports: int, mean: float, spread: float, population: int | None = None
    ) -> float:
        """Variance of an estimate from `reports` reports when values have this mean and spread.

        The randomiser's noise, (base + bend * (mean (1-mean) - spread)) / n; with `population`,
        plus that of drawing n of N users without replacement, spread/n * (N-n)/(N-1).
        """
        noise = (self.base + self.bend * (mean * (1 - mean) - spread)) / reports
        if population is None:
            return noise
        return noise + sampling(reports, population) * spread

    def spread_within(self, variance: float, reports: int, mean: float, population: int) -> float:
        """The spread that an estimate's `variance` was computed with: the inverse of that."""
        told = sampling(reports, population) * reports - self.bend
        return self._spread_behind(variance * reports, mean, told)

    def worst_variance(self, reports: int) -> float:
        """The randomiser's noise if all values were the worst: V(epsilon, n) of the literature."""
        return float(self.device.worst_noise) / reports

    def _spread_behind(self, scatter: float, mean: float, told: float) -> float:
        """The spread s, within its bounds, with base + bend * mean(1-mean) + told * s = scatter."""
        mean = min(max(mean, 0.0), 1.0)
        most = mean * (1 - mean)
        if told < LEAST_TELLING:
            return 0.0
        return min(max((scatter - self.base - self.bend * most) / told, 0.0), most)

    def _unpack(self, payloads: Bytes) -> Reports:
        reports = little_endian(payloads)
        check_all_below("output", reports, self.device.outputs)
        return reports
