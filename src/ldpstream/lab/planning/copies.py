"""Many copies of a filter at once: labels do not influence each other, so copies can be labels."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.consistency import Consistency, consistent
from ldpstream.refine.filter import Filter


class Copies(Filter):
    """`copies` filters of `labels` labels each, side by side.

    Hundreds of runs cost little more than one. All copies get tallies of the same variance, which
    is all that labels of one filter share.

    >>> Copies(labels=2, copies=3).table.tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    """

    def __init__(self, labels: int, copies: int) -> None:
        one = Filter(labels)
        self._one_starts_with = float(one.variance[0])
        super().__init__(labels * copies)
        self.copies = copies
        self.estimate = np.tile(one.estimate, copies)

    @property
    def _start_variance(self) -> float:
        """The variance that one filter starts with, not one with the labels of all copies."""
        return self._one_starts_with

    @property
    def table(self) -> Floats:
        """The estimates, a row for each copy."""
        return self.estimate.reshape(self.copies, -1)

    def shown(self, rule: Consistency) -> Floats:
        """Return the estimates as each copy would release them."""
        variances = self.variance.reshape(self.copies, -1)
        rows = zip(self.table, variances, strict=True)
        return np.stack([consistent(values, variance, rule) for values, variance in rows])
