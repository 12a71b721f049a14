"""A random walk that is measured now and then: the filter that FAST and RescueDP share."""

from __future__ import annotations

from dataclasses import replace

from ldpstream.arrays import Floats
from ldpstream.mechanisms.messages import Release


def corrected(prior: Release, measured: Floats, variance: Floats, t: int) -> Release:
    """Return the release after a measurement with this variance.

    >>> import numpy as np
    >>> prior = Release(1, np.array([0.2]), np.array([1e-4]), fresh=True)
    >>> corrected(prior, np.array([0.4]), np.array([3e-4]), 2).values.round(3).tolist()
    [0.25]
    """
    gain = prior.variance / (prior.variance + variance)
    values = prior.values + gain * (measured - prior.values)
    return Release(t, values, gain * variance, fresh=True)


def drifted(release: Release, drift: float, t: int) -> Release:
    """Return the prediction for t: the same values, and each variance larger by `drift`."""
    return replace(release, t=t, variance=release.variance + drift, fresh=False)
