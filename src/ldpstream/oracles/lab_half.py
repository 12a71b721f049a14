"""The laboratory half of every oracle: a million devices at once, or only the sum of their reports.

Not for devices: it draws from a seeded generator, with probabilities rounded to 64 bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.oracles.collector_half import Counts, Reports, Support
from ldpstream.oracles.device_half import DeviceHalf


class LabHalf(ABC):
    """Simulated devices, in the format that the collector half decodes to."""

    def __init__(self, device: DeviceHalf[Any]) -> None:
        self.device = device
        self.labels = device.labels
        self.p = float(device.p)
        self.q = float(device.q)

    @abstractmethod
    def perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        """One report for each of `values` (label indexes)."""

    def sample_support(self, truth: Counts, rng: np.random.Generator) -> Support:
        """Draw the support counts of sum(truth) devices without making their reports.

        The draw has exactly the distribution of `support(perturb(values))` for values with this
        histogram. It costs O(labels) here, where labels are supported independently of each other;
        oracles for which they are not override it.
        """
        others = truth.sum() - truth
        return Support(rng.binomial(truth, self.p) + rng.binomial(others, self.q), int(truth.sum()))


def draw_seed(rng: np.random.Generator) -> np.uint64:
    """A fresh seed for a kernel's own counter-based generator."""
    return np.uint64(rng.integers(1 << 64, dtype=np.uint64))


def threshold(probability: float) -> np.uint64:
    """The 64-bit number below which a uniform draw falls with this probability."""
    return np.uint64(min(int(probability * 2.0**64), 2**64 - 1))
