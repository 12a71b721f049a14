from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts, Floats
from ldpstream.numeric.duchi.device import Device
from ldpstream.numeric.lab_half import NumericLab
from ldpstream.oracles.collector_half import Reports, Support


class Lab(NumericLab):
    """Simulated devices: one coin for each device, or one binomial draw for each level."""

    device: Device

    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        ones: Reports = rng.random(len(values)) < self._chances()[values]
        return ones.astype(np.int64)

    def sample_support(self, truth: Counts, rng: np.random.Generator) -> Support:
        devices = int(truth.sum())
        ones = int(rng.binomial(truth, self._chances()).sum())
        return Support(np.array([devices - ones, ones]), devices)

    def _chances(self) -> Floats:
        """Return Pr[1 | level] for each level."""
        p, q = float(self.device.p), float(self.device.q)
        return np.linspace(q, p, self.labels)
