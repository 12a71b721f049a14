"""Cohorts in hindsight: the offsets of the groups that take turns, from all of their rounds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.cohorts import FOLLOWED, MOST_ROUNDS, SETTLED, SETTLED_PRIOR, Fleet
from ldpstream.refine.levels import log_density

FEWEST_ROUNDS = 2
WORTH = 0.05
"""The share of the fleet that must keep its values for offsets to be worth another run."""


@dataclass(frozen=True)
class Residuals:
    """How far tallies were off what all others say, T x d, and the variances of that."""

    values: Floats
    """NaN where nobody reported."""
    total: Floats
    sampling: Floats
    """The part of `total` that is due to who was asked."""


@dataclass(frozen=True)
class Turns:
    """What of the tallies is due to whose turn it was, T x d."""

    settled: float
    """The share of the fleet that keeps its values."""
    offsets: Floats
    explained: Floats
    """The variance of the tallies that the offsets explain."""


def turns(residuals: Residuals, fleet: Fleet, gain: float, since: int = 0) -> Turns | None:
    """Return what is known of the cohorts, if they are worth knowing.

    `gain` is the share of a tally in the smoother's estimate: waves that are so slow that it
    follows them are the truth's, as in `Cohorts`. `since` is the number of timestamps before.
    """
    window, (timestamps, labels) = fleet.window, residuals.values.shape
    if window is None or window < 2 or timestamps < FEWEST_ROUNDS * window:
        return None
    epoch = window * int(min(MOST_ROUNDS, (fleet.reshuffle or np.inf) // window))
    borders = [0, *range(epoch - since % epoch, timestamps, epoch), timestamps]
    folds = [_Fold.of(residuals, window, *ends) for ends in pairwise(borders)]
    speaking = 1 - 1 / labels if labels > 1 else 1.0
    evidence = np.log(SETTLED_PRIOR) + speaking * sum(fold.evidence() for fold in folds)
    posterior = np.exp(evidence - evidence.max())
    posterior /= posterior.sum()
    settled = float(posterior @ SETTLED[:, 0])
    if settled < WORTH:
        return None
    offsets, explained = np.zeros_like(residuals.values), np.zeros_like(residuals.values)
    for fold in folds:
        fold.explain(posterior, gain, offsets, explained)
    return Turns(settled, offsets, explained)


@dataclass(frozen=True)
class _Fold:
    """The rounds of all cohorts within a stretch in which they keep their members."""

    rows: slice
    rounds: Floats
    """Rounds of each cohort, w x 1."""
    means: Floats
    """Mean residuals, w x d."""
    within: Floats
    """Sums of squares about these means."""
    total: Floats
    sampling: Floats

    @classmethod
    def of(cls, residuals: Residuals, window: int, begin: int, end: int) -> _Fold:
        padded = np.full(
            (-(-(end - begin) // window) * window, *residuals.values.shape[1:]), np.nan
        )
        padded[: end - begin] = residuals.values[begin:end]
        by_turn = padded.reshape(-1, window, padded.shape[1])
        heard = np.isfinite(by_turn[:, :, :1])
        rounds = np.maximum(heard.sum(axis=0), 1).astype(np.float64)
        means = np.where(heard, by_turn, 0.0).sum(axis=0) / rounds
        within = np.where(heard, (by_turn - means) ** 2, 0.0).sum(axis=0)
        total, sampling = (
            part[begin:end].mean(axis=0) for part in (residuals.total, residuals.sampling)
        )
        return cls(slice(begin, end), rounds, means, within, total, sampling)

    def evidence(self) -> Floats:
        """Return the log-likelihood of each share of the fleet that may be settled."""
        offset = SETTLED[:, :, None] * self.sampling
        rest = np.maximum(self.total - offset, 0.02 * self.total)
        between = log_density(self.means**2, offset + rest / self.rounds)
        inside = -0.5 * (self.within / rest + (self.rounds - 1) * np.log(rest))
        found: Floats = (between + inside).sum(axis=(1, 2))
        return found

    def explain(self, posterior: Floats, gain: float, offsets: Floats, explained: Floats) -> None:
        """Write offsets and explained variances into their rows."""
        window = len(self.means)
        speed = 2 * np.pi * np.fft.rfftfreq(window)[:, None]
        shares = speed**2 / (speed**2 + (FOLLOWED * gain) ** 2 + 1e-300)
        pattern = np.fft.irfft(shares * np.fft.rfft(self.means, axis=0), window, axis=0)
        kept = float(np.fft.irfft(shares[:, 0], window)[0])
        offset = SETTLED[:, :, None] * self.sampling
        rest = np.maximum(self.total - offset, 0.0)
        certain = self.rounds * offset / (self.rounds * offset + rest + 1e-300)
        weights = posterior[:, None, None]
        mean = np.sum(weights * certain, axis=0) * pattern
        doubt = np.sum(weights * (certain * pattern - mean) ** 2, axis=0)
        known = np.maximum(np.sum(weights * certain * offset, axis=0) * kept - doubt, 0.0)
        limit = self.sampling + self.total / self.rounds.min()
        possible = self.means.var(axis=0) <= (1 + 3 * np.sqrt(2 / window)) * limit
        turn = np.arange(self.rows.stop - self.rows.start) % window
        offsets[self.rows] = (mean * possible)[turn]
        explained[self.rows] = (known * possible)[turn]
