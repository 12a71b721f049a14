"""Local levels that may jump, for frequencies that stay, wander or step."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.packing import rounded
from ldpstream.refine.relabelling import Relabelling

PROCESS_NOISES = (0.0, 1e-6, 1e-5, *np.logspace(-4, 3, 12).tolist())
"""Variance of a level's move in one timestamp, in units of a tally's variance.

The fastest are for tallies of a whole population, whose error is far smaller than the moves."""
HAZARD = 1e-4
"""Prior probability that a level jumps at a given timestamp: rare, but never impossible."""
JUMP_VARIANCE = 0.1
"""Variance of a jump: a frequency may go anywhere in [0, 1]."""
NEGLIGIBLE = 1e-3
"""A jump less likely than this, once the measurement is known, is ignored. Merging it would widen a
level that stays at every measurement, and its interval would be too wide for ever."""
STIR = 1000
"""Timestamps in which a level jumps as likely as when labels come in that take shares from it."""


class LevelBank:
    """A Kalman filter for each process noise and label; a state is one number, so all are arrays.

    Each measurement is explained in two ways, by the old level or by one that has just jumped;
    the two posteriors are merged into one Gaussian with their mean and variance (a generalised
    pseudo-Bayes estimator of order 1). After a real jump the past is forgotten at once.
    """

    def __init__(self, start: Floats, start_variance: float, hazard: float = HAZARD) -> None:
        members = len(PROCESS_NOISES)
        self._hazard = hazard
        self._elapsed = 0
        """Timestamps since the last measurement: a jump may have come at any of them."""
        self._noises = np.array(PROCESS_NOISES)[:, None]
        self.means = np.repeat(start[None, :], members, axis=0)
        self.variances = np.full_like(self.means, start_variance)

    def predict(self, scale: float, timestamps: int = 1) -> None:
        """Let time pass; `scale` is the variance of a typical tally."""
        self._elapsed += timestamps
        self.variances = self.variances + self._noises * (timestamps * scale)

    def update(self, measured: Floats, variance: Floats) -> Floats:
        """Take in a measurement; return the log-likelihood that each member gave it."""
        error = measured - self.means
        spread_stay = self.variances + variance
        spread_jump = spread_stay + JUMP_VARIANCE
        stayed = self._elapsed * np.log1p(-self._hazard)
        self._elapsed = 0
        stay = stayed + log_density(error**2, spread_stay)
        jump = np.log(-np.expm1(stayed)) + log_density(error**2, spread_jump)
        likelihood: Floats = np.logaddexp(stay, jump)
        jumped = np.exp(jump - likelihood)
        jumped[jumped < NEGLIGIBLE] = 0.0
        gain_stay = self.variances / spread_stay
        gain_jump = (self.variances + JUMP_VARIANCE) / spread_jump
        gain = gain_stay + jumped * (gain_jump - gain_stay)
        apart = (gain_jump - gain_stay) * error
        self.means = rounded(self.means + gain * error)
        self.variances = rounded(variance * gain + jumped * (1 - jumped) * apart**2)
        return likelihood

    def state(self) -> dict[str, Floats]:
        elapsed = np.array([float(self._elapsed)])
        return {"means": self.means, "variances": self.variances, "elapsed": elapsed}

    def restore(self, state: dict[str, Floats]) -> None:
        self.means, self.variances = state["means"], state["variances"]
        self._elapsed = int(state["elapsed"][0])

    def relabel(self, move: Relabelling, start: float, start_variance: float) -> None:
        """Go on with other labels; a new one begins at `start`."""
        self.means = move.summed(self.means, start)
        self.variances = move.summed(self.variances, start_variance)
        self._elapsed += STIR * bool(move.new.any())


def log_density(square: Floats, variance: Floats) -> Floats:
    """Return the log-density of a normal at a squared deviation, less a constant that all share."""
    density: Floats = -0.5 * (square / variance + np.log(variance))
    return density
