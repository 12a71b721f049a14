"""The lower bound on epsilon that follows from right guesses, with a stated confidence.

Each secret is a fair bit. If the protocol keeps to epsilon, then whatever the attacker has seen,
and whatever the other bits are, the odds of a bit stay within e^epsilon of 1 : 1. So each guess is
right with probability at most e^epsilon / (1 + e^epsilon), and the number of right ones among r is
stochastically no larger than that of r such coins, however guesses are correlated (Steinke, Nasr
and Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023, theorem 5.2). If more are
right than such coins would give, epsilon is larger. The attacker may abstain: only the guesses that
it makes count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Floats

DIGITS = 9
"""The number of decimals to which strengths of evidence are compared."""


@dataclass(frozen=True)
class Score:
    """The result of an attack: `right` of `guesses`, out of `secrets` that could be guessed."""

    right: int
    guesses: int
    secrets: int

    def lower_bound(self, error: float) -> float:
        """Return a lower bound on epsilon, which is wrong with probability at most `error`.

        >>> round(Score(right=731, guesses=1000, secrets=1000).lower_bound(0.001), 3)
        0.78
        """
        return epsilon_of(share_at_least(self.right, self.guesses, error))


def epsilon_of(share: float) -> float:
    """Return the epsilon at which this share of guesses can be right; 0 below one half."""
    return math.log(share / (1 - share)) if share > 0.5 else 0.0


def share_at_least(right: int, guesses: int, error: float) -> float:
    """Return the lower end of Clopper and Pearson's interval (Biometrika 26, 1934), one-sided.

    It is the share at which `right` or more of `guesses` would have a probability of `error`.

    >>> round(share_at_least(10, 10, 0.05), 4) == round(0.05 ** (1 / 10), 4)
    True
    """
    if right == 0:  # perhaps there are no guesses at all
        return 0.0
    successes = np.arange(right, guesses + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, guesses + 1)))])
    ways = factorials[guesses] - factorials[successes] - factorials[guesses - successes]
    low, high = 0.0, right / guesses
    for _ in range(60):
        middle = (low + high) / 2
        if _tail(ways, successes, guesses, middle) > math.log(error):
            high = middle
        else:
            low = middle
    return low


def _tail(ways: Floats, successes: NDArray[np.int64], guesses: int, share: float) -> float:
    """Return the log of the probability of these numbers of successes."""
    if share <= 0:
        return -math.inf
    terms = ways + successes * math.log(share) + (guesses - successes) * math.log1p(-share)
    largest = float(terms.max())
    return largest + math.log(float(np.exp(terms - largest).sum()))


def score(evidence: Sequence[float], truth: Sequence[bool], error: float) -> Score:
    """Guess the secrets with the strongest evidence, and score the guesses.

    `evidence` is a log likelihood ratio for each secret. The number of guesses is chosen by
    what the attacker expects from the evidence, never by the truth, or the bound would not hold.

    >>> score([2.0, -2.0, 0.0], [True, False, True], error=0.5)
    Score(right=2, guesses=2, secrets=3)
    """
    strength: Floats = np.abs(np.asarray(evidence, np.float64)).round(DIGITS)
    guessed = strength >= _threshold(strength, error)
    right = (np.asarray(evidence) > 0) == np.asarray(truth, np.bool_)
    return Score(int((right & guessed).sum()), int(guessed.sum()), len(strength))


def _threshold(strength: Floats, error: float) -> float:
    """Return the least strength of evidence to guess at, which maximises the expected bound."""
    ranked = np.sort(strength[strength > 0])[::-1]
    if not len(ranked):
        return math.inf
    expected = np.cumsum(1 / (1 + np.exp(-np.minimum(ranked, 700))))
    last_of_each = np.flatnonzero(np.append(ranked[:-1] != ranked[1:], True))

    def promise(last: int) -> float:
        return share_at_least(int(expected[last]), last + 1, error)

    return float(ranked[max(last_of_each.tolist(), key=promise)])
