"""Figures of parts of a fleet that add up to the figure of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.intervals import Interval

LEAST = 1e-15
"""A variance below that of any fleet, in place of 0."""


@dataclass(frozen=True)
class PartFigures:
    """Estimates with their variances and intervals: a row for each part, a column for each bin."""

    values: Floats
    variance: Floats
    interval: Interval

    def rows(self, rows: Sequence[int]) -> PartFigures:
        """Return the figures of some of the parts."""
        low, high = self.interval
        return PartFigures(self.values[rows], self.variance[rows], (low[rows], high[rows]))

    def together(self, shares: Floats) -> PartFigures:
        """Return the figures, in one row, of all parts as one, whose errors are independent.

        >>> parts = PartFigures(np.array([[0.2], [0.5]]), np.full((2, 1), 0.01), (
        ...     np.array([[0.1], [0.4]]), np.array([[0.3], [0.6]])))
        >>> whole = parts.together(np.array([0.2, 0.1]))
        >>> whole.values.round(3).tolist(), whole.variance.round(4).tolist()
        ([[0.3]], [[0.0056]])
        """
        weights = (shares / shares.sum())[:, None]
        values = np.sum(weights * self.values, axis=0, keepdims=True)
        variance = np.sum(weights**2 * self.variance, axis=0, keepdims=True)
        below, above = (
            np.sqrt(np.sum((weights * reach) ** 2, axis=0, keepdims=True))
            for reach in self._reaches()
        )
        low, high = values - below, values + above
        return PartFigures(values, variance, (np.clip(low, 0, 1), np.clip(high, 0, 1)))

    def _reaches(self) -> tuple[Floats, Floats]:
        """Return how far intervals reach below and above; one cut at 0 or 1, as if it were not."""
        low, high = self.interval
        below, above = np.maximum(self.values - low, 0), np.maximum(high - self.values, 0)
        return (
            np.where(low <= 0, np.maximum(below, above), below),
            np.where(high >= 1, np.maximum(below, above), above),
        )

    def moved(self, values: Floats, variance: Floats) -> PartFigures:
        """Return other values in [0, 1], with intervals that are as much wider as they are."""
        scale = np.sqrt(variance / np.maximum(self.variance, LEAST))
        below, above = self._reaches()
        low, high = values - scale * below, values + scale * above
        return PartFigures(values, variance, (np.clip(low, 0, 1), np.clip(high, 0, 1)))


def reconciled(
    parts: PartFigures, shares: Floats, total: Floats, total_variance: Floats
) -> PartFigures:
    """Return the parts moved as little as need be for their weighted sum to be the total.

    With figures y_g of variance v_g and shares s_g that sum to 1, weighted least squares asks for
    the z that minimise sum_g (z_g - y_g)^2 / v_g under sum_g s_g z_g = X, the total, which is held.
    Setting the derivatives of the Lagrangian to 0 gives z_g = y_g + a v_g s_g, and the constraint
    gives a: with S = sum_g s_g y_g and V = sum_g s_g^2 v_g it is (X - S) / V, so that

        z_g = y_g + k_g (X - S),   k_g = v_g s_g / V.

    With 0 <= z_g <= 1 it is z_g = clip(y_g + a v_g s_g), with the only a for which the constraint
    holds; a total outside of [0, 1] counts as the nearer end. Weights are those of the variances
    averaged over the bins: a bin's own is known through its estimate, and a histogram that sums to
    1 goes on doing so, as long as nothing is clipped.

    If the total were the best estimate of its sum, the parts would become surer. But each is what a
    filter made of other tallies, and parts that move differently may be followed better than their
    sum. So no part counts as surer than it was. If the total is less sure than the sum, V_X > V,
    a part takes over what that adds: var z_g = v_g + k_g^2 max(V_X - V, 0).

    >>> parts = PartFigures(np.array([[0.2], [0.5]]), np.array([[0.01], [0.03]]), (
    ...     np.array([[0.1], [0.3]]), np.array([[0.3], [0.7]])))
    >>> moved = reconciled(parts, np.array([0.5, 0.5]), np.array([0.45]), np.array([0.004]))
    >>> moved.values.round(3).tolist(), moved.variance.round(4).tolist()
    ([[0.25], [0.65]], [[0.01], [0.03]])
    """
    weights = shares * np.maximum(parts.variance.mean(axis=1), LEAST)
    gain = (weights / (shares @ weights))[:, None]
    values = _moved(parts.values, gain, shares, np.clip(total, 0.0, 1.0))
    summed = np.sum(shares[:, None] ** 2 * parts.variance, axis=0)
    added = gain**2 * np.maximum(total_variance - summed, 0.0)
    return parts.moved(values, np.minimum(parts.variance + added, 1.0))


def _moved(values: Floats, gain: Floats, shares: Floats, total: Floats) -> Floats:
    """Return clip(values + a gain), with the a for each column that gives the weighted total.

    The sum grows with a, along a line between any two moments at which a part reaches 0 or 1. So
    the line is looked for by halving, and then the point on it.
    """
    moved = values + gain * (total - shares @ values)
    if moved.min() >= 0 and moved.max() <= 1:
        return moved
    begins, ends = -values / gain, (1 - values) / gain
    moments = np.sort(np.concatenate([begins, ends]), axis=0)
    columns = np.arange(len(total))
    first, last = np.zeros(len(total), np.int64), np.full(len(total), len(moments) - 1)
    for _ in range(len(moments).bit_length()):
        middle = (first + last) // 2
        reached = np.clip(values + gain * moments[middle, columns], 0.0, 1.0)
        is_low = shares @ reached <= total
        first, last = np.where(is_low, middle, first), np.where(is_low, last, middle)
    start = moments[first, columns]
    free = (begins <= start) & (start < ends)
    moved = np.clip(values + gain * start, 0.0, 1.0)
    slope = shares @ (gain * free)
    step = np.divide(total - shares @ moved, slope, out=np.zeros_like(total), where=slope > 0)
    found: Floats = np.clip(moved + gain * free * step, 0.0, 1.0)
    return found
