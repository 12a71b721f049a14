"""What the unary encodings, SUE and OUE, share in the laboratory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.oracles.collector_half import Reports
from ldpstream.oracles.kernels.bitmaps import randomised_bits
from ldpstream.oracles.lab_half import LabHalf, draw_seed, threshold


class UnaryLab(LabHalf):
    """Bits are independent of each other, so `sample_support` is exact as it is inherited."""

    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        return randomised_bits(
            values, self.labels, threshold(self.p), threshold(self.q), draw_seed(rng)
        )
