"""What the local-hashing oracles, BLH and OLH, share in the laboratory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.oracles.collector_half import Reports
from ldpstream.oracles.kernels.local_hash import hashed_values
from ldpstream.oracles.lab_half import LabHalf, draw_seed, threshold
from ldpstream.oracles.local_hash_device import LocalHashDevice


class LocalHashLab(LabHalf):
    """`perturb` uses the real hash; `sample_support`, as inherited, is exact for an *ideal* one.

    An ideal hash puts every label into its bucket independently and evenly. With the real one each
    count has exactly the mean and variance that `sample_support` gives it; the covariance of two
    counts, 0 for the ideal hash, is not quite 0 (docs/oracles.md says how large it gets).
    """

    device: LocalHashDevice

    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        # Like GRR over the buckets: keep the true one, or else draw any, the true one included.
        buckets = self.device.buckets
        p = self.device.p
        keep = threshold(float(p - (1 - p) / (buckets - 1)))
        return hashed_values(values, self.labels, buckets, keep, draw_seed(rng))
