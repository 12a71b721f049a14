"""Movement that no member predicts: white movement, and surprises."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.kin import Kin
from ldpstream.refine.levels import log_density
from ldpstream.refine.packing import rounded
from ldpstream.refine.relabelling import Relabelling
from ldpstream.refine.weights import Classes, Weights

WHITE = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Variances that a label's white movement may have, in units of a tally's variance."""
KIN = (0.5, 2.0)
"""More of them, in units of what a label lacks if it moves as the others do (`Kin`)."""
WHITE_PRIOR = (0.4, 0.01, 0.01, 0.01, 0.01, 0.01, 0.2, 0.35)
WHITE_SHARE = 1e-3
"""Share of the evidence that is reset at each timestamp. Little movement takes long to be seen."""
BOUND = 9.0
"""A squared innovation counts for at most so many variances: one jump is no white movement."""
SURPRISES = (0.0, 3.0, 10.0, 30.0, 100.0)
"""Variances, in the same unit, of a truth that has jumped and that members have yet to follow."""
SURPRISE_PRIOR = (0.96, 0.01, 0.01, 0.01, 0.01)
SURPRISE_SHARE = 0.01
"""Surprises come and go within a few timestamps."""


class Movement:
    """What the innovations of each label show to be missing in the variance of its prediction.

    A truth is the state of a model plus a white movement, which is new at each timestamp. The
    squared innovations are then larger than the members' variance and the known noise explain, and
    they can be observed. Surprises are the same with a short memory: they come with a jump, and
    give an interval heavy tails. Their weights, like those of members, are learnt from all labels
    of a size class, and so is the rate at which a stream surprises.

    >>> moving, rng = Movement(labels=1), np.random.default_rng(1)
    >>> for error in rng.normal(0, np.sqrt(2.0), 200):
    ...     one = np.ones(1)
    ...     moving.learn(np.array([error]), 0 * one, one, 0.5 * one, 1.0, np.zeros(1, np.int64))
    >>> bool(0.5 < moving.variance[0] < 2.0)
    True
    """

    def __init__(self, labels: int) -> None:
        self._white = Weights(np.array(WHITE_PRIOR), labels, WHITE_SHARE)
        self._surprise = Weights(np.array(SURPRISE_PRIOR), labels, SURPRISE_SHARE)
        self._kin = Kin(labels)
        self._sizes = np.zeros((len(WHITE_PRIOR), labels))
        """The variances that go with the weights of the white movement."""

    def pass_time(self, timestamps: int = 1) -> None:
        self._white.pass_time(timestamps)
        self._surprise.pass_time(timestamps)

    def learn(
        self,
        error: Floats,
        spread: Floats,
        noise: Floats,
        shares: Floats,
        scale: float,
        classes: Classes,
        usual: Floats | float = 1.0,
    ) -> None:
        """Take in innovations from `shares`, of variance `spread` + `noise` if nothing lacks.

        Each counts by `usual`, the probability that it is not due to a jump.
        """
        known = spread + noise
        own = np.repeat(np.array(WHITE)[:, None] * scale, len(error), axis=1)
        kin = np.outer(KIN, self._kin.missing(spread, shares))
        self._sizes = rounded(np.concatenate([own, kin]))
        squares = np.minimum(error**2, BOUND * (known + self.variance))
        self._white.learn(usual * log_density(squares, known + self._sizes), classes)
        sizes = self.variance + np.array(SURPRISES)[:, None] * scale
        self._surprise.learn(usual * log_density(error**2, known + sizes), classes)
        self._kin.learn(shares + error, noise, shares)

    @property
    def variance(self) -> Floats:
        """The expected variance of each label's white movement."""
        expected: Floats = np.sum(self._white.posterior * self._sizes, axis=0)
        return expected

    @property
    def surprise(self) -> Floats:
        """The weights of the variances in SURPRISES."""
        return self._surprise.posterior

    def pull(self, known: Floats) -> Floats:
        """Return which share of what the update has left of a deviation is white movement.

        Only movement that a label has shown itself counts. What its kin do says how far it may be
        off, and widens its interval; as a guess where it is, a tally of a rare label is noise.
        """
        own = slice(len(WHITE))
        weights, sizes = self._white.posterior[own], self._sizes[own]
        pull: Floats = np.sum(weights * sizes / (known + sizes), axis=0)
        return pull

    def state(self) -> dict[str, Floats]:
        return {
            "white": self._white.posterior,
            "white_evidence": self._white.evidence,
            "surprise": self._surprise.posterior,
            "surprise_evidence": self._surprise.evidence,
            "sizes": self._sizes[:, :1],
            "kin": self._sizes[-1:],
        } | self._kin.state()

    def restore(self, state: dict[str, Floats]) -> None:
        self._white.posterior, self._white.evidence = state["white"], state["white_evidence"]
        self._surprise.posterior = state["surprise"]
        self._surprise.evidence = state["surprise_evidence"]
        self._set_sizes(state["sizes"], state["kin"][0])
        self._kin.restore(state)

    def relabel(self, move: Relabelling) -> None:
        """Go on with other labels."""
        self._white.relabel(move)
        self._surprise.relabel(move)
        self._kin.relabel(move)
        self._set_sizes(self._sizes[:, :1], move.summed(self._sizes[-1]))

    def _set_sizes(self, own: Floats, last: Floats) -> None:
        """Set all sizes from those of one label, and what each label has of the last of `KIN`."""
        own = np.repeat(own[: len(WHITE)], len(last), axis=1)
        self._sizes = rounded(np.concatenate([own, np.outer(KIN, last / KIN[-1])]))
