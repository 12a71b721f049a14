"""Cohorts: under population division the same devices report every w timestamps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Flags, Floats
from ldpstream.refine.levels import log_density
from ldpstream.refine.linear import HARMONICS
from ldpstream.refine.packing import rounded
from ldpstream.refine.periods import PeriodFinder
from ldpstream.refine.relabelling import Relabelling

SETTLED = np.array([0.0, 0.25, 0.5, 0.75, 1.0])[:, None]
"""Shares of the fleet that may keep their values from one window to the next."""
SETTLED_PRIOR = np.array([0.6, 0.1, 0.1, 0.1, 0.1])
MOST_ROUNDS = 32.0
"""Rounds that a cohort's mean reaches back: members come and go, and change their minds."""
MEMORY = 0.99
SAME_PERIOD = 0.03
FOLLOWED = 3.0
"""A wave whose phase moves by less than so many gains in a timestamp is followed by members."""
BOUND = 3.0
"""Standard errors of a residual that count: what is further off has jumped."""
EXTREME = 9.0
"""Of 16 exponential variables of mean 1 one is larger with probability 0.002."""
MOST_OFFSETS = 200_000
"""Offsets that are kept; a stream with more of them, window times labels, has no cohorts."""


@dataclass(frozen=True)
class ReportingFleet:
    """What a filter knows of the fleet that reports."""

    users: float = math.inf
    window: int | None = None
    """The timestamps after which the same users report again, or None if others do, or everyone."""
    reshuffle: int | None = None
    """The timestamps after which users are dealt into other cohorts."""

    def cohorts(self, labels: int) -> Cohorts | None:
        """Return what will be known of the cohorts, if there are any."""
        if self.window is None or self.window < 2 or self.window * labels > MOST_OFFSETS:
            return None
        return Cohorts(labels, self.window, self.reshuffle)


class Cohorts:
    """The offsets of the w groups of devices that take turns: a nuisance, estimated and taken off.

    A cohort of n of N devices deviates from the fleet by a sampling error of known variance, s^2.
    Of that a share a is settled and comes again in the next window; the rest is new. The mean of a
    cohort's residuals over its rounds is sufficient for its offset whatever a is, so the posterior
    of a costs a handful of likelihoods. A pattern that is larger than sampling allows, or smooth,
    is a season of the truth, and is left in.

    >>> cohorts, rng = Cohorts(labels=1, window=4), np.random.default_rng(1)
    >>> offsets, small = np.array([0.3, -0.1, -0.3, 0.1]), np.full(1, 0.059)
    >>> for t in range(200):
    ...     cohorts.pass_time()
    ...     residual = offsets[cohorts.turn] + rng.normal(0, 0.1, 1)
    ...     off, _ = cohorts.expected(np.full(1, 0.05), small, np.full(1, 0.06))
    ...     cohorts.learn(residual, np.full(1, 0.05), small, np.full(1, 0.06))
    >>> bool(abs(off[0] - offsets[cohorts.turn]) < 0.1), cohorts.settled > 0.5
    (True, True)
    """

    def __init__(self, labels: int, window: int, reshuffle: int | None = None) -> None:
        self._reshuffle = reshuffle
        """Timestamps after which devices are dealt into new cohorts."""
        self.clock = 0
        self._means = np.zeros((window, labels))
        self._rounds = np.zeros(window)
        self._since = np.full(labels, -np.inf)
        """When each label came, by the clock, if it was not there from the start."""
        self._evidence = np.log(SETTLED_PRIOR)
        self._confirmed = False
        """Whether the truth has a season of w timestamps."""

    def pass_time(self, timestamps: int = 1) -> None:
        begun = self._epoch
        self.clock += timestamps
        if self._epoch != begun:
            self._means = np.zeros_like(self._means)
            self._rounds = np.zeros_like(self._rounds)

    @property
    def _epoch(self) -> int:
        return max(self.clock - 1, 0) // self._reshuffle if self._reshuffle else 0

    @property
    def turn(self) -> int:
        """The cohort whose turn it is."""
        return self.clock % len(self._means)

    @property
    def _rounds_before(self) -> Floats:
        """The rounds in which this cohort could report each label, before this one."""
        before: Floats = np.floor((self.clock - 1 - self._since) / len(self._means))
        return before

    @property
    def settled(self) -> float:
        """The share of the fleet that keeps its values, as far as it is known."""
        return float(self._posterior @ SETTLED[:, 0])

    @property
    def _posterior(self) -> Floats:
        weights = np.exp(self._evidence - self._evidence.max())
        posterior: Floats = weights / weights.sum()
        return posterior

    def expected(self, sampling: Floats, noise: Floats, spread: Floats) -> tuple[Floats, Floats]:
        """Return this cohort's offsets, and how much of a residual's variance they explain.

        `sampling` is the variance s^2 of drawing the cohort, which is part of the tally's `noise`;
        `spread` is the variance of a residual.
        """
        if self._confirmed:
            return np.zeros_like(spread), np.zeros_like(spread)
        offsets, explained = self._hypotheses(sampling, noise, spread)
        weights = self._posterior[:, None]
        offset = np.sum(weights * offsets, axis=0)
        doubt = np.sum(weights * (offsets - offset) ** 2, axis=0)
        believed = ~self._too_large(sampling, spread)
        share = np.maximum(np.sum(weights * explained, axis=0) - doubt, 0.0)
        return believed * offset, believed * share

    def _hypotheses(self, sampling: Floats, noise: Floats, spread: Floats) -> tuple[Floats, Floats]:
        """Return offset and explained variance for each share of the fleet that may be settled."""
        rounds = np.minimum(self._rounds[self.turn], self._rounds_before)
        offset = SETTLED * sampling
        certain = rounds * offset / (rounds * offset + np.maximum(spread - offset, 0) + 1e-300)
        kernel, kept = self._kernel(float(np.mean(1 - noise / spread)))
        return certain * (kernel @ self._means), certain * offset * kept

    def _kernel(self, gain: float) -> tuple[Floats, float]:
        """Return the weights of all cohorts' means in the offset of the one whose turn it is.

        A pattern over the cohorts is a sum of waves. Of one that is so slow that members follow
        it, at their gain, nobody can say whether it is the truth's: it is left in. The constant is
        the truth's, since all cohorts together are the fleet. Returned as well is the share of the
        waves that is taken off.
        """
        window = len(self._means)
        if not self._rounds.all():
            return np.zeros(window), 0.0
        speed = 2 * np.pi * np.fft.rfftfreq(window)
        shares = speed**2 / (speed**2 + (FOLLOWED * gain) ** 2 + 1e-300)
        kernel = np.roll(np.fft.irfft(shares, window), self.turn)
        return kernel, float(np.roll(kernel, -self.turn)[0])

    def _too_large(self, sampling: Floats, spread: Floats) -> Flags:
        """Return whether a label's pattern is larger than cohorts can be: a season, or a jump."""
        if not self._rounds.all():
            return np.zeros(len(sampling), np.bool_)
        energy = self._means.var(axis=0)
        limit = sampling + spread / self._rounds.min()
        large: Flags = energy > (1 + 3 * np.sqrt(2 / len(self._means))) * limit
        return large

    def allow(self, period: float, finder: PeriodFinder, sampling: Floats, noise: Floats) -> bool:
        """Return whether a period that was found is the truth's, and not the cohorts' own.

        One of w timestamps is the truth's if a wave of the recent past is larger than cohorts and
        noise can be (in each wave, their energy is exponentially distributed). While a season
        of that period is followed, nothing is taken off.
        """
        window, own = len(self._means), self.has_period(period)
        if own and not self._confirmed:
            pattern, rounds = finder.folded(window)
            waves = np.abs(np.fft.rfft(pattern, axis=0)[1 : 1 + HARMONICS]) ** 2 / window
            usual = finder.projected(sampling + noise / rounds)
            self._confirmed = bool((waves > EXTREME * usual).any())
        self._confirmed = own and self._confirmed
        return self._confirmed or not own

    def has_period(self, period: float) -> bool:
        """Return whether a period is that of the cohorts."""
        window = len(self._means)
        return abs(period - window) <= SAME_PERIOD * window

    def hidden(self, sampling: Floats) -> Floats:
        """Return the variance of what of the cohorts is taken for a season of the same period."""
        return self._confirmed * min(2 * HARMONICS / len(self._means), 1.0) * sampling

    def learn(self, residual: Floats, sampling: Floats, noise: Floats, spread: Floats) -> None:
        """Take in how far this cohort's tally was off what was expected of the fleet.

        A residual counts by the share of the tally's `noise` in its variance, `spread`.
        """
        offsets, explained = self._hypotheses(sampling, noise, spread)
        bounded = np.clip(residual, -BOUND * np.sqrt(spread), BOUND * np.sqrt(spread))
        densities = log_density((bounded - offsets) ** 2, spread - explained)
        speaking = 1 - 1 / len(residual) if len(residual) > 1 else 1.0
        self._evidence = MEMORY * self._evidence + (1 - MEMORY) * np.log(SETTLED_PRIOR)
        self._evidence += speaking * (densities - densities[0]).sum(axis=1)
        self._evidence -= self._evidence.max()
        turn, counts = self.turn, float(np.mean(noise / spread))
        self._rounds[turn] = min(self._rounds[turn] + counts, MOST_ROUNDS)
        rounds = np.minimum(self._rounds[turn], self._rounds_before + counts)
        step = (bounded - self._means[turn]) * counts / rounds
        self._means[turn] = rounded(self._means[turn] + step)

    def state(self) -> dict[str, Floats]:
        return {
            "means": self._means,
            "rounds": self._rounds,
            "evidence": self._evidence,
            "confirmed": np.array([float(self._confirmed)]),
        } | ({} if np.isinf(self._since).all() else {"since": self._since})

    def restore(self, state: dict[str, Floats]) -> None:
        """Restore what `state` returned; of cohorts of another window, only how settled they are.

        Devices are dealt into other cohorts if the window changes.
        """
        self._evidence = state["evidence"]
        if len(state["means"]) == len(self._means):
            self._means, self._rounds = state["means"], state["rounds"]
            self._confirmed = bool(state["confirmed"][0])
            self._since = state.get("since", self._since)

    def relabel(self, move: Relabelling) -> None:
        """Go on with other labels, of which the new ones have no offsets yet."""
        self._means = move.summed(self._means)
        self._since = move.latest(self._since, float(self.clock))
