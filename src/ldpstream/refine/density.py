"""The density of a number over its range, from noisy linear measurements of it (docs/numeric.md).

The logarithm of the density is a smooth function, and measurements are means under the density: a
Bayesian fit with a Gaussian prior on second derivatives, by Newton's method. The posterior is taken
for normal around its mode (Laplace's approximation), and averaged over how smooth the density may
be, each weighted by how likely it makes the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.intervals import LEVEL, mixture_interval, normal

SMOOTHNESS: Floats = np.array([1e-1, 1e-2, 1e-3, 1e-4, 1e-5])
"""The precisions of the second derivative that are tried, the range being 1 long."""
PILOT = SMOOTHNESS[::2]
"""Those of a first fit, which shows where the density is low."""
TAIL = 1.0
"""The precision grows with this power of 1 / density: where few users are, little can be seen, and
the logarithm of the density is all but straight. That is an exponential tail."""
LEAST_DENSITY = 0.05
"""The part of an even density that is added before that power is taken."""
NOISE = 0.7
"""The share of noise in the variances of measurements. The rest is that the density has moved."""
RIDGE = 0.064
"""The precision of the logarithm itself, around an even density."""
MOST_STEPS = 30
SETTLED = 1e-3
"""Newton's method stops when a whole step gains less than this in log-likelihood."""
LEAST_STEP = 1e-3
FINER = 4
"""Places within a cell, in which a density is even, at which the chance of a quantile is found."""
NEGLIGIBLE = 1e-3
"""The weight below which a smoothness is left out."""
SMALLEST = 1e-12
"""Shares are kept this far away from 0 and 1, where a logit has no value."""


class IntervalEstimates(NamedTuple):
    """Estimates, and the ends of their intervals."""

    values: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Instrument:
    """What is measured of a user in each cell; of a density, it is the mean over its users."""

    means: Floats
    """The mean of each measurement, K x cells."""
    products: Floats
    """The mean of the product of any two, K x K x cells."""

    def correlation(self, shares: Floats) -> Floats:
        """Return the correlation of the errors of two measurements, if these are the shares."""
        mean = self.means @ shares
        covariance = self.products @ shares - np.outer(mean, mean)
        scale = np.sqrt(np.diagonal(covariance))
        return np.asarray(covariance / np.outer(scale, scale))


@dataclass(frozen=True)
class Measurements:
    """Measured values, and the inverse covariance of their errors."""

    values: Floats
    precision: Floats
    means: Floats

    @classmethod
    def of(
        cls, instrument: Instrument, values: Floats, variance: Floats, shares: Floats
    ) -> Measurements:
        """Return measurements with these variances, at a density that is about `shares`.

        Their errors go together: noise, because one report counts for all of them, and what the
        density has moved since, because a shift or a stretch moves all of them. How far it may have
        moved is seen in the variances of those that a movement would show in.
        """
        scale = np.sqrt(NOISE * variance)
        covariance = instrument.correlation(shares) * np.outer(scale, scale)
        for movement in _movements(shares):
            moved = instrument.means @ movement
            told = moved**2 / variance
            if told.any():
                size = (1 - NOISE) * told.sum() / (told @ told)
                covariance += size * np.outer(moved, moved)
        return cls(values, np.linalg.inv(covariance), instrument.means)

    @property
    def cells(self) -> int:
        return int(self.means.shape[1])


@dataclass(frozen=True)
class Mode:
    """The most likely density at one smoothness."""

    logs: Floats
    shares: Floats
    precision: Floats
    """The inverse covariance of `logs`."""
    evidence: float
    """The logarithm of the likelihood of this smoothness."""


@dataclass(frozen=True)
class Density:
    """The posterior: a mixture of densities, whose logarithms are normal around their modes."""

    weights: Floats
    shares: Floats
    """Of each member, the shares of the cells."""
    covariances: Floats
    """Of each member, those of the logarithms."""

    @classmethod
    def of(cls, instrument: Instrument, values: Floats, variance: Floats) -> Density:
        """Fit a density to values that an instrument measured, with these variances.

        >>> cells = np.arange(8) / 7
        >>> moments = np.stack([cells, cells**2])
        >>> exact = Instrument(moments, moments[:, None] * moments)
        >>> rising = Density.of(exact, np.array([0.7, 0.6]), np.full(2, 1e-6))
        >>> float(rising.weights @ rising.shares @ cells)  # doctest: +NUMBER
        0.70
        """
        cells = instrument.means.shape[1]
        measured = Measurements.of(instrument, values, variance, np.full(cells, 1 / cells))
        pilots = _path(measured, PILOT, np.ones(max(cells - 2, 0)), np.zeros(cells))
        weights = _weights(pilots)
        pilot = weights @ np.array([mode.shares for mode in pilots])
        measured = Measurements.of(instrument, values, variance, pilot)
        straight = (_neighbours(pilot * cells) + LEAST_DENSITY) ** -TAIL
        likeliest = pilots[int(np.argmax(weights))].logs
        modes = _path(measured, SMOOTHNESS, straight, likeliest)
        weights = _weights(modes)
        kept = np.flatnonzero(weights > NEGLIGIBLE)
        return cls(
            weights[kept] / weights[kept].sum(),
            np.array([modes[place].shares for place in kept]),
            np.array([np.linalg.inv(modes[place].precision) for place in kept]),
        )

    def bins(self, count: int) -> IntervalEstimates:
        """Return the shares of `count` equal parts of the range."""
        cells = self.shares.shape[1]
        parts = np.repeat(np.eye(count), cells // count, axis=1)
        shares, logits, variances = self._shares(parts)
        low, high = mixture_interval(self.weights[:, None], logits, variances)
        return IntervalEstimates(self.weights @ shares, _share(low), _share(high))

    def quantiles(self, levels: Sequence[float]) -> IntervalEstimates:
        """Return quantiles, as fractions of the range: the medians of their posteriors.

        A quantile lies above x if and only if less than its level lies below x, so its posterior
        follows from those of the cumulative shares, and need not be symmetric.
        """
        cells = self.shares.shape[1]
        edges = np.linspace(0, cells, FINER * cells + 1)
        below = np.clip(edges[1:-1, None] - np.arange(cells), 0.0, 1.0)
        _, logits, variances = self._shares(below)
        asked = _logit(np.array(levels))[:, None, None]
        above, _ = normal((asked - logits) / np.sqrt(variances))
        ends = np.ones(len(levels))
        inside = np.einsum("m,qmc->qc", self.weights, above)
        beyond = np.column_stack([ends, np.minimum.accumulate(inside, axis=1), 0 * ends])
        found = [
            np.array([np.interp(-chance, -row, edges / cells) for row in beyond])
            for chance in (0.5, (1 + LEVEL) / 2, (1 - LEVEL) / 2)
        ]
        return IntervalEstimates(*found)

    def _shares(self, parts: Floats) -> tuple[Floats, Floats, Floats]:
        """Return each member's shares of sets of cells, with their logits and those' variances."""
        shares = np.clip(self.shares @ parts.T, SMALLEST, 1 - SMALLEST)
        slopes = (parts[None] - shares[:, :, None]) * self.shares[:, None, :]
        slopes /= (shares * (1 - shares))[:, :, None]
        variances = np.einsum("msc,msc->ms", slopes @ self.covariances, slopes)
        return shares, _logit(shares), np.maximum(variances, SMALLEST)


def _path(
    measured: Measurements, smoothness: Floats, straight: Floats, start: Floats
) -> list[Mode]:
    """Return the modes from the smoothest to the roughest, each found from the one before."""
    modes: list[Mode] = []
    for precision in smoothness:
        modes.append(_mode(measured, _prior(precision * straight, len(start)), start))
        start = modes[-1].logs
    return modes


def _prior(precisions: Floats, cells: int) -> Floats:
    """Return the precision matrix of the logarithms of the cells' densities."""
    bends = np.diff(np.eye(cells), 2, axis=0)
    prior: Floats = cells**3 * (bends.T * precisions) @ bends + RIDGE / cells * np.eye(cells)
    return prior


def _mode(measured: Measurements, prior: Floats, logs: Floats) -> Mode:
    """Find the most likely density by Newton's method (Gauss-Newton), halving steps that fail."""
    loss, shares, errors = _loss(measured, prior, logs)
    for _ in range(MOST_STEPS):
        slopes = _slopes(measured, shares)
        weighted = measured.precision @ slopes
        step = np.linalg.solve(slopes.T @ weighted + prior, weighted.T @ errors - prior @ logs)
        length, before = 1.0, loss
        loss, shares, errors = _loss(measured, prior, logs + step)
        while loss > before and length > LEAST_STEP:
            length /= 2
            loss, shares, errors = _loss(measured, prior, logs + length * step)
        logs = logs + length * step
        if length == 1.0 and before - loss < SETTLED:
            break
    slopes = _slopes(measured, shares)
    precision = slopes.T @ measured.precision @ slopes + prior
    volume = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(precision)[1]
    return Mode(logs, shares, precision, float(volume / 2 - loss))


def _loss(measured: Measurements, prior: Floats, logs: Floats) -> tuple[float, Floats, Floats]:
    """Return the negative log-posterior, the shares, and what they leave of the measurements."""
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    errors = measured.values - measured.means @ shares
    loss = errors @ measured.precision @ errors + logs @ prior @ logs
    return float(loss / 2), shares, errors


def _slopes(measured: Measurements, shares: Floats) -> Floats:
    """Return how the expected measurements change with the logarithms."""
    slopes: Floats = (measured.means - (measured.means @ shares)[:, None]) * shares
    return slopes


def _weights(modes: Sequence[Mode]) -> Floats:
    evidence = np.array([mode.evidence for mode in modes])
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights / weights.sum())


def _movements(shares: Floats) -> tuple[Floats, Floats]:
    """Return how the shares of cells change when the density is shifted, or stretched from 0."""
    density = np.pad((shares[1:] + shares[:-1]) / 2, 1) * len(shares)
    return -np.diff(density), -np.diff(density * np.linspace(0, 1, len(shares) + 1))


def _neighbours(density: Floats) -> Floats:
    """Return the mean of each cell that has two neighbours, and these."""
    return (density[:-2] + density[1:-1] + density[2:]) / 3


def _logit(share: Floats) -> Floats:
    return np.asarray(np.log(share / (1 - share)))


def _share(logit: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logit)))
