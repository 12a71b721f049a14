"""Laplace noise for a histogram of frequencies, and for its distance from another one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.privacy.epsilon import Epsilon

LAPLACE = "laplace"
"""The name that results show in place of an oracle's."""


@dataclass(frozen=True)
class Laplace:
    """The trusted server's noise.

    Neighbours, as in the local model: two fleets of the same N users of whom *one holds another
    value*. (Kellaris et al. add or remove a user, which changes one bin only.) Such a change takes
    1/N from one bin of the frequencies and adds it to another: it moves the histogram by 2/N in the
    L1 norm and, by the triangle inequality, its mean absolute distance over d bins from a known
    histogram by at most 2/(N d). The scale of the noise is that sensitivity over epsilon.

    >>> noise = Laplace(labels=2, users=1000, rng=np.random.default_rng(1))
    >>> noise.scale(Epsilon.of(1)), noise.distance_scale(Epsilon.of(1))
    (0.002, 0.001)
    """

    labels: int
    users: int
    rng: np.random.Generator = field(repr=False, compare=False)

    def scale(self, epsilon: Epsilon) -> float:
        """Return the scale of the noise in each bin, which is also its mean absolute error."""
        return 2 / (self.users * float(epsilon))

    def distance_scale(self, epsilon: Epsilon) -> float:
        return self.scale(epsilon) / self.labels

    def variance(self, epsilon: Epsilon) -> Floats:
        return np.full(self.labels, 2 * self.scale(epsilon) ** 2)

    def histogram(self, exact: Floats, epsilon: Epsilon) -> Floats:
        """Return `exact` with noise in every bin, which is epsilon-DP."""
        return exact + self.rng.laplace(0, self.scale(epsilon), self.labels)

    def distance(self, exact: Floats, known: Floats, epsilon: Epsilon) -> float:
        """Return the mean of |exact - known| with noise: epsilon-DP, and perhaps negative."""
        distance = float(np.mean(np.abs(exact - known)))
        return distance + float(self.rng.laplace(0, self.distance_scale(epsilon)))
