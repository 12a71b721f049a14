from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.oracles.collector_half import Reports
from ldpstream.oracles.kernels.bitmaps import randomised_bits, selected_subsets, words_for
from ldpstream.oracles.lab_half import ALWAYS, LabHalf, draw_seed, threshold


class Lab(LabHalf):
    """Simulated unary encodings, drawn 64 bits at a time.

    Bits are independent of each other, so `sample_support` is exact as it is inherited.
    """

    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        return randomised_bits(
            values, self.labels, threshold(self.p), threshold(self.q), draw_seed(rng)
        )

    def _supporting(self, values: NDArray[Any], seed: np.uint64) -> Reports:
        return randomised_bits(values, self.labels, ALWAYS, threshold(self.q), seed)

    def crafted(self, targets: NDArray[Any], rng: np.random.Generator) -> Reports:
        """Return reports with the target's bit and as many bits as an honest report usually has."""
        usual = self.p + (self.labels - 1) * self.q
        size = max(int(usual), 1)
        values = targets.astype(np.uint16)
        return selected_subsets(values, self.labels, size, ALWAYS, draw_seed(rng))

    def arbitrary(self, number: int, rng: np.random.Generator) -> Reports:
        bits = rng.integers(1 << 64, size=(number, words_for(self.labels)), dtype=np.uint64)
        spare = 64 * words_for(self.labels) - self.labels
        bits[:, -1] &= np.uint64((1 << 64) - 1) >> np.uint64(spare)
        return bits
