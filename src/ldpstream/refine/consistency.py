"""Rules that make an estimate a histogram. Raw estimates are unbiased; these are not."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.errors import Mistake, Problem


class Consistency(StrEnum):
    """A rule for negative frequencies and sums that are not 1 (Wang et al., NDSS 2020)."""

    NONE = "none"
    """Leave the unbiased estimate as it is."""
    CLIP = "clip"
    """Clip each bin to [0, 1]."""
    NORM_SUB = "norm-sub"
    """Take the nearest histogram: shift all bins equally and cut at 0, until the sum is 1."""
    BASE_CUT = "base-cut"
    """Zero every bin that is not two standard errors above 0; leave the others."""

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise Mistake(
            Problem.OPTION, option="consistency", given=value, expected="one of " + ", ".join(cls)
        )


def consistent(values: Floats, variance: Floats, rule: Consistency) -> Floats:
    """Apply a rule to an estimate whose bins have these variances.

    >>> noisy, variance = np.array([0.7, 0.5, -0.1]), np.full(3, 0.01)
    >>> consistent(noisy, variance, Consistency.NORM_SUB).round(2).tolist()
    [0.6, 0.4, 0.0]
    >>> consistent(noisy, variance, Consistency.BASE_CUT).tolist()
    [0.7, 0.5, 0.0]
    """
    match rule:
        case Consistency.NONE:
            return values
        case Consistency.CLIP:
            return np.clip(values, 0.0, 1.0)
        case Consistency.NORM_SUB:
            return nearest_histogram(values)
        case Consistency.BASE_CUT:
            return np.where(values > 2 * np.sqrt(variance), values, 0.0)


def nearest_histogram(values: Floats) -> Floats:
    """Return the Euclidean projection onto the simplex (by sorting: Held, Wolfe, Crowder 1974).

    A single bin is not a histogram and is left alone. Histograms are along the last axis.
    """
    labels = values.shape[-1]
    if labels == 1:
        return values
    descending = np.sort(values, axis=-1)[..., ::-1]
    shifts = (np.cumsum(descending, axis=-1) - 1) / np.arange(1, labels + 1)
    kept = np.sum(descending > shifts, axis=-1, keepdims=True) - 1
    nearest: Floats = np.maximum(values - np.take_along_axis(shifts, kept, axis=-1), 0.0)
    return nearest
