"""The laboratory half of every randomiser of numbers; not for devices, since draws are seeded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts
from ldpstream.numeric.device_half import NumericDevice
from ldpstream.oracles.collector_half import Reports, Support
from ldpstream.oracles.lab_half import check_values


class NumericLab(ABC):
    """Simulated devices, whose reports have the format that the collector half decodes to."""

    def __init__(self, device: NumericDevice) -> None:
        self.device = device
        self.labels = device.labels

    def perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        """Return one report for each of `values` (levels)."""
        if len(values):
            check_values(values, self.labels)
        return self._perturb(values, rng)

    @abstractmethod
    def sample_support(self, truth: Counts, rng: np.random.Generator) -> Support:
        """Draw how often each output occurs among devices of which truth[k] hold level k.

        The draw has exactly the distribution of `support(perturb(values))`.
        """

    @abstractmethod
    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports: ...
