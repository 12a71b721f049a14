"""The certainty that a frequency is above a threshold, from a release and its intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.intervals import normal_variance

LEAST_ERROR = 1e-9
"""The least standard error, even for an interval without width."""


@dataclass(frozen=True)
class Belief:
    """An estimate of the truth: labels along the last axis, timestamps, if any, along the first."""

    centre: Floats
    error: Floats
    """Standard errors, moderated."""

    @classmethod
    def of(cls, values: Floats, low: Floats, high: Floats) -> Belief:
        """Make a belief from released values and the ends of their intervals.

        The width of an interval is an estimate, too, and a label whose width came out small would
        seem surer than it is. So half of a label's error variance is its own, and half is the mean
        over all labels: the moderated statistic of SAM (Tusher, Tibshirani and Chu 2001) and limma
        (Smyth 2004), with equal weights. A value outside of its interval was carried over: by now
        the truth is likely to be at that end.

        >>> believed = Belief.of(np.array([0.2, 0.8]), np.array([0.1, 0.7]), np.array([0.3, 0.9]))
        >>> believed.error.round(3).tolist()
        [0.061, 0.061]
        """
        own = normal_variance(low, high)
        pooled = own.mean(axis=-1, keepdims=True)
        error = np.maximum(np.sqrt((own + pooled) / 2), LEAST_ERROR)
        return cls(np.clip(values, low, high), error)

    def above(self, thresholds: Floats | float) -> Floats:
        """Return how many standard errors above its threshold each label is.

        A probability would be rounded to 0 or 1 far from the threshold; this still ranks moments
        that are all but certain.
        """
        errors: Floats = (self.centre - thresholds) / self.error
        return errors
