"""Events: moments at which many labels jump at once, or one does, at a rate that is learnt."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.levels import JUMP_VARIANCE, log_density
from ldpstream.refine.packing import rounded
from ldpstream.refine.relabelling import Relabelling

RELATIVE = (0.01, 0.1, 1.0)
"""Variances of a label's move, in units of (f(1-f))^2, at an event that moves many labels."""
ABSOLUTE = 10.0
"""The variance of the move of a lone label, in units of its tally's variance."""
SIZES = len(RELATIVE) + 2
"""Moves have these sizes; the last one is JUMP_VARIANCE, anywhere."""
LONE = np.array([3, 3, 3, 3, 4])
"""The size of the move of lone labels, for each kind of event.

The first kinds move many labels by the relative size of the same place, and a few by a lone one;
the last two move lone labels only."""
MANY = np.array([0.5, 0.5, 0.5, 0.0, 0.0])
"""The share of the labels that an event moves by its relative size."""
FEW = np.array([0.5, 0.5, 0.5, 1.5, 1.0])
"""The number of labels that it moves by the lone size."""
FEWEST_LABELS = 3
"""A stream of fewer labels counts as one of three: in none of them is every label a lone one."""
RATES = np.array([1e-5, 1e-4, 1e-3, 1e-2, 5e-2])
"""Events of a kind in a timestamp, and how credible these rates are before any tally."""
RATE_PRIOR = np.array([0.4, 0.3, 0.2, 0.08, 0.02])
MEMORY = 0.998
LAGS = 3
"""Tallies after an event at which it is still weighed against calm. By then members follow."""
OUTLIER = 1e-4
"""The probability of a tally that nothing explains."""
HEDGE = 0.05
"""The probability, of an interval only, that a label has jumped alone just before a tally.

Where jumps are rare the learnt rates say that there was none, and they are right but for the few
moments that matter. A hedge costs width only where a label's last tallies look like a jump."""
HEDGED = 3
"""The kind of event that has lone moves of that size."""
BELIEVED = 0.99
"""A jump that is less likely widens the interval, and does not move the estimate: where nothing
jumps, some tally in a few thousand looks as if it did."""


class Jumps:
    """The probability that each label has jumped at one of the last tallies, and where it is then.

    An event may have come just before each of the last tallies. What it did to a label is one of
    three: nothing, a move in proportion to its size, or the move of a lone label. A label that has
    moved is estimated from the tallies since. All labels together show whether there was an event:
    one that moves each of 20 labels by one standard error is seen at once. The rate of each kind
    has a posterior of its own.

    >>> jumps, rng = Jumps(labels=20), np.random.default_rng(1)
    >>> known, noise = np.full(20, 0.05), np.full(20, 1e-4)
    >>> for step in (0.0, 0.0, 0.02):
    ...     jumps.pass_time()
    ...     tally = 0.05 + step * np.tile([1, -1], 10) + rng.normal(0, 0.01, 20)
    ...     jumps.learn(tally, noise, known, 0.1 * noise)
    >>> bool(jumps.new.mean() > 0.5)
    True
    """

    def __init__(self, labels: int) -> None:
        self._elapsed = 0
        """Timestamps since the last tally: an event may have come at any of them."""
        self._means = np.zeros((LAGS, SIZES, labels))
        self._variances = np.ones((LAGS, SIZES, labels))
        """Of labels that have moved, by the tallies since the event and the size of the move."""
        kinds = len(LONE)
        self._moved = np.zeros((LAGS, kinds, 2, labels))
        """Probabilities of both moves, given an event of a kind."""
        self._events = np.zeros((LAGS, kinds))
        """Probabilities of the events; what is left is calm."""
        self._ratios = np.zeros((LAGS, kinds))
        """Logarithms of the likelihood of all tallies since an event, relative to calm."""
        self._evidence = np.tile(np.log(RATE_PRIOR), (kinds, 1))
        """Of the rates."""

    @property
    def rates(self) -> Floats:
        """The expected number of events of each kind in a timestamp."""
        weights = np.exp(self._evidence - self._evidence.max(axis=1, keepdims=True))
        rates: Floats = weights @ RATES / weights.sum(axis=1)
        return rates

    @property
    def weights(self) -> Floats:
        """The probability that a label moved, by tallies since and size (LAGS x SIZES x labels)."""
        moved = self._events[:, :, None, None] * self._moved
        weights = moved[:, :, 0].copy()
        for kind, size in enumerate(LONE):
            weights[:, size] += moved[:, kind, 1]
        return weights

    @property
    def new(self) -> Floats:
        """The probability that a label has moved just before the last tally."""
        new: Floats = self.weights[0].sum(axis=0)
        return new

    def hedged(self, weights: Floats) -> Floats:
        """Return the weights of `joined` for an interval, in which jumps are never all but ruled
        out: of one label, whatever the others say, they have at least the prior `HEDGE`.
        """
        prior = _lone_shares(self._means.shape[-1])[HEDGED]
        moved = np.minimum(self._moved[:, HEDGED, 1], 1 - 1e-9)
        odds = HEDGE * (moved / (1 - moved)) * ((1 - prior) / prior)
        jumped, size = self.weights, LONE[HEDGED]
        jumped[:, size] = np.maximum(jumped[:, size], odds / (1 + odds.sum(axis=0)))
        return _beside(weights, jumped / np.maximum(jumped.sum(axis=(0, 1)), 1.0))

    def joined(self, *members: Floats) -> tuple[Floats, Floats, Floats]:
        """Return weights, means and variances of members, and those of labels that have moved."""
        labels = self._means.shape[-1]
        weights, means, variances = members
        return (
            _beside(weights, self.weights),
            np.concatenate([means, self._means.reshape(-1, labels)]),
            np.concatenate([variances, self._variances.reshape(-1, labels)]),
        )

    def pass_time(
        self, moved: Floats | float = 0.0, grown: Floats | float = 0.0, timestamps: int = 1
    ) -> None:
        """Let time pass, in which members predict that labels have `moved`, and their variance has
        `grown`.
        """
        self._elapsed += timestamps
        self._means = rounded(self._means + moved)
        self._variances = rounded(self._variances + grown)

    def learn(self, measured: Floats, noise: Floats, expected: Floats, spread: Floats) -> None:
        """Take in a tally with the variance `noise`, white movement included, where members
        `expected` it, with the variance `spread`.
        """
        calm = self._next_tally(noise, expected, spread)
        square, known = (measured - expected) ** 2, spread + noise
        still = np.logaddexp(
            np.log1p(-OUTLIER) + log_density(square, known),
            np.log(OUTLIER) + log_density(square, known + JUMP_VARIANCE),
        )
        error, total = measured - self._means, self._variances + noise
        ratio = np.exp(np.minimum(log_density(error**2, total) - still, 500.0))
        joint = self._moved * np.stack([ratio, ratio[:, LONE]], axis=2)
        density = np.maximum(1 - self._moved.sum(axis=2) + joint.sum(axis=2), 1e-300)
        self._moved = rounded(joint / density[:, :, None])
        self._weigh(np.log(density).sum(axis=2), calm)
        gain = self._variances / total
        self._means = rounded(self._means + gain * error)
        self._variances = rounded(gain * noise)

    def _next_tally(self, noise: Floats, expected: Floats, spread: Floats) -> float:
        """Make room for events before the next tally; return the probability of calm so far."""
        labels = len(expected)
        for kept in (self._means, self._variances, self._moved, self._events, self._ratios):
            kept[1:] = kept[:-1].copy()
        shares = np.clip(expected, 0.0, 1.0)
        relative = np.outer(RELATIVE, (shares * (1 - shares)) ** 2)
        lone = np.stack([ABSOLUTE * noise, np.full(labels, JUMP_VARIANCE)])
        self._means[0], self._variances[0] = expected, spread + np.concatenate([relative, lone])
        self._moved[0] = np.stack([MANY, _lone_shares(labels)], axis=1)[:, :, None]
        self._ratios[0] = 0.0
        rates = self.rates
        arrived = 1 - (1 - float(rates.sum())) ** self._elapsed
        self._elapsed = 0
        calm = max(1 - float(self._events[1:].sum()), 1e-12)
        self._events[0] = calm * arrived * rates / rates.sum()
        return calm * (1 - arrived)

    def _weigh(self, logs: Floats, calm: float) -> None:
        """Take in how much more likely each event made a tally than calm did, over all labels."""
        labels = self._means.shape[-1]
        # Frequencies sum to 1: of d labels only d - 1 speak for themselves.
        logs = logs * (1 - 1 / labels if labels > 1 else 1.0)
        self._ratios = self._ratios + logs
        believed = np.log(self._events + 1e-300) + logs
        still = np.log(calm + 1e-300)  # after a long silence nothing may be left of it
        top = max(float(believed.max()), still)
        likely = np.exp(believed - top)
        self._events = likely / (likely.sum() + np.exp(still - top))
        oldest = np.exp(np.minimum(self._ratios[-1], 50.0))[:, None]
        self._evidence = MEMORY * self._evidence + (1 - MEMORY) * np.log(RATE_PRIOR)
        self._evidence += np.log1p(RATES * (oldest - 1))

    def state(self) -> dict[str, Floats]:
        return {
            "means": self._means,
            "variances": self._variances,
            "moved": self._moved,
            "events": self._events,
            "ratios": self._ratios,
            "evidence": self._evidence,
            "elapsed": np.array([float(self._elapsed)]),
        }

    def restore(self, state: dict[str, Floats]) -> None:
        self._means, self._variances = state["means"], state["variances"]
        self._moved, self._events = state["moved"], state["events"]
        self._ratios, self._evidence = state["ratios"], state["evidence"]
        self._elapsed = int(state["elapsed"][0])

    def relabel(self, move: Relabelling) -> None:
        """Go on with other labels; a new one has not moved."""
        before = _lone_shares(self._means.shape[-1])[HEDGED]
        self._means = move.summed(self._means)
        self._variances = move.summed(self._variances, 1.0)
        self._moved = move.mean(self._moved, 0.0)
        # Of another number of labels another share is alone; what tallies said of them stays.
        after = _lone_shares(self._means.shape[-1])[HEDGED]
        odds = after / (1 - after) * (1 - before) / before
        moved = self._moved[:, HEDGED, 1]
        self._moved[:, HEDGED, 1] = odds * moved / (1 - moved + odds * moved)


def _lone_shares(labels: int) -> Floats:
    """Return the share of the labels that each kind of event moves by the lone size."""
    shares: Floats = FEW / max(labels, FEWEST_LABELS)
    return shares


def _beside(weights: Floats, jumped: Floats) -> Floats:
    """Return the weights of members, less those of jumps, and these."""
    jumped = jumped.reshape(-1, weights.shape[1])
    return np.concatenate([(1 - jumped.sum(axis=0)) * weights, jumped])
