"""What labels of one stream say about each other: how far they move in relation to their size."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.packing import rounded
from ldpstream.refine.relabelling import Relabelling

MEMORY = 0.995
SPREAD = 0.25
"""Relative variance up to which a label counts the more, the better its movement can be seen."""


class Kin:
    """The variance of labels about their long means, relative to (f(1-f))^2, over all labels.

    It is seen in the larger labels. A rare one moves below the noise, and a filter that follows
    nothing takes it for still; here it learns what to expect. Tallies are compared with their long
    mean and their noise is taken off, so that no model takes part in it.
    """

    def __init__(self, labels: int) -> None:
        self._tallies = 0
        self._usual = np.zeros(labels)
        """Long means of the tallies; NaN of a label that has none yet."""
        self._explained = np.zeros(labels)
        """How much of the variance about them the predictions explain: that much is not missing."""
        self._seen, self._possible = 0.0, 0.0

    def missing(self, spread: Floats, shares: Floats) -> Floats:
        """Return the variance that each label's predictions lack, if it moves as the others do."""
        if len(shares) <= 2 or not self._possible:
            return np.zeros_like(spread)
        alike = max(self._seen / self._possible, 0.0)
        lacking: Floats = alike * relative(shares) ** 2 - self._explained - spread
        return np.maximum(lacking, 0.0)

    def learn(self, measured: Floats, noise: Floats, shares: Floats) -> None:
        """Take in a tally, its variance and what was predicted."""
        new = max(1 - MEMORY, 1 / (1 + self._tallies))
        first = np.isnan(self._usual)
        self._usual = np.where(first, measured, self._usual)
        if self._tallies:
            size = relative(shares)
            weights = (size / (noise + SPREAD * size**2)) ** 2
            moved = (measured - self._usual) ** 2 - noise
            self._seen = MEMORY * self._seen + float(np.sum(weights * moved))
            self._possible = MEMORY * self._possible + float(np.sum(weights * size**2))
            # (measured - usual)^2 - (measured - shares)^2, in which the noise cancels. Predictions
            # that wander with the noise explain less than they move, or even less than nothing.
            explained = (shares - self._usual) * (2 * measured - shares - self._usual)
            explained[first] = 0.0
            self._explained = rounded(self._explained + new * (explained - self._explained))
        self._usual = rounded(self._usual + new * (measured - self._usual))
        self._tallies += 1

    def state(self) -> dict[str, Floats]:
        sums = np.array([self._tallies, self._seen, self._possible])
        return {"usual": self._usual, "followed": self._explained, "sums": sums}

    def restore(self, state: dict[str, Floats]) -> None:
        # Earlier versions kept how far predictions moved under this name. The memory outlives it.
        self._usual, self._explained = state["usual"], state["followed"]
        self._tallies = int(state["sums"][0])
        self._seen, self._possible = (float(part) for part in state["sums"][1:])

    def relabel(self, move: Relabelling) -> None:
        self._usual = move.summed(self._usual, np.nan)
        self._explained = move.summed(self._explained)


def relative(shares: Floats) -> Floats:
    """Return f(1-f), the size of a label's steps where its logit moves at a given pace."""
    shares = np.clip(shares, 0.0, 1.0)
    return shares * (1 - shares)
