"""Uniform, Sample, BD and BA: the same four allocations, with noise that the server adds."""

from __future__ import annotations

from typing import cast

import numpy as np

from ldpstream.errors import Mistake, Problem
from ldpstream.lab.central.laplace import Laplace
from ldpstream.mechanisms.absorption import Absorption
from ldpstream.mechanisms.adaptive import Adaptive
from ldpstream.mechanisms.distribution import Distribution
from ldpstream.mechanisms.division import BudgetDivision, Division
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.messages import Release, Tally
from ldpstream.mechanisms.noise import NoiseModel
from ldpstream.mechanisms.queries import HISTOGRAM
from ldpstream.mechanisms.sampling import Sampling
from ldpstream.mechanisms.settings import Settings
from ldpstream.mechanisms.uniform import Uniform
from ldpstream.privacy.epsilon import Epsilon


class TrustedServer(Mechanism):
    """A server that is sent exact histograms, and adds noise to those it publishes."""

    def __init__(self, division: Division, laplace: Laplace) -> None:
        # No report is randomised, so there is no oracle to model; the number of labels is all that
        # is left for a mechanism to read here.
        super().__init__(division, cast("NoiseModel", laplace))
        self.laplace = laplace

    def publish(self, t: int, *tallies: Tally) -> Release:
        """Release c_t + Lap(lambda_{t,2})^d, with the epsilon of this publication's ask."""
        epsilon = Epsilon(self.last_publication.amount)
        values = self.laplace.histogram(tallies[0].estimate, epsilon)
        return Release(t, values, self.laplace.variance(epsilon), fresh=True)


class AdaptiveServer(TrustedServer, Adaptive):
    """A server that publishes when the stream has moved further than a publication's noise."""

    def dissimilarity(self, probe: Tally) -> float:
        """Return the mean of |c_t - r_{t-1}|, plus Lap(lambda_{t,1})."""
        unit = Epsilon(self.unit)
        return self.laplace.distance(probe.estimate, self.state.release.values, unit)

    def error(self, probe: Tally, amount: int) -> float:
        """Return lambda_{t,2}, the mean absolute error of a publication."""
        return self.laplace.scale(Epsilon(amount))


class CentralUniform(TrustedServer, Uniform):
    """Uniform: epsilon/w at every timestamp."""


class CentralSampling(TrustedServer, Sampling):
    """Sample: all of epsilon at one timestamp of w."""


class CentralDistribution(AdaptiveServer, Distribution):
    """BD: each publication takes half of what is left of epsilon/2."""


class CentralAbsorption(AdaptiveServer, Absorption):
    """BA: a publication absorbs unused shares of epsilon/(2w), and as many later ones are void."""


CENTRAL: dict[str, type[TrustedServer]] = {
    "central-uniform": CentralUniform,
    "central-sampling": CentralSampling,
    "central-bd": CentralDistribution,
    "central-ba": CentralAbsorption,
}


def build_central(name: str, settings: Settings, rng: np.random.Generator) -> TrustedServer:
    """Return the reference of that name, at t = 0; its noise comes from `rng`.

    The oracle, the variance rule and pooling are about randomised reports: they do not apply.

    >>> settings = Settings(labels=2, users=1000, epsilon=Epsilon.of(1), window=10)
    >>> next(build_central("central-bd", settings, np.random.default_rng(1)).step(1)).epsilon
    Epsilon(nano=50000000)
    """
    if name not in CENTRAL:
        known = ", ".join(CENTRAL)
        raise Mistake(Problem.MECHANISM_UNKNOWN, given=name, guess="", known=known)
    if settings.query != HISTOGRAM:
        query = f"the query of {name}"
        raise Mistake(Problem.OPTION, option=query, given=settings.query, expected="a histogram")
    division = BudgetDivision(settings.epsilon, settings.users, settings.window)
    return CENTRAL[name](division, Laplace(settings.labels, settings.users, rng))
