"""Intervals of a stated level around an estimate, where the truth is likely to be."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats

Interval = tuple[Floats, Floats]
"""The lower and the upper ends, bin by bin."""
LEVEL = 0.9
"""The probability with which an interval is meant to cover the truth."""
QUANTILE = 1.6448536269514722
"""The quantile of the standard normal distribution at (1 + LEVEL) / 2."""
NEWTON_STEPS = 4
WEIGHTIEST = 6


def normal_interval(values: Floats, variance: Floats) -> Interval:
    """Return the interval of a normal estimate.

    >>> low, high = normal_interval(np.array([0.5]), np.array([0.01]))
    >>> round(float(low[0]), 3), round(float(high[0]), 3)
    (0.336, 0.664)
    """
    reach = QUANTILE * np.sqrt(variance)
    return values - reach, values + reach


def normal_variance(low: Floats, high: Floats) -> Floats:
    """Return the variance of a normal estimate that has this interval."""
    variance: Floats = ((high - low) / (2 * QUANTILE)) ** 2
    return variance


def hull(one: Interval, other: Interval) -> Interval:
    """Return the least interval that contains both.

    >>> low, high = hull((np.array([0.1]), np.array([0.2])), (np.array([0.15]), np.array([0.3])))
    >>> float(low[0]), float(high[0])
    (0.1, 0.3)
    """
    return np.minimum(one[0], other[0]), np.maximum(one[1], other[1])


def mixture_moments(weights: Floats, means: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the variance of a mixture, with a column for each label."""
    mean = np.sum(weights * means, axis=0)
    return mean, np.sum(weights * (variances + (means - mean) ** 2), axis=0)


def mixture_interval(weights: Floats, means: Floats, variances: Floats) -> Interval:
    """Return the central interval of a mixture of normals, with a column for each label.

    A mixture has heavier tails than a normal of the same variance, so that normal's interval would
    be too wide. The ends are found by Newton's method with bounded steps, on the distribution
    function of the weightiest members.
    """
    weights, means, variances = _weightiest(weights, means, variances)
    centre, variance = mixture_moments(weights, means, variances)
    spread = np.sqrt(variance)
    scales = np.sqrt(variances)
    ends = []
    for side in (-1.0, 1.0):
        goal = (1 + side * LEVEL) / 2
        end = centre + side * QUANTILE * spread
        for _ in range(NEWTON_STEPS):
            distance = (end - means) / scales
            share, density = normal(distance)
            excess = np.sum(weights * share, axis=0) - goal
            slope = np.sum(weights * density / scales, axis=0)
            end = end - np.clip(excess / np.maximum(slope, 1e-300), -spread / 2, spread / 2)
        ends.append(end)
    return ends[0], ends[1]


def widening(variance: Floats, weights: Floats, added: Floats) -> Floats:
    """Return how much wider a normal's interval gets if a variance of several possible is added."""
    total = variance + added
    scales = np.sqrt(total)
    end = QUANTILE * np.sqrt(np.sum(weights * total, axis=0))
    for _ in range(NEWTON_STEPS):
        share, density = normal(end / scales)
        excess = np.sum(weights * share, axis=0) - (1 + LEVEL) / 2
        slope = np.sum(weights * density / scales, axis=0)
        end = end - np.clip(excess / np.maximum(slope, 1e-300), -end / 2, end / 2)
    wider: Floats = end / (QUANTILE * np.sqrt(variance))
    return wider


def _weightiest(weights: Floats, *others: Floats) -> tuple[Floats, ...]:
    """Return the members of most weight at each label, with weights that sum to 1."""
    if len(weights) <= WEIGHTIEST:
        return weights, *others
    chosen = np.argpartition(weights, -WEIGHTIEST, axis=0)[-WEIGHTIEST:]
    places = chosen * weights.shape[1] + np.arange(weights.shape[1])
    kept = np.take(weights, places)
    return kept / kept.sum(axis=0), *(np.take(x, places) for x in others)


def normal(x: Floats) -> tuple[Floats, Floats]:
    """Return the distribution function (to 1e-7; Abramowitz and Stegun 26.2.17) and density."""
    density = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
    t = 1 / (1 + 0.2316419 * np.abs(x))
    series = t * (
        0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429)))
    )
    upper = density * series
    return np.where(x > 0, 1 - upper, upper), density
