from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts
from ldpstream.numeric.duchi.lab import Lab as DuchiLab
from ldpstream.numeric.hybrid.device import Device
from ldpstream.numeric.lab_half import NumericLab
from ldpstream.numeric.piecewise.lab import Lab as PiecewiseLab
from ldpstream.oracles.collector_half import Reports, Support


class Lab(NumericLab):
    """Simulated devices, divided by the coin between the laboratories of the two methods."""

    device: Device

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._bit = DuchiLab(device.bit)
        self._band = PiecewiseLab(device.band)
        self._alpha = float(device.alpha)

    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        bits, near = self._bit.perturb(values, rng), self._band.perturb(values, rng)
        by_band = rng.random(len(values)) < self._alpha
        return np.where(by_band, near + self.device.bit.outputs, bits)

    def sample_support(self, truth: Counts, rng: np.random.Generator) -> Support:
        by_band = rng.binomial(truth, self._alpha)
        bits = self._bit.sample_support(truth - by_band, rng)
        near = self._band.sample_support(by_band, rng)
        return Support(np.concatenate([bits.counts, near.counts]), bits.reports + near.reports)
