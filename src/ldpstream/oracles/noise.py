"""The variance of a pure oracle, from its two probabilities alone."""

from __future__ import annotations

from fractions import Fraction


def mean_noise(p: Fraction, q: Fraction, labels: int) -> float:
    """Return the variance of an estimate from one report, averaged over the bins; n have 1/n of it.

    It is q(1-q)/(p-q)^2 + f(1-p-q)/(p-q) (Wang et al., USENIX Security 2017) at f = 1/labels.

    >>> mean_noise(Fraction(3, 4), Fraction(1, 4), labels=2)
    0.75
    """
    gain = p - q
    return float(q * (1 - q) / gain**2 + (1 - p - q) / (gain * labels))
