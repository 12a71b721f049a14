"""Figures of parts of a fleet that add up to the figure of the whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.intervals import Interval

HALVINGS = 40
LEAST = 1e-15
"""A variance below that of any fleet, in place of 0."""


@dataclass(frozen=True)
class Figures:
    """Estimates with their variances and intervals: a row for each part, a column for each bin."""

    values: Floats
    variance: Floats
    interval: Interval

    def together(self, shares: Floats) -> Figures:
        """Return the figures, in one row, of all parts as one, whose errors are independent.

        >>> parts = Figures(np.array([[0.2], [0.5]]), np.full((2, 1), 0.01), (
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
        return Figures(values, variance, (np.clip(low, 0, 1), np.clip(high, 0, 1)))

    def _reaches(self) -> tuple[Floats, Floats]:
        """Return how far intervals reach below and above; one cut at 0 or 1, as if it were not."""
        low, high = self.interval
        below, above = np.maximum(self.values - low, 0), np.maximum(high - self.values, 0)
        return (
            np.where(low <= 0, np.maximum(below, above), below),
            np.where(high >= 1, np.maximum(below, above), above),
        )

    def moved(self, values: Floats, variance: Floats) -> Figures:
        """Return the intervals around other values in [0, 1], as much narrower as these are."""
        scale = np.sqrt(variance / np.maximum(self.variance, LEAST))
        below, above = self._reaches()
        low, high = values - scale * below, values + scale * above
        return Figures(values, variance, (np.clip(low, 0, 1), np.clip(high, 0, 1)))


def reconciled(parts: Figures, shares: Floats, total: Floats, total_variance: Floats) -> Figures:
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

    The total has a variance V_X. If it is the better estimate of the same sum, errors of X and of
    S - X are uncorrelated, and what S tells of y_g it tells through V: cov(e_g, e_S - e_X) is
    s_g v_g (1 - V_X / V). Then var z_g = v_g - (1 - V_X / V) (2 k_g s_g v_g - k_g^2 V), which is
    v_g - k_g^2 (V - V_X) for weights of the bin's own. It is never below 0.

    >>> parts = Figures(np.array([[0.2], [0.5]]), np.array([[0.01], [0.03]]), (
    ...     np.array([[0.1], [0.3]]), np.array([[0.3], [0.7]])))
    >>> moved = reconciled(parts, np.array([0.5, 0.5]), np.array([0.45]), np.array([0.004]))
    >>> moved.values.round(3).tolist(), moved.variance.round(4).tolist()
    ([[0.25], [0.65]], [[0.0085], [0.0165]])
    """
    weights, column = shares * np.maximum(parts.variance.mean(axis=1), LEAST), shares[:, None]
    gain = (weights / (shares @ weights))[:, None]
    values = _moved(parts.values, gain, shares, np.clip(total, 0.0, 1.0))
    variance = np.maximum(parts.variance, LEAST)
    summed = np.sum(column**2 * variance, axis=0)
    told = 2 * gain * column * variance - gain**2 * summed
    return parts.moved(values, np.maximum(variance - (1 - total_variance / summed) * told, 0.0))


def _moved(values: Floats, gain: Floats, shares: Floats, total: Floats) -> Floats:
    """Return clip(values + a gain), with the a for each column that gives the weighted total.

    The weighted sum grows with a, so a is found by halving; the last step is exact, among the
    parts that are not clipped.
    """
    moved = values + gain * (total - shares @ values)
    if moved.min() >= 0 and moved.max() <= 1:
        return moved
    least, most = np.min(-values / gain, axis=0), np.max((1 - values) / gain, axis=0)
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        is_low = shares @ np.clip(values + gain * middle, 0.0, 1.0) < total
        least, most = np.where(is_low, middle, least), np.where(is_low, most, middle)
    moved = np.clip(values + gain * least, 0.0, 1.0)
    free = (moved > 0) & (moved < 1)
    slope = shares @ (gain * free)
    step = np.divide(total - shares @ moved, slope, out=np.zeros_like(total), where=slope > 0)
    last: Floats = np.clip(moved + gain * free * step, 0.0, 1.0)
    return last
