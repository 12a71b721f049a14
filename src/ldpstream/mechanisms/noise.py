"""V(epsilon, n): the squared error to expect of a tally of n reports, averaged over the bins."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from ldpstream.errors import Mistake, Problem
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon

Floats = NDArray[np.float64]


class VarianceRule(StrEnum):
    """Which V a mechanism decides by.

    PAPER is the printed formula, for a faithful reproduction. CORRECTED has the mean over the bins
    right and counts the variance of sampling n of N users (NOTES, corrections 2 and 3): fewer
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
class NoiseModel:
    """V for one oracle and one fleet.

    >>> model = NoiseModel(Oracle.GRR, labels=2, population=200_000, rule=VarianceRule.PAPER)
    >>> f"{model.variance(Epsilon.of(1), 5000, concentration=1.0):.3e}"
    '1.841e-04'
    """

    oracle: Oracle
    labels: int
    population: int
    rule: VarianceRule

    def variance(self, epsilon: Epsilon, reports: int, concentration: float) -> float:
        """V(epsilon, reports) for a histogram whose squared frequencies sum to `concentration`."""
        collector = self.oracle.collector(self.labels, epsilon)
        if self.rule is VarianceRule.PAPER:
            return collector.paper_variance(reports)
        return collector.mean_variance(reports, self.population, concentration)

    def bin_variance(self, epsilon: Epsilon, reports: int, known: Floats) -> Floats:
        """Variance of each bin, noise and sampling, at frequencies known from elsewhere."""
        collector = self.oracle.collector(self.labels, epsilon)
        return collector.variance(reports, np.clip(known, 0.0, 1.0), self.population)
