"""Cohorts in hindsight: the offsets of the groups that take turns, from all of their rounds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.cohorts import MOST_ROUNDS, SETTLED, SETTLED_PRIOR, ReportingFleet
from ldpstream.refine.levels import log_density

FEWEST_ROUNDS = 3
WORTH = 0.05
"""The share of the fleet that must keep its values for offsets to be worth another run."""
LEAST_REST = 0.02
"""The least share of a tally's variance that does not come again in the next round."""


@dataclass(frozen=True)
class TallyRows:
    """The tallies of a stretch, T x d, and their variances."""

    values: Floats
    """Where nobody reported, what the tallies before and after say."""
    noise: Floats
    sampling: Floats
    """The part of `noise` that is due to who was asked."""


@dataclass(frozen=True)
class TurnOffsets:
    """What of the tallies is due to whose turn it was, T x d."""

    settled: float
    """The share of the fleet that keeps its values."""
    offsets: Floats
    explained: Floats
    """The variance of the tallies that the offsets explain."""


def turns(tallies: TallyRows, fleet: ReportingFleet, since: int = 0) -> TurnOffsets | None:
    """Return what is known of the cohorts, if they are worth knowing.

    `since` is the number of timestamps before.
    """
    window, (timestamps, labels) = fleet.window, tallies.values.shape
    if window is None or window < 2 or timestamps < FEWEST_ROUNDS * window:
        return None
    epoch = window * int(min(MOST_ROUNDS, (fleet.reshuffle or np.inf) // window))
    borders = [0, *range(epoch - since % epoch, timestamps, epoch), timestamps]
    folds = [_Fold.of(tallies, window, *ends) for ends in pairwise(borders)]
    speaking = 1 - 1 / labels if labels > 1 else 1.0
    evidence = np.log(SETTLED_PRIOR) + speaking * sum(fold.evidence() for fold in folds)
    posterior = np.exp(evidence - evidence.max())
    posterior /= posterior.sum()
    settled = float(posterior @ SETTLED[:, 0])
    if settled < WORTH:
        return None
    offsets, explained = np.zeros_like(tallies.values), np.zeros_like(tallies.values)
    for fold in folds:
        fold.explain(posterior, offsets, explained)
    return TurnOffsets(settled, offsets, explained)


@dataclass(frozen=True)
class _Fold:
    """The rounds of all cohorts within a stretch in which they keep their members."""

    rows: slice
    rounds: Floats
    """Rounds of each cohort, w x 1."""
    means: Floats
    """Mean residuals, w x d; 0 of a cohort without a round."""
    within: Floats
    """Sums of squares about these means."""
    noise: Floats
    sampling: Floats

    @classmethod
    def of(cls, tallies: TallyRows, window: int, begin: int, end: int) -> _Fold:
        """Fold how far each tally is off the mean of the window around it.

        A window has each cohort once, so that its mean is the fleet's. What a model makes of the
        tallies would not do: it may have followed the cohorts.
        """
        rows = slice(begin, end)
        padded = np.full((-(-(end - begin) // window) * window, tallies.values.shape[1]), np.nan)
        padded[: end - begin] = tallies.values[rows] - _around(tallies.values[rows], window)
        by_turn = padded.reshape(-1, window, padded.shape[1])
        known = np.isfinite(by_turn[:, :, :1])
        rounds = known.sum(axis=0).astype(np.float64)
        means = np.where(known, by_turn, 0.0).sum(axis=0) / np.maximum(rounds, 1)
        within = np.where(known, (by_turn - means) ** 2, 0.0).sum(axis=0)
        noise, sampling = (part[rows].mean(axis=0) for part in (tallies.noise, tallies.sampling))
        return cls(rows, rounds, means, within, noise, sampling)

    @property
    def _rest(self) -> Floats:
        """The variance of a residual about its cohort's offset, for each share that may be settled.

        The truth moves, too: it is at least the variance that is seen within the cohorts.
        """
        again = np.maximum(self.rounds - 1, 0.0).sum()
        seen = self.within.sum(axis=0) / max(again, 1.0)
        new = np.maximum(self.noise - SETTLED * self.sampling, LEAST_REST * self.noise)
        rest: Floats = np.maximum(new, seen)[:, None]
        return rest

    def evidence(self) -> Floats:
        """Return the log-likelihood of each share of the fleet that may be settled."""
        rest, heard = self._rest, self.rounds > 0
        expected = SETTLED[:, :, None] * self.sampling + rest / np.maximum(self.rounds, 1)
        between = np.where(heard, log_density(self.means**2, expected), 0.0)
        again = np.maximum(self.rounds - 1, 0.0)
        inside = -0.5 * (self.within / rest + again * np.log(rest))
        found: Floats = (between + inside).sum(axis=(1, 2))
        return found

    def explain(self, posterior: Floats, offsets: Floats, explained: Floats) -> None:
        """Write offsets and explained variances into their rows."""
        window, weights = len(self.means), posterior[:, None, None]
        offset, rest = SETTLED[:, :, None] * self.sampling, self._rest
        certain = self.rounds * offset / (self.rounds * offset + rest)
        mean = np.sum(weights * certain, axis=0) * self.means
        doubt = np.sum(weights * (certain * self.means - mean) ** 2, axis=0)
        # The mean of all cohorts is the fleet's: one of them follows from the others.
        known = np.sum(weights * certain * offset, axis=0) * (1 - 1 / window)
        usual = np.sum(weights * rest, axis=0)
        limit = self.sampling + usual / max(float(self.rounds.min()), 1.0)
        possible = self.means.var(axis=0) <= (1 + 3 * np.sqrt(2 / window)) * limit
        turn = np.arange(self.rows.stop - self.rows.start) % window
        offsets[self.rows] = (mean * possible)[turn]
        explained[self.rows] = (np.maximum(known - doubt, 0.0) * possible)[turn]


def _around(values: Floats, window: int) -> Floats:
    """Return the mean of the window around each row; NaN where it is not whole.

    Where a window has no row in its middle, the rows at both of its ends count half.

    >>> _around(np.arange(6.0)[:, None] ** 2, 2).T.round(2).tolist()
    [[nan, 1.5, 4.5, 9.5, 16.5, nan]]
    """
    around, reach = np.full_like(values, np.nan), window // 2
    if len(values) <= 2 * reach:
        return around
    sums = np.cumsum(np.concatenate([np.zeros_like(values[:1]), values]), axis=0)
    whole = (sums[window:] - sums[:-window]) / window
    middle = whole if window % 2 else (whole[:-1] + whole[1:]) / 2
    around[reach : len(values) - reach] = middle
    return around
