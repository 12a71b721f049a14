"""The weight of each member of a bank, label by label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Floats
from ldpstream.refine.packing import rounded
from ldpstream.refine.relabelling import Relabelling

Classes = NDArray[np.int64]
"""The size class of each label."""

SHARE = 5e-4
"""Share of the evidence that is reset at each timestamp, so that no member is ever lost (the fixed
share of Herbster and Warmuth 1998)."""
PRIOR_LABELS = 4.0
"""The number of labels that the prior counts as, when a label learns from the others."""


class Weights:
    """Posterior weights of members; columns are labels.

    Labels of one stream tend to move alike: where most wander, one that seems to stand still is
    likely to wander too. So the prior of a label is learnt from all others, as in a mixture whose
    shares are unknown (an expectation-maximisation step per timestamp). Its own weights are left
    out, or it would confirm itself; and frequencies sum to 1, so that only d - 1 of d labels count.

    >>> weights = Weights(np.array([0.5, 0.5]), labels=100)
    >>> hint = np.full((2, 100), np.log([[1.0], [1.1]]))
    >>> for _ in range(20):
    ...     weights.learn(hint, np.zeros(100, np.int64))
    >>> alone = 1.1**20 / (1 + 1.1**20)
    >>> bool(weights.posterior[1, 0] > alone)
    True
    """

    def __init__(self, prior: Floats, labels: int, share: float = SHARE) -> None:
        self._prior = prior[:, None]
        self._share = share
        self.evidence = np.ones((len(prior), labels))
        """Likelihood of all measurements, relative to the one that the posterior gave them."""
        self.posterior = np.repeat(self._prior, labels, axis=1)

    def pass_time(self, timestamps: int = 1) -> None:
        """Let time pass: earlier evidence counts a little less."""
        kept = (1 - self._share) ** timestamps
        self.evidence = kept * self.evidence + (self._share if timestamps == 1 else 1 - kept)

    def learn(self, log_likelihoods: Floats, classes: Classes) -> None:
        """Take in the log-likelihood that each member gave a measurement in advance.

        Labels learn from those of the same class.
        """
        evidence = self.evidence * np.exp(log_likelihoods - log_likelihoods.max(axis=0))
        believed = self._pooled_prior(classes) * evidence
        total = believed.sum(axis=0)
        self.posterior = rounded(believed / total)
        self.evidence = rounded(evidence / total)

    def _pooled_prior(self, classes: Classes) -> Floats:
        labels = self.posterior.shape[1]
        if labels <= 2:
            return self._prior
        member_of = np.eye(classes.max() + 1)[classes]
        together = (self.posterior @ member_of)[:, classes]
        others = member_of.sum(axis=0)[classes] - 1
        # Frequencies sum to 1: of all d labels together only d - 1 speak for themselves.
        speaking = others - (others == labels - 1)
        known = PRIOR_LABELS * self._prior
        learnt = (together - self.posterior) * (speaking / np.maximum(others, 1))
        pooled: Floats = (known + learnt) / (PRIOR_LABELS + speaking)
        return pooled

    def replace_last(self, prior: Floats, members: int) -> None:
        """Replace all but the first `members` by new ones, with the weights of `prior`."""
        labels = self.posterior.shape[1]
        self._prior = prior[:, None]
        newcomers = np.ones((len(prior) - members, labels))
        share = self._prior[members:]
        kept = self.posterior[:members] / self.posterior[:members].sum(axis=0)
        self.posterior = np.concatenate([kept * (1 - share.sum()), share * newcomers])
        self.evidence = np.concatenate([self.evidence[:members], newcomers])

    def relabel(self, move: Relabelling) -> None:
        """Go on with other labels; a new one begins with the prior."""
        self.posterior = move.mean(self.posterior, self._prior)
        self.evidence = move.mean(self.evidence, 1.0)
