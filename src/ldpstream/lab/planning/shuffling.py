"""The central promise that a round would have behind a shuffler, for comparison.

Reports that nobody can link to a device hide among each other. Feldman, McMillan and Talwar (FOCS
2021, theorem 3.2): with n reports that are e0-LDP, telling two values of one device apart is no
easier than telling (A + D, C - A + 1 - D) from (A + 1 - D, C - A + D), where C is binomial with
n - 1 draws at e^-e0, A binomial with C draws at 1/2, and D a coin with odds e^e0 to 1.

The hockey-stick divergence of the two is computed here, not bounded: it falls with C, since one
more clone is noise that is added to both. So C may be replaced by a value that it falls short of
with probability delta/10, which is paid for.

Ours is a bound for a round of a system with a shuffler. A report of this one carries its device's
number, so nobody is promised any of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, floor, lgamma, log, log1p, sqrt

import numpy as np

from ldpstream.arrays import Floats

DELTA = 1e-6
SPREAD = 40.0
"""Standard deviations on either side of its mean beyond which a binomial has no weight here."""
STEPS = 60
"""Halvings of the interval in which epsilon is looked for."""


@dataclass(frozen=True)
class Binomial:
    """The distribution of the number of heads, near its mean."""

    first: int
    weights: Floats

    @classmethod
    def of(cls, draws: int, chance: float) -> Binomial:
        mean, sd = draws * chance, sqrt(draws * chance * (1 - chance))
        first = max(0, floor(mean - SPREAD * sd - 1))
        last = min(draws, ceil(mean + SPREAD * sd + 1))
        heads = np.arange(first, last, dtype=np.float64)
        steps = np.log(draws - heads) - np.log(heads + 1) + log(chance) - log1p(-chance)
        start = lgamma(draws + 1) - lgamma(first + 1) - lgamma(draws - first + 1)
        start += first * log(chance) + (draws - first) * log1p(-chance)
        return cls(first, np.exp(start + np.concatenate([[0.0], np.cumsum(steps)])))

    def least(self, chance: float) -> int:
        """Return the largest number that it falls short of with at most this probability."""
        return self.first + int(np.searchsorted(np.cumsum(self.weights), chance))


def central_epsilon(local: float, reports: int, delta: float = DELTA) -> float:
    """Return the epsilon of the central (epsilon, delta)-DP of a shuffled round of n reports.

    It is never more than the local one.

    >>> [round(central_epsilon(e0, 10_000), 3) for e0 in (1.0, 2.0)]
    [0.055, 0.168]
    >>> central_epsilon(1.0, reports=1)
    1.0
    """
    if reports < 2:
        return local
    clones = Binomial.of(reports - 1, exp(-local)).least(delta / 10)
    if clones < 1:
        return local
    return _least(Binomial.of(clones, 0.5), local, 0.9 * delta)


def shown_epsilon(local: float, reports: int, delta: float = DELTA) -> float:
    """Return a lower bound on the central epsilon of a shuffled round of binary reports.

    Two rounds are compared in which all others hold one label, and one device holds either. What
    is left of their reports is the number of the other label.

    >>> round(shown_epsilon(1.0, 10_000), 3)
    0.035
    """
    others = Binomial.of(reports - 1, 1 / (1 + exp(local)))
    return _least(others, local, delta)


def _least(heads: Binomial, local: float, delta: float) -> float:
    """Return the least epsilon at which the divergence is at most delta."""
    low, high = 0.0, local
    for _ in range(STEPS):
        middle = (low + high) / 2
        if _divergence(heads, local, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _divergence(heads: Binomial, local: float, epsilon: float) -> float:
    """Return the sum of max(0, P - e^epsilon Q): `heads` and one more coin, with either bias."""
    odds = 1 / (1 + exp(-local))
    more = np.append(0.0, heads.weights)  # A + 1
    same = np.append(heads.weights, 0.0)  # A
    one, other = odds * more + (1 - odds) * same, (1 - odds) * more + odds * same
    return float(np.maximum(one - exp(epsilon) * other, 0.0).sum())


@dataclass(frozen=True)
class Shuffled:
    """What a round would promise centrally if a shuffler stood before the collector."""

    local: float
    reports: int
    delta: float = DELTA

    @property
    def epsilon(self) -> float:
        return central_epsilon(self.local, self.reports, self.delta)

    @property
    def at_least(self) -> float:
        """A lower bound on the epsilon of binary reports, which shows how tight `epsilon` is."""
        return shown_epsilon(self.local, self.reports, self.delta)

    def row(self) -> dict[str, float]:
        return {"epsilon": self.epsilon, "delta": self.delta, "reports": self.reports}

    def sentence(self) -> str:
        return (
            f"If a shuffler made the {self.reports:,} reports of a round unlinkable, it would be "
            f"({self.epsilon:.3g}, {self.delta:g})-DP to whoever reads them; here they carry "
            "their devices' numbers, so that nobody is promised this."
        )
