"""A causal estimate of the current histogram from all tallies so far, with nothing to tune."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.errors import Mistake, Problem
from ldpstream.refine.cohorts import ReportingFleet
from ldpstream.refine.intervals import mixture_interval, mixture_moments, normal_variance, widening
from ldpstream.refine.jumps import BELIEVED, Jumps
from ldpstream.refine.levels import PROCESS_NOISES, LevelBank
from ldpstream.refine.linear import TREND_NOISES, LinearBank, trend
from ldpstream.refine.movement import SURPRISES, Movement
from ldpstream.refine.packing import pack, rounded, unpack
from ldpstream.refine.periods import HISTORY, PeriodFinder
from ldpstream.refine.relabelling import Relabelling
from ldpstream.refine.seasons import SEASON_PRIOR, Season, is_harmonic, same, seasons
from ldpstream.refine.weights import Weights

TREND_PRIOR = 0.45
STILL_PRIOR = 0.5
"""Share of the levels' prior weight for the one without process noise: many labels hardly move."""
SIZE_CLASSES = (0.01, 0.03, 0.1)
"""Shares that separate labels by size: those of one class learn from each other. Where labels of a
tenth show that nothing is missing, labels of a hundredth may still move below the noise."""
SLOW = 8
"""Timestamps that the search for long periods takes together."""
LONG = 1000
"""Timestamps of a silence beyond which it is passed at once, and not one after the other: after a
pause of a day a stream of one second would be a minute late."""
LEAST_NOISE = 0.02
"""The share of a tally's variance that is left when its cohort is known as well as can be."""
LAYOUT = 5
"""Version of a saved state: raised whenever members or what is saved of them change."""
WITHOUT_JUMPS = 4
"""The layout of 0.2.0, which is read, too: only events are not in it."""


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

    def __init__(self, labels: int, fleet: ReportingFleet | None = None) -> None:
        self.labels = labels
        self._fleet = fleet or ReportingFleet()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget all tallies."""
        labels = self.labels
        self._scale: float | None = None
        """Variance of the first tally, the unit of all process noises."""
        self._cycles: tuple[float | None, float | None] = None, None
        """The period of the stream, and a second one beside it."""
        self._candidate: float | None = None
        """The second period that was found last."""
        self._periods = PeriodFinder(labels)
        self._slow_periods = PeriodFinder(labels, SLOW)
        self._movement = Movement(labels)
        self._jumps = Jumps(labels)
        self._cohorts = self._fleet.cohorts(labels)
        self._hidden = np.zeros(labels)
        """The variance of cohorts that cannot be told from a season."""
        self._lasting = np.zeros(labels)
        """The variance of an error of all measurements."""
        self._noise = np.zeros(labels), np.zeros(labels)
        """The variances of the last tally: of who was asked, and all of it."""
        self._reading: tuple[Floats, Floats, Floats, Floats] | None = None
        """The tally of this timestamp: values, their variances, the pull to them, and the share of
        a deviation that is noise, where the rest is white movement as it was known before."""
        self._seen: tuple[Floats, Floats, Floats, Floats] | None = None
        """What `_truths` returned at this timestamp, unless members have changed since."""
        self.estimate = np.full(labels, _even_share(labels))
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
        if self._cohorts:
            self._cohorts.pass_time(timestamps)
        if self._scale is None or timestamps == 0:
            return
        if timestamps > LONG:
            self._predict(self._scale, timestamps)
        else:
            for _ in range(timestamps):
                self._predict(self._scale)
        self._reading = None
        self._mix()

    def _predict(self, scale: float, timestamps: int = 1) -> None:
        self._weights.pass_time(timestamps)
        self._movement.pass_time(timestamps)
        mean, variance = self._members_moments()
        for bank in self._banks():
            bank.predict(scale, timestamps)
        moved, grown = self._members_moments()
        self._jumps.pass_time(moved - mean, np.maximum(grown - variance, 0.0), timestamps)

    def update(
        self,
        measured: Floats,
        variance: Floats,
        sampled: float = 0.0,
        lasting: Floats | float = 0.0,
    ) -> None:
        """Take in one timestamp's measurement: unbiased frequencies and their variances.

        Of the variance of a frequency f, `sampled` f(1-f) is due to who was asked. Besides it there
        is `lasting`, the variance of an error that measurements have in common.
        """
        self._lasting = np.zeros(self.labels) + lasting
        scale = self._scale or self._begin(float(variance.mean()))
        self._predict(scale)
        members, weights = self._members(), self._weights.posterior
        expected, spread = mixture_moments(*self._jumps.joined(weights, *members))
        measured, variance = self._without_cohort(measured, variance, expected, spread, sampled)
        classes = np.digitize(expected, SIZE_CLASSES).astype(np.int64)
        noise = variance + self._movement.variance
        self._jumps.learn(measured, noise, *mixture_moments(weights, *members))
        # What is due to a jump teaches nothing about how a label moves at other times.
        usual = 1 - self._jumps.new
        likelihoods = np.concatenate([bank.update(measured, variance) for bank in self._banks()])
        self._weights.learn(usual * likelihoods, np.zeros_like(classes))
        innovation = measured - expected
        self._movement.learn(innovation, spread, variance, expected, scale, classes, usual)
        pull = self._movement.pull(spread + variance)
        self._reading = measured, variance, pull, rounded(variance / noise)
        self._mix()
        self._periods.add(measured)
        self._slow_periods.add(measured)
        if self._periods.due():
            self._follow(self._periods.period())

    def _without_cohort(
        self, measured: Floats, variance: Floats, expected: Floats, spread: Floats, sampled: float
    ) -> tuple[Floats, Floats]:
        """Return a measurement, and its variance, less what is known of the cohort it is from."""
        if self._cohorts is None:
            return measured, variance
        self._cohorts.pass_time()
        shares = np.clip(expected, 0.0, 1.0)
        # A label that few are asked about has less of both than this share of the others' says.
        sampling = np.minimum(sampled * shares * (1 - shares), variance)
        total = variance + spread + self._movement.variance
        offset, explained = self._cohorts.expected(sampling, variance, total)
        self._cohorts.learn(measured - expected, sampling, variance, total)
        self._hidden = self._cohorts.hidden(sampling)
        self._noise = sampling, variance
        return measured - offset, np.maximum(variance - explained, LEAST_NOISE * variance)

    def _begin(self, scale: float) -> float:
        self._scale = scale
        self._levels = LevelBank(self.estimate, self._start_variance)
        trends = [trend(noise) for noise in TREND_NOISES]
        self._trends = LinearBank(trends, self.estimate, self._start_variance, scale)
        self._seasons: list[LinearBank] = []
        self._kinds: list[Season] = []
        self._weights = Weights(self._priors([]), self.labels)
        return scale

    def _banks(self) -> list[LevelBank | LinearBank]:
        return [self._levels, self._trends, *self._seasons]

    @staticmethod
    def _priors(kinds: list[Season]) -> Floats:
        """Return the prior weights of all members, with these kinds of seasons."""
        levels = 1 - TREND_PRIOR - SEASON_PRIOR
        wandering = _even(levels * (1 - STILL_PRIOR), len(PROCESS_NOISES) - 1)
        parts = [levels * STILL_PRIOR, *wandering, *_even(TREND_PRIOR, len(TREND_NOISES))]
        for kind in kinds:
            parts += _even(kind.prior, len(kind.noises))
        priors: Floats = np.array(parts) / sum(parts)
        return priors

    def _mix(self) -> None:
        """Set the estimate to the mean over members, and its variance to that of the mixture.

        Labels that are all but sure to have jumped are estimated from the tallies since.
        """
        self._seen = weights, means, variances, left = self._truths()
        count = len(self._weights.posterior)
        usual = np.sum(self._weights.posterior * means[:count], axis=0)
        jumped = weights[count:].sum(axis=0) > BELIEVED
        self.estimate = np.where(jumped, np.sum(weights * means, axis=0), usual)
        variances = variances + (means - self.estimate) ** 2 + left * self._moved()
        self.variance = np.sum(weights * variances, axis=0) + self._lasting

    def _members(self) -> tuple[Floats, Floats]:
        means = np.concatenate([bank.means for bank in self._banks()])
        return means, np.concatenate([bank.variances for bank in self._banks()])

    def _members_moments(self) -> tuple[Floats, Floats]:
        return mixture_moments(self._weights.posterior, *self._members())

    def _truths(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return weights, means and variances of the truth, if it had no white movement, as members
        see it and after jumps, and how much of a white movement is left in each (docs/lpf.md).

        A share `pull` of what the update has left of a deviation is taken for movement.
        """
        means, variances, left = self._members_truths()
        weights, means, variances = self._jumps.joined(self._weights.posterior, means, variances)
        moved = slice(len(left), None)
        kept = np.ones(self.labels)
        if self._reading is not None:
            # A level that has moved was updated with the noise and the white movement together.
            measured, noise, _, kept = self._reading
            means[moved] = measured + kept * (means[moved] - measured)
            variances[moved] = kept**2 * variances[moved] + (1 - kept) ** 2 * noise
        after_jumps = np.tile(kept**2, (len(weights) - len(left), 1))
        return weights, means, variances, np.concatenate([left, after_jumps])

    def _members_truths(self) -> tuple[Floats, Floats, Floats]:
        means, variances = self._members()
        if self._reading is None:
            return means, variances, np.ones_like(means)
        measured, noise, pull, _ = self._reading
        gain = np.minimum(variances / noise, 1.0)
        left = (1 - pull) ** 2
        means = means + pull * (measured - means)
        variances = left * variances + pull * (pull + 2 * (1 - pull) * gain) * noise
        return means, variances, left * (1 - gain) ** 2

    def _moved(self) -> Floats:
        """Return the variance of the white movement, and of users who draw their values afresh."""
        shares = np.clip(self.estimate, 0.0, 1.0)
        afresh = 1 - self._cohorts.settled if self._cohorts else 1.0
        jitter: Floats = afresh * shares * (1 - shares) / self._fleet.users
        return self._movement.variance + self._hidden + jitter

    def interval(self) -> tuple[Floats, Floats]:
        """Return the interval that contains each frequency with probability `intervals.LEVEL`."""
        if self._scale is None:
            return np.zeros(self.labels), np.ones(self.labels)
        _, means, variances, left = self._seen or self._truths()
        weights = self._jumps.hedged(self._weights.posterior)
        low, high = mixture_interval(weights, means, variances)
        share = np.sum(weights * left, axis=0)
        surprises = np.array(SURPRISES)[:, None] * self._scale
        variance = normal_variance(low, high)
        added = share * (self._moved() + surprises) + self._lasting
        wider = widening(variance, self._movement.surprise, added)
        here = self.estimate
        return here - wider * (here - low), here + wider * (high - here)

    def _follow(self, first: float | None) -> None:
        """Use a period that was found: refine the current seasons, or start new ones."""
        first = first or self._slow_period()
        if first is None or self._scale is None:
            return
        if self._cohorts and not self._cohorts.allow(first, self._periods, *self._noise):
            return
        self._cycles = first, self._second(first)
        known, self._kinds = self._kinds, seasons(*self._cycles)
        kept = 0
        for bank, old, new in zip(self._seasons, known, self._kinds, strict=False):
            if not new.continues(old):
                break
            bank.set_models(new.models())
            kept += 1
        if kept == len(self._kinds):
            return
        members = len(self._priors(self._kinds[:kept]))
        self._seasons = self._seasons[:kept] + self._new_seasons(self._kinds[kept:])
        self._weights.replace_last(self._priors(self._kinds), members)
        self._seen = None

    def _new_seasons(self, kinds: list[Season]) -> list[LinearBank]:
        spread, scale = float(self.variance.mean()), self._scale or 0.0
        return [LinearBank(kind.models(), self.estimate, spread, scale) for kind in kinds]

    def _second(self, first: float) -> float | None:
        """Return the period beside the first: a new one once it was found twice in a row."""
        found = self._periods.second(first) or self._slow_period()
        if found is None or is_harmonic(found, first):
            return self._cycles[1]
        if self._cohorts and self._cohorts.has_period(found):
            return self._cycles[1]
        again, self._candidate = same(self._candidate, found), found
        return found if again else self._cycles[1]

    def _slow_period(self) -> float | None:
        """Return a period that is too long for the other search."""
        slow = self._slow_periods.period() if self._slow_periods.has_enough else None
        return slow if slow is not None and slow > HISTORY / 2 else None

    def save(self) -> dict[str, Any]:
        """Return the whole state as JSON, which restores exactly."""
        begun = {"labels": self.labels, "clock": self._cohorts.clock if self._cohorts else 0}
        if self._scale is None:
            return begun
        return begun | {
            "layout": LAYOUT,
            "scale": self._scale,
            "cycles": self._cycles,
            "candidate": self._candidate,
            "periods": [_packed(self._periods.state()), _packed(self._slow_periods.state())],
            "estimate": pack(self.estimate),
            "variance": pack(self.variance),
            "weights": pack(self._weights.posterior),
            "evidence": pack(self._weights.evidence),
            "movement": _packed(self._movement.state()),
            "jumps": _packed(self._jumps.state()),
            "cohorts": self._cohorts and _packed(self._cohorts.state()),
            "hidden": pack(self._hidden),
            "lasting": pack(self._lasting),
            "reading": self._reading and [pack(part) for part in self._reading],
            "banks": [_packed(bank.state()) for bank in self._banks()],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save` returned.

        A state with another number of labels is refused. A state that is older than version 0.2.0
        is not read: the filter begins anew, which costs accuracy for a while and no privacy.
        """
        if saved["labels"] != self.labels:
            raise Mistake(
                Problem.STATE_MISMATCH,
                found=f"labels {saved['labels']}",
                expected=f"labels {self.labels}",
            )
        self._begin_anew()
        if self._cohorts:
            self._cohorts.clock = saved.get("clock", 0)
        if saved.get("layout") not in (WITHOUT_JUMPS, LAYOUT):
            return
        self._begin(saved["scale"])
        first, second = saved["cycles"]
        self._cycles, self._candidate = (first, second), saved["candidate"]
        if first is not None:
            self._kinds = seasons(first, second)
            self._seasons = self._new_seasons(self._kinds)
        for bank, state in zip(self._banks(), saved["banks"], strict=True):
            bank.restore(_unpacked(state))
        for finder, state in zip(
            (self._periods, self._slow_periods), saved["periods"], strict=True
        ):
            finder.restore(_unpacked(state))
        self.estimate = unpack(saved["estimate"])
        self.variance = unpack(saved["variance"])
        self._weights = Weights(self._priors(self._kinds), self.labels)
        self._weights.posterior = unpack(saved["weights"])
        self._weights.evidence = unpack(saved["evidence"])
        self._movement.restore(_unpacked(saved["movement"]))
        if "jumps" in saved:
            self._jumps.restore(_unpacked(saved["jumps"]))
        if self._cohorts and saved["cohorts"]:
            self._cohorts.restore(_unpacked(saved["cohorts"]))
        self._hidden = unpack(saved["hidden"])
        if "lasting" in saved:
            self._lasting = unpack(saved["lasting"])
        if saved["reading"]:
            measured, variance, pull, *kept = map(unpack, saved["reading"])
            self._reading = measured, variance, pull, kept[0] if kept else np.ones_like(pull)

    def adopt(self, saved: dict[str, Any], move: Relabelling) -> None:
        """Restore a state that was saved under other labels, or of a fleet with another window."""
        labels, self.labels = self.labels, len(move.targets)
        try:
            self.restore(saved)
        finally:
            self.labels = labels
        if not move.is_same:
            self._relabel(move)

    def _relabel(self, move: Relabelling) -> None:
        """Carry all that is known to other labels."""
        cohorts = self._cohorts
        if self._scale is None or move.new.all():
            self._begin_anew()
        else:
            start, spread = _even_share(self.labels), self._start_variance
            for bank in self._banks():
                bank.relabel(move, start, spread)
            for finder in (self._periods, self._slow_periods):
                finder.relabel(move, self.estimate)
            self._weights.relabel(move)
            self._movement.relabel(move)
            self._jumps.relabel(move)
            self._hidden = move.summed(self._hidden)
            self._lasting = move.summed(self._lasting)
            self._reading = self._seen = None
            self.estimate = move.summed(self.estimate, start)
            self.variance = move.summed(self.variance, spread)
        self._cohorts = self._fleet.cohorts(self.labels)
        if self._cohorts and cohorts:
            cohorts.relabel(move)
            self._cohorts.clock = cohorts.clock
            self._cohorts.restore(cohorts.state())


def _packed(state: dict[str, Floats]) -> dict[str, Any]:
    return {name: pack(array) for name, array in state.items()}


def _unpacked(saved: dict[str, Any]) -> dict[str, Floats]:
    return {name: unpack(packed) for name, packed in saved.items()}


def _even_share(labels: int) -> float:
    """Return the frequency to expect of one of `labels` labels.

    Of a single bin, a mean, nothing is known except that it lies in [0, 1].
    """
    return 1 / max(labels, 2)


def _even(weight: float, members: int) -> list[float]:
    return [weight / members] * members
