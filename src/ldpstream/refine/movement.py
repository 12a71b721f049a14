"""Movement that no member predicts: white movement, and surprises."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.levels import log_density
from ldpstream.refine.weights import Classes, Weights

WHITE = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Variances that a label's white movement may have, in units of a tally's variance."""
KIN = (0.5, 2.0)
"""More of them, in units of what other labels, relative to their size, would lead to expect."""
WHITE_PRIOR = (0.35, 0.02, 0.02, 0.02, 0.02, 0.02, 0.2, 0.35)
WHITE_SHARE = 1e-3
"""Share of the evidence that is reset at each timestamp. Little movement takes long to be seen."""
BOUND = 9.0
"""A squared innovation counts for at most so many variances: one jump is no white movement."""
KIN_MEMORY = 0.995
KIN_SPREAD = 0.25
"""Relative variance up to which a label counts the more, the better its movement can be seen."""
SURPRISES = (0.0, 3.0, 10.0, 30.0, 100.0)
"""Variances, in the same unit, of a truth that has jumped and that members have yet to follow."""
SURPRISE_PRIOR = (0.96, 0.01, 0.01, 0.01, 0.01)
SURPRISE_SHARE = 0.01
"""Surprises come and go within a few timestamps."""


class Movement:
    """What the innovations of each label show to be missing in the variance of its prediction.

    A truth is the state of a model plus a white movement, which is new at each timestamp. The
    squared innovations are then larger than the members' variance and the known noise explain, and
    they can be observed. Little is seen of a rare label; but labels of one stream tend to move
    alike in relation to f(1-f), so that the others say what to expect of it. Surprises are the
    same with a short memory: they come with a jump, and give an interval heavy tails.

    >>> moving, rng = Movement(labels=1), np.random.default_rng(1)
    >>> for error in rng.normal(0, np.sqrt(2.0), 200):
    ...     one = np.ones(1)
    ...     moving.learn(np.array([error]), 0 * one, one, 0.5 * one, 1.0, np.zeros(1, np.int64))
    >>> bool(0.5 < moving.variance[0] < 2.0)
    True
    """

    def __init__(self, labels: int) -> None:
        self.white = Weights(np.array(WHITE_PRIOR), labels, WHITE_SHARE)
        self.surprise = Weights(np.array(SURPRISE_PRIOR), labels, SURPRISE_SHARE)
        self._sizes = np.zeros((len(WHITE_PRIOR), labels))
        """The variances that go with the weights of the white movement."""
        self._seen, self._possible = 0.0, 0.0

    def pass_time(self) -> None:
        self.white.pass_time()
        self.surprise.pass_time()

    def learn(
        self,
        error: Floats,
        spread: Floats,
        noise: Floats,
        shares: Floats,
        scale: float,
        classes: Classes,
    ) -> None:
        """Take in innovations, whose variance is `spread` + `noise` if members predict it all."""
        known = spread + noise
        relative = np.clip(shares, 0.0, 1.0) * (1 - np.clip(shares, 0.0, 1.0))
        kin = np.maximum(self._alike * relative**2 - spread, 0.0)
        own = np.repeat(np.array(WHITE)[:, None] * scale, len(error), axis=1)
        self._sizes = np.concatenate([own, np.outer(KIN, kin)])
        squares = np.minimum(error**2, BOUND * (known + self.variance))
        self.white.learn(log_density(squares, known + self._sizes), classes)
        sizes = self.variance + np.array(SURPRISES)[:, None] * scale
        self.surprise.learn(log_density(error**2, known + sizes), classes)
        if len(error) > 2:
            weights = (relative / (noise + KIN_SPREAD * relative**2)) ** 2
            self._seen = KIN_MEMORY * self._seen + float(np.sum(weights * (squares - noise)))
            self._possible = KIN_MEMORY * self._possible + float(np.sum(weights * relative**2))

    @property
    def _alike(self) -> float:
        """The variance of predictions relative to (f(1-f))^2, by least squares over all labels."""
        return max(self._seen / self._possible, 0.0) if self._possible else 0.0

    @property
    def variance(self) -> Floats:
        """The expected variance of each label's white movement."""
        expected: Floats = np.sum(self.white.posterior * self._sizes, axis=0)
        return expected

    def pull(self, known: Floats) -> Floats:
        """Return which share of what the update has left of a deviation is white movement."""
        pull: Floats = np.sum(self.white.posterior * self._sizes / (known + self._sizes), axis=0)
        return pull

    def state(self) -> dict[str, Floats]:
        return {
            "white": self.white.posterior,
            "white_evidence": self.white.evidence,
            "surprise": self.surprise.posterior,
            "surprise_evidence": self.surprise.evidence,
            "sizes": self._sizes,
            "kin": np.array([self._seen, self._possible]),
        }

    def restore(self, state: dict[str, Floats]) -> None:
        self.white.posterior, self.white.evidence = state["white"], state["white_evidence"]
        self.surprise.posterior = state["surprise"]
        self.surprise.evidence = state["surprise_evidence"]
        self._sizes = state["sizes"]
        self._seen, self._possible = (float(part) for part in state["kin"])
