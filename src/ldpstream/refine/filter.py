"""A causal estimate of the current histogram from all tallies so far, with nothing to tune."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.errors import Mistake, Problem
from ldpstream.refine.intervals import mixture_interval
from ldpstream.refine.levels import PROCESS_NOISES, LevelBank
from ldpstream.refine.linear import (
    SEASON_NOISES,
    TREND_NOISES,
    LinearBank,
    Model,
    season,
    trend,
)
from ldpstream.refine.packing import pack, unpack
from ldpstream.refine.periods import PeriodFinder
from ldpstream.refine.weights import Weights

TREND_PRIOR = 0.6
SEASON_PRIOR = 0.03
STILL_PRIOR = 0.3
"""Share of the levels' prior weight for the one without process noise: many labels hardly move."""
SAME_PERIOD = 0.05
LAYOUT = 3
"""Version of a saved state: raised whenever members or what is saved of them change."""


class Filter:
    """A bank of levels, trends and seasons, weighted by how well they predicted each label.

    Members see the same measurements; a member's weight is multiplied by the likelihood it gave to
    each, and labels learn from each other (`Weights`). The estimate is the mean over members, its
    variance theirs plus their disagreement. Cost and state are O(labels x members).

    >>> smooth = Filter(labels=2)
    >>> for noisy in (0.31, 0.28, 0.30, 0.32):
    ...     smooth.update(np.array([1 - noisy, noisy]), np.full(2, 4e-4))
    >>> smooth.estimate.round(2).tolist(), bool(smooth.variance[0] < 4e-4)
    ([0.7, 0.3], True)
    """

    def __init__(self, labels: int) -> None:
        self.labels = labels
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget all tallies."""
        labels = self.labels
        self._scale: float | None = None
        """Variance of the first tally, the unit of all process noises."""
        self._period: float | None = None
        self._periods = PeriodFinder(labels)
        # Of a single bin, a mean, nothing is known except that it lies in [0, 1].
        self.estimate = np.full(labels, 1 / max(labels, 2))
        self.variance = np.full(labels, self._start_variance)

    @property
    def _start_variance(self) -> float:
        """The variance before the first tally, of the frequency of one of `labels` labels."""
        return (1 - 1 / self.labels) / self.labels if self.labels > 1 else 1.0

    @property
    def tallies(self) -> int:
        """The number of tallies taken in so far."""
        return self._periods.seen

    def pass_time(self, timestamps: int = 1) -> None:
        """Let time pass without a measurement."""
        if self._scale is None or timestamps == 0:
            return
        for _ in range(timestamps):
            self._predict(self._scale)
        self._mix()

    def _predict(self, scale: float) -> None:
        self._weights.pass_time()
        for bank in self._banks():
            bank.predict(scale)

    def update(self, measured: Floats, variance: Floats) -> None:
        """Take in one timestamp's measurement: unbiased frequencies and their variances."""
        scale = self._scale or self._begin(float(variance.mean()))
        self._predict(scale)
        likelihoods = np.concatenate([bank.update(measured, variance) for bank in self._banks()])
        self._weights.learn(likelihoods)
        self._mix()
        self._periods.add(measured)
        if self._periods.due():
            self._follow(self._periods.period())

    def _begin(self, scale: float) -> float:
        self._scale = scale
        self._levels = LevelBank(self.estimate, self._start_variance)
        trends = [trend(noise) for noise in TREND_NOISES]
        self._trends = LinearBank(trends, self.estimate, self._start_variance, scale)
        self._seasons: LinearBank | None = None
        self._weights = Weights(self._priors(), self.labels)
        return scale

    def _banks(self) -> list[LevelBank | LinearBank]:
        banks: list[LevelBank | LinearBank] = [self._levels, self._trends]
        return banks if self._seasons is None else [*banks, self._seasons]

    def _priors(self) -> Floats:
        """Return the prior weights of all members."""
        levels = 1 - TREND_PRIOR - SEASON_PRIOR
        wandering = _even(levels * (1 - STILL_PRIOR), len(PROCESS_NOISES) - 1)
        parts = [levels * STILL_PRIOR, *wandering, *_even(TREND_PRIOR, len(TREND_NOISES))]
        if self._seasons is not None:
            parts += _even(SEASON_PRIOR, len(SEASON_NOISES))
        priors: Floats = np.array(parts) / sum(parts)
        return priors

    def _mix(self) -> None:
        """Set the estimate to the mean over members, and its variance to that of the mixture."""
        means, variances = self._members()
        weights = self._weights.posterior
        self.estimate = np.sum(weights * means, axis=0)
        apart = (means - self.estimate) ** 2
        self.variance = np.sum(weights * (variances + apart), axis=0)

    def _members(self) -> tuple[Floats, Floats]:
        means = np.concatenate([bank.means for bank in self._banks()])
        return means, np.concatenate([bank.variances for bank in self._banks()])

    def interval(self) -> tuple[Floats, Floats]:
        """Return the interval that contains each frequency with probability `intervals.LEVEL`."""
        if self._scale is None:
            return np.zeros(self.labels), np.ones(self.labels)
        return mixture_interval(self._weights.posterior, *self._members())

    def _follow(self, period: float | None) -> None:
        """Use a period that was found: refine the current seasons, or start new ones."""
        if period is None or self._scale is None:
            return
        models = _seasons(period)
        known = self._period
        self._period = period
        if self._seasons and known and abs(period - known) <= SAME_PERIOD * known:
            self._seasons.set_models(models)
            return
        spread = float(self.variance.mean())
        self._seasons = LinearBank(models, self.estimate, spread, self._scale)
        others = len(self._levels.means) + len(self._trends.means)
        self._weights.replace_last(self._priors(), others)

    def save(self) -> dict[str, Any]:
        """Return the whole state as JSON, which restores exactly."""
        if self._scale is None:
            return {"labels": self.labels}
        return {
            "layout": LAYOUT,
            "labels": self.labels,
            "scale": self._scale,
            "period": self._period,
            "seen": self._periods.seen,
            "history": pack(self._periods.history),
            "estimate": pack(self.estimate),
            "variance": pack(self.variance),
            "weights": pack(self._weights.posterior),
            "evidence": pack(self._weights.evidence),
            "banks": [
                {name: pack(array) for name, array in bank.state().items()}
                for bank in self._banks()
            ],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save` returned.

        A state with another number of labels is refused. A state of an older version is not read:
        the filter begins anew, which costs accuracy for a while and no privacy.
        """
        if saved["labels"] != self.labels:
            raise Mistake(
                Problem.STATE_MISMATCH,
                found=f"labels {saved['labels']}",
                expected=f"labels {self.labels}",
            )
        self._begin_anew()
        if saved.get("layout") != LAYOUT:
            return
        self._begin(saved["scale"])
        self._period = saved["period"]
        if len(saved["banks"]) > len(self._banks()):
            models = _seasons(saved["period"])
            self._seasons = LinearBank(models, self.estimate, self._start_variance, saved["scale"])
        for bank, state in zip(self._banks(), saved["banks"], strict=True):
            bank.restore({name: unpack(text) for name, text in state.items()})
        self._periods.seen = saved["seen"]
        self._periods.history = unpack(saved["history"])
        self.estimate = unpack(saved["estimate"])
        self.variance = unpack(saved["variance"])
        self._weights = Weights(self._priors(), self.labels)
        self._weights.posterior = unpack(saved["weights"])
        self._weights.evidence = unpack(saved["evidence"])


def _even(weight: float, members: int) -> list[float]:
    return [weight / members] * members


def _seasons(period: float) -> list[Model]:
    return [season(noise, period) for noise in SEASON_NOISES]
