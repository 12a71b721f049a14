"""Offsets of the parts of a fleet: how far each is from the whole, and whether that stays so.

Parts differ in how well they are known: careful people report rarely and with much noise. Where the
differences between the parts last, they can be averaged over a long time, and the parts that are
known well say how the whole moves. Where they do not last, each part must speak for itself at every
timestamp. docs/levels.md derives the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.packing import pack, unpack

UNKNOWN = 1.0
"""The variance of an offset of which nothing is known: frequencies are in [0, 1]."""
LEAST = 1e-12
"""The least information that is divided by."""
AVERAGED = 16.0
"""Tallies that a reader averages, by eye or by filter. An error that lasts is not averaged out."""


@dataclass(frozen=True)
class Offset:
    """The average of how far a part was off the whole; all sums fade with time."""

    precision: float
    """The sum of the weights, which are inverse variances."""
    total: Floats
    spread: Floats
    """The sum of the variances times squared weights."""

    @classmethod
    def unknown(cls, bins: int) -> Offset:
        return cls(0.0, np.zeros(bins), np.zeros(bins))

    @property
    def mean(self) -> Floats:
        return self.total / self.precision if self.precision else self.total

    @property
    def variance(self) -> Floats:
        if not self.precision:
            return np.full(len(self.spread), UNKNOWN)
        return np.minimum(self.spread / self.precision**2, UNKNOWN)

    def learnt(self, distance: Floats | None, variance: Floats, kept: float) -> Offset:
        """Return the offset after a tally `distance` off the whole, or after none.

        Sums of before count by the share `kept`.
        """
        precision, total, spread = kept * self.precision, kept * self.total, kept**2 * self.spread
        if distance is None:
            return Offset(precision, total, spread)
        weight = 1 / float(variance.mean())
        return Offset(precision + weight, total + weight * distance, spread + weight**2 * variance)

    def to_json(self) -> dict[str, Any]:
        arrays = {"total": pack(self.total), "spread": pack(self.spread)}
        return {"precision": self.precision} | arrays

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Offset:
        return cls(saved["precision"], unpack(saved["total"]), unpack(saved["spread"]))


@dataclass(frozen=True)
class Drift:
    """How far offsets move about their averages, seen in a contrast of parts that should be zero.

    The contrast is averaged over a short time first: what moves faster than that, a filter sees and
    averages itself. In its square, the known noise is expected; what is there besides is drift.
    """

    contrast: Floats
    """The faded sum of contrasts."""
    noise: Floats
    """The variance of that sum if nothing drifts."""
    weight: float
    """The sum of its weights."""
    evidence: Floats
    """The faded sum of squares less their noise, each by its information."""
    information: Floats

    @classmethod
    def unknown(cls, bins: int) -> Drift:
        zeros = np.zeros(bins)
        return cls(zeros, zeros, 0.0, zeros, zeros)

    def variance(self, apart: Floats, recent: float) -> Floats:
        """Return the variance of an offset about its average, bin by bin.

        What has been seen counts, and what cannot be seen yet: up to a standard error, but no more
        than `apart`, the mean square of the offsets. Where there are none, none will move.
        """
        known = np.maximum(self.information, LEAST)
        return np.maximum(self.evidence, 0.0) / known + np.minimum(_error(known, recent), apart)

    def mean_variance(self, apart: Floats, recent: float) -> float:
        """Return the same for the mean over the bins, which is known better than each of them."""
        # One of the bins follows from all the others.
        share = (len(apart) - 1) / len(apart) if len(apart) > 1 else 1.0
        known = max(float(self.information.sum()), LEAST)
        seen = max(float(self.evidence.sum()) / known, 0.0)
        return seen + min(float(_error(known * share, recent)), float(apart.mean()))

    def learnt(self, contrast: Floats, noise: Floats, recent: float, kept: float) -> Drift:
        """Return the drift after another contrast, of the variance `noise` if nothing drifts.

        Of contrasts a share `recent` counts on, and of their squares a share `kept`.
        """
        summed = recent * self.contrast + contrast
        doubt = recent**2 * self.noise + noise
        weight = recent * self.weight + 1
        known = doubt / weight**2
        information = 1 / known**2
        return Drift(
            summed,
            doubt,
            weight,
            kept * self.evidence + information * ((summed / weight) ** 2 - known),
            kept * self.information + information,
        )

    def to_json(self) -> dict[str, Any]:
        return {name: pack(getattr(self, name)) for name in _ARRAYS} | {"weight": self.weight}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Drift:
        return cls(weight=saved["weight"], **{name: unpack(saved[name]) for name in _ARRAYS})


def _error(information: Floats | float, recent: float) -> Floats:
    """Return the standard error of a variance: squares of a sum that fades are correlated."""
    repeated = (1 + recent**2) / (1 - recent**2)
    return np.sqrt(2 * repeated / np.asarray(information))


_ARRAYS = ("contrast", "noise", "evidence", "information")


def best_weights(shares: Floats, noise: Floats, doubt: Floats) -> Floats:
    """Return the weights a of the parts in a figure of the whole: those with the least error.

    The figure is the sum of a (tally - offset). Its error is that of the tallies, a^2 noise, and
    that of the offsets, (share - a)^2 doubt, which lasts. With no doubt the weights are inverse
    variances; with nothing but doubt they are the shares. A part with infinite noise has none.

    >>> shares, noise = np.array([0.5, 0.5]), np.array([3.0, 1.0])
    >>> best_weights(shares, noise, np.zeros(2)).tolist()
    [0.25, 0.75]
    >>> best_weights(shares, noise, np.full(2, 1e9)).round(6).tolist()
    [0.5, 0.5]
    """
    gain = 1 / (noise / AVERAGED + doubt)
    pulled = gain * shares * doubt
    weights: Floats = pulled + gain * (1 - pulled.sum()) / gain.sum()
    return weights
