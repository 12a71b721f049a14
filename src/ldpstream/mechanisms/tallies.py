"""Tallies of many timestamps as arrays, for what is computed of all of them at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Counts, Floats, Indexes
from ldpstream.mechanisms.noise import PureNoise
from ldpstream.oracles.collector_half import sampling
from ldpstream.privacy.epsilon import Epsilon


@dataclass(frozen=True)
class Tallies:
    """One tally for each of some timestamps, in order (`Tally`); without reports it says nothing.

    Their variances are at frequencies that are known from elsewhere (`noise.reweighed`).
    """

    times: Indexes
    reports: Counts
    estimate: Floats
    variance: Floats
    sampled: Floats
    lasting: Floats

    @classmethod
    def of(
        cls,
        times: Indexes,
        counts: Counts,
        reports: Counts,
        known: Floats,
        noise: PureNoise,
        epsilon: Epsilon,
    ) -> Tallies:
        """Return the tallies of counted reports, of which those of a row are one sample."""
        pure, asked, frequencies = noise.pure(epsilon), np.maximum(reports, 1), np.clip(known, 0, 1)
        each = asked[:, None]
        estimate = pure.unbiased(counts / each)
        variance = pure.variance(each, frequencies, noise.population)
        sampled = sampling(asked, noise.population)
        return cls(times, reports, estimate, variance, sampled, np.zeros_like(estimate))
