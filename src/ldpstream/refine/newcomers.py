"""Labels that a bank of linear models knows less well than the others."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Flags, Floats

NEGLIGIBLE = 1e-3
"""The share of a bank's variance below which what newcomers have beyond it is forgotten."""


class Newcomers:
    """The variance of labels that are new, or were merged, beyond the one that a bank has for all.

    Labels of a bank share its covariances, and so its gains: whoever comes later is corrected by
    gains that are meant for labels known well. The error of its first level then fades in the same
    way for each of them, as transitions and gains let it, whatever its size: the vector `fading`,
    for each model, has the way, and `sizes` has the variance of each label's first error.
    """

    def __init__(self, sizes: Floats, fading: Floats) -> None:
        self.sizes = sizes
        """Of the level of each label when it came, by models and labels."""
        self.fading = fading
        """What is left of an error of 1 in that level, by models and components."""

    @classmethod
    def of(cls, sizes: Floats, components: int) -> Newcomers | None:
        """Return newcomers with this variance at first; None if there is no variance."""
        if not sizes.any():
            return None
        fading = np.zeros((len(sizes), components))
        fading[:, 0] = 1.0
        return cls(sizes, fading)

    def variances(self, observations: Floats) -> Floats:
        """Return what is left of the variance, by models and labels."""
        left: Floats = np.sum(observations * self.fading, axis=1)[:, None] ** 2 * self.sizes
        return left

    def predict(self, transitions: Floats) -> None:
        self.fading = np.einsum("mkl,ml->mk", transitions, self.fading)

    def update(self, gain: Floats, observations: Floats) -> None:
        self.fading = self.fading - gain * np.sum(observations * self.fading, axis=1)[:, None]

    def begin(self, unknown: Flags, variance: Floats, observations: Floats) -> None:
        """Let the levels of labels that were `unknown` be those of a tally with this variance."""
        left = np.sum(observations * self.fading, axis=1)[:, None] ** 2
        self.sizes = np.where(unknown, variance / np.maximum(left, NEGLIGIBLE), self.sizes)

    def forgotten(self, variances: Floats) -> bool:
        """Return whether nothing is left beside these variances of the models."""
        left = np.sum(self.fading**2, axis=1) * self.sizes.max(axis=1)
        return bool((left < NEGLIGIBLE * variances).all())
