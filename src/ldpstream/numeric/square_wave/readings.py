"""Linear readings of the square wave's reports: what a filter can follow of a distribution."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.numeric.band_device import BandDevice
from ldpstream.numeric.collector_half import NumericCollector
from ldpstream.oracles.collector_half import Support

FREQUENCIES = 24
"""Cosines that are read, at most: finer structure drowns in the noise of any fleet."""
LEAST_SEEN = 1e-3
"""A cosine whose mean over a band varies less than this, over levels, tells nothing of them."""


class Readings:
    """Unbiased estimates, from counts of outputs, of cosines of the cover and of the mean.

    The cover of an output is the share of users whose band has it. The estimates of neighbouring
    outputs' covers are each far too noisy to be followed; their low cosines are few, and nearly
    independent. Each reading is a function of a report whose mean, given the level, is a function
    of the level in [0, 1]. The last reading is that of the mean itself.
    """

    def __init__(self, device: BandDevice) -> None:
        self.device = device
        outputs = np.arange(device.outputs) + 0.5
        waves = np.arange(1, 2 * FREQUENCIES + 1)[:, None]
        cosines = np.cos(np.pi * waves * outputs / device.outputs)
        in_band = _band_sums(cosines, device)
        low, high = in_band.min(axis=1), in_band.max(axis=1)
        most = min(FREQUENCIES, device.labels - 1)
        seen = np.flatnonzero(high - low > LEAST_SEEN * device.width)[:most]
        self._cosines, self._low, self._span = cosines[seen], low[seen], (high - low)[seen]
        self.means = (in_band[seen] - self._low[:, None]) / self._span[:, None]
        """The mean of each cosine's reading for a user at each level."""

    @property
    def count(self) -> int:
        return len(self.means) + 1

    @cached_property
    def functions(self) -> Floats:
        """What a report of each output counts for, in each reading."""
        p, q = float(self.device.p), float(self.device.q)
        unbiased = (self._cosines - q * self._cosines.sum(axis=1, keepdims=True)) / (p - q)
        cosines = (unbiased - self._low[:, None]) / self._span[:, None]
        return np.vstack([cosines, NumericCollector(self.device).numbers])

    @property
    def products(self) -> Floats:
        """The mean product of the readings of any two cosines, for a user at each level."""
        cosines = self.functions[:-1]
        both = cosines[:, None] * cosines
        in_band = _band_sums(both.reshape(-1, self.device.outputs), self.device)
        p, q = float(self.device.p), float(self.device.q)
        anywhere = q * both.sum(axis=2)[:, :, None]
        return np.asarray((p - q) * in_band.reshape(*both.shape[:2], -1) + anywhere)

    @cached_property
    def even_variance(self) -> float:
        """The variance of one report's readings, on average over them, if outputs are even."""
        return float(self.functions.var(axis=1).mean())

    def estimate(self, support: Support) -> tuple[Floats, Floats]:
        """Return the readings of counted reports and their variances, as of users drawn at random.

        Of a whole fleet that is too much, by the spread of its own values over its size.
        """
        shares = support.counts / support.reports
        estimate = self.functions @ shares
        spread = np.maximum(self.functions**2 @ shares - estimate**2, 0.0)
        # What came out all alike by chance is no more certain than one report that differs.
        least = self.even_variance / support.reports
        return estimate, np.maximum(spread, least) / support.reports


def _band_sums(functions: Floats, device: BandDevice) -> Floats:
    """Return the sum of each function over the band of each level."""
    sums = np.pad(np.cumsum(functions, axis=1), ((0, 0), (1, 0)))
    return np.asarray(sums[:, device.width :] - sums[:, : device.labels])
