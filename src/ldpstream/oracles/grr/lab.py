from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts
from ldpstream.oracles.collector_half import Reports, Support
from ldpstream.oracles.kernels.labels import randomised_labels
from ldpstream.oracles.lab_half import LabHalf, draw_seed, threshold


class Lab(LabHalf):
    """Simulated GRR: keep the value with probability p-q, otherwise draw any label uniformly."""

    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        return randomised_labels(values, self.labels, threshold(self.p - self.q), draw_seed(rng))

    def sample_support(self, truth: Counts, rng: np.random.Generator) -> Support:
        kept = rng.binomial(truth, self.p - self.q)
        redrawn = int(truth.sum() - kept.sum())
        uniform = np.full(self.labels, 1 / self.labels)
        return Support(kept + rng.multinomial(redrawn, uniform), int(truth.sum()))

    def _supporting(self, values: NDArray[Any], seed: np.uint64) -> Reports:
        return values.astype(np.uint32)

    def arbitrary(self, number: int, rng: np.random.Generator) -> Reports:
        return rng.integers(self.labels, size=number).astype(np.uint32)
