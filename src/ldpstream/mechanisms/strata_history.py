"""Strata of many timestamps, combined at once: `strata.combine`, as a compiled kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldpstream.arrays import Counts, Indexes
from ldpstream.mechanisms.noise import PureNoise
from ldpstream.mechanisms.strata import Stratum
from ldpstream.mechanisms.strata_kernels import combined
from ldpstream.mechanisms.tallies import Tallies
from ldpstream.protocol.slots import turn_share


def combine_all(
    times: Indexes, strata: Sequence[Stratum], counts: Counts, reports: Counts
) -> Tallies:
    """Return the tallies of a fleet of which nothing was known before, in order of time.

    The reports of each stratum, whose labels are those of the fleet, are read by a pure oracle.
    `counts` and `reports` are by timestamp and stratum.
    """
    windows = np.array([one.window for one in strata])
    turns = np.array([[turn_share(one.window, t) for one in strata] for t in times.tolist()])
    readings = np.array([_reading(one) for one in strata])
    estimate, variance, lasting, sampled = combined(
        times, counts, reports, windows, turns, readings
    )
    return Tallies(times, reports.sum(axis=1), estimate, variance, sampled, lasting)


def _reading(stratum: Stratum) -> list[float]:
    """Return how a stratum's reports are read: q, p - q, and variance = (base + f slope) / n."""
    assert isinstance(stratum.noise, PureNoise)
    pure = stratum.noise.pure(stratum.epsilon)
    base, top = pure.variance(1, np.array([0.0, 1.0]))
    return [pure.q, pure.p - pure.q, base, top - base]
