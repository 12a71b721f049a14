"""The common laboratory half of randomisers whose likely outputs are a band around the value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts
from ldpstream.numeric.band_device import BandDevice
from ldpstream.numeric.lab_half import NumericLab
from ldpstream.oracles.collector_half import Reports, Support


class BandLab(NumericLab):
    """Simulated devices: draw from the band with probability width (p-q), otherwise from all."""

    device: BandDevice

    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        near = values + rng.integers(self.device.width, size=len(values))
        anywhere = rng.integers(self.device.outputs, size=len(values))
        return np.where(rng.random(len(values)) < self._focus, near, anywhere)

    def sample_support(self, truth: Counts, rng: np.random.Generator) -> Support:
        """Draw exactly; only the reports that come from a band are drawn one by one."""
        device, devices = self.device, int(truth.sum())
        focused = rng.binomial(truth, self._focus)
        near = np.repeat(np.arange(self.labels), focused)
        near += rng.integers(device.width, size=len(near))
        uniform = np.full(device.outputs, 1 / device.outputs)
        counts = np.bincount(near, minlength=device.outputs)
        return Support(counts + rng.multinomial(devices - len(near), uniform), devices)

    @property
    def _focus(self) -> float:
        return float(self.device.width * (self.device.p - self.device.q))
