"""V(epsilon, n): the squared error to expect of a tally of n reports, averaged over the bins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.messages import Release, Tally
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import CollectorHalf, Pure, Support
from ldpstream.privacy.epsilon import Epsilon


class VarianceRule(StrEnum):
    """The formula for V that a mechanism decides by.

    PAPER is the printed formula, for a faithful reproduction. CORRECTED has the mean over the bins
    right and counts the variance of sampling n of N users (paper-corrections.md, 2 and 3): fewer
    needless publications.
    """

    PAPER = "paper"
    CORRECTED = "corrected"

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise Mistake(
            Problem.OPTION, option="the variance rule", given=value, expected=" or ".join(cls)
        )


@dataclass(frozen=True)
class NoiseContext:
    """What a mechanism knows when it asks how far a tally would be off."""

    release: Release
    """The last release."""
    probe: Tally
    """The tally of this timestamp's dissimilarity."""
    epsilon: Epsilon
    """The epsilon that the probe was asked with."""


class ReportSampler(Protocol):
    """The laboratory half of a randomiser."""

    def sample_support(self, truth: Counts, rng: np.random.Generator) -> Support: ...


class Noise(Protocol):
    """What a mechanism and its driver know of the reports to a query: the seam between the two.

    A mechanism sees vectors of `labels` bins, each in [0, 1], whatever is asked for.
    """

    @property
    def oracle(self) -> Oracle | Numeric: ...

    @property
    def labels(self) -> int:
        """The number of bins of a tally and of a raw release."""
        ...

    @property
    def population(self) -> int: ...

    def among(self, population: int) -> Noise:
        """Return the noise of the same reports in a fleet of another size."""
        ...

    def expected(self, epsilon: Epsilon, reports: int, evidence: NoiseContext) -> float:
        """Return V(epsilon, reports): a tally's expected squared error, averaged over its bins."""
        ...

    def bin_variance(self, epsilon: Epsilon, tally: Tally, known: Floats) -> Floats:
        """Return each bin's variance, of noise and sampling, at values known from elsewhere."""
        ...

    def tally(self, epsilon: Epsilon, support: Support) -> Tally:
        """Return the tally of counted reports."""
        ...

    def inputs(self, counts: Counts) -> Counts:
        """Return how many devices randomise each input, given how many users hold each value."""
        ...

    def lab(self, epsilon: Epsilon) -> ReportSampler: ...


def reweighed(tally: Tally, noise: Noise, epsilon: Epsilon, known: Floats) -> Tally:
    """Return a tally with its variance at frequencies that are known from elsewhere.

    Its own variance rests on its own estimate: a bin that came out low by chance would seem more
    certain than it is. That of combined strata is computed so already.
    """
    if tally.sampled is not None:
        return tally
    return replace(tally, variance=noise.bin_variance(epsilon, tally, known))


class PureNoise(ABC):
    """Noise of bins that a report supports with probability p or q."""

    population: int

    @abstractmethod
    def pure(self, epsilon: Epsilon) -> Pure:
        """Return the estimator at this epsilon."""

    def bin_variance(self, epsilon: Epsilon, tally: Tally, known: Floats) -> Floats:
        frequencies = np.clip(known, 0.0, 1.0)
        return self.pure(epsilon).variance(tally.reports, frequencies, self.population)

    def tally(self, epsilon: Epsilon, support: Support) -> Tally:
        return Tally.of(self.pure(epsilon), support, self.population)


@dataclass(frozen=True)
class NoiseModel(PureNoise):
    """The noise of one oracle in one fleet.

    >>> model = NoiseModel(Oracle.GRR, labels=2, population=200_000, rule=VarianceRule.PAPER)
    >>> f"{model.variance(Epsilon.of(1), 5000, concentration=1.0):.3e}"
    '1.841e-04'
    """

    oracle: Oracle
    labels: int
    population: int
    rule: VarianceRule

    def among(self, population: int) -> NoiseModel:
        return replace(self, population=population)

    def variance(self, epsilon: Epsilon, reports: int, concentration: float) -> float:
        """Return V for a histogram whose squared frequencies sum to `concentration`."""
        collector = self.pure(epsilon)
        if self.rule is VarianceRule.PAPER:
            return collector.paper_variance(reports)
        return collector.mean_variance(reports, self.population, concentration)

    def expected(self, epsilon: Epsilon, reports: int, evidence: NoiseContext) -> float:
        """Return V at the last release's sum of squared frequencies, with its noise taken out."""
        squares = sum_of_squares(evidence.release)
        return self.variance(epsilon, reports, min(max(squares, 1 / self.labels), 1.0))

    def pure(self, epsilon: Epsilon) -> CollectorHalf:
        return self.oracle.collector(self.labels, epsilon)

    def inputs(self, counts: Counts) -> Counts:
        return counts

    def lab(self, epsilon: Epsilon) -> ReportSampler:
        return self.oracle.lab(self.labels, epsilon)


def sum_of_squares(release: Release) -> float:
    """Return an unbiased estimate of the sum of squares of what a release estimates."""
    return float(np.sum(release.values**2 - release.variance))
