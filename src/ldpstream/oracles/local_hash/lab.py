from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.oracles.collector_half import Reports
from ldpstream.oracles.kernels.local_hash import hashed_counts, hashed_values
from ldpstream.oracles.lab_half import ALWAYS, NEVER, LabHalf, draw_seed, threshold
from ldpstream.oracles.local_hash.device import LocalHashDevice


class Lab(LabHalf):
    """Simulated local hashing, with a hash seed of its own for each device.

    `perturb` uses the real hash; `sample_support`, as inherited, is exact for an *ideal* one.

    An ideal hash puts every label into its bucket independently and evenly. With the real one each
    count has exactly the mean and variance that `sample_support` gives it; the covariance of two
    counts, 0 for the ideal hash, is not quite 0 (docs/oracles.md says how large it gets).
    """

    device: LocalHashDevice

    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        # As GRR over the buckets: keep the true one, or else draw any, including the true one.
        buckets = self.device.buckets
        p = self.device.p
        keep = threshold(float(p - (1 - p) / (buckets - 1)))
        return hashed_values(values, self.labels, buckets, keep, draw_seed(rng))

    def _supporting(self, values: NDArray[Any], seed: np.uint64) -> Reports:
        return hashed_values(values, self.labels, self.device.buckets, ALWAYS, seed)

    def crafted(self, targets: NDArray[Any], rng: np.random.Generator) -> Reports:
        """Return, for each target, that of a thousand reports which supports the fewest labels."""
        out = np.empty((len(targets), 3), np.uint32)
        for target in np.unique(targets).tolist():
            tried = self.supporting(np.full(1000, target), rng)
            sizes = [self._supported(one) for one in tried]
            out[targets == target] = tried[int(np.argmin(sizes))]
        return out

    def _supported(self, report: Reports) -> int:
        """Return how many labels a report supports."""
        return int(hashed_counts(report[None], self.labels, self.device.buckets).sum())

    def arbitrary(self, number: int, rng: np.random.Generator) -> Reports:
        values = rng.integers(self.labels, size=number).astype(np.uint16)
        return hashed_values(values, self.labels, self.device.buckets, NEVER, draw_seed(rng))
