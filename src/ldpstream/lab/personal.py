"""PLPD, PLPA and their "+" variants, for comparison: personal budgets as a study of 2025 has them.

They are written as in the code of that study, in the laboratory only: no live stream can be run
with them. All users report by GRR at their own epsilon, to samples of the whole fleet, and levels
are combined by inverse variance, which is biased if the choice of a level goes with the value.
Without the "+", the window is the longest of all, and the others' shorter ones are of no use. With
it, a shorter window is taken, and whoever has a longer one splits its epsilon by ceil(s / s_i),
which with rounded sizes can be fewer parts than reports: then the accountant stops the run.
Left out is the one fault that would only make them worse: reports that are randomised a second time
with a probability in place of an epsilon.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldpstream.errors import Mistake, Problem
from ldpstream.lab.levelled import members_of
from ldpstream.lab.roster import Roster
from ldpstream.mechanisms.absorption import Absorption
from ldpstream.mechanisms.adaptive import Adaptive
from ldpstream.mechanisms.distribution import Distribution
from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.levels import FleetLevels
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.noise import NoiseModel
from ldpstream.mechanisms.queries import HISTOGRAM
from ldpstream.mechanisms.settings import Settings
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import sampling
from ldpstream.oracles.noise import mean_noise
from ldpstream.privacy.accountant import Accountant
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine.consistency import Consistency
from ldpstream.streams.stream import Snapshot

PERSONAL: dict[str, tuple[type[Adaptive], bool]] = {
    "plpd": (Distribution, False),
    "plpa": (Absorption, False),
    "plpd+": (Distribution, True),
    "plpa+": (Absorption, True),
}
"""The allocation of each, and whether it is a "+" variant."""


@dataclass(frozen=True)
class PersonalNoise(NoiseModel):
    """The noise of a sample of users whose reports have different epsilons."""

    epsilons: tuple[Epsilon, ...] = ()
    """The epsilon of one report at each level."""
    shares: tuple[float, ...] = ()

    def variance(self, epsilon: Epsilon, reports: int, concentration: float) -> float:
        """Return V of all levels, by inverse variance, whatever epsilon was asked for."""
        known = sum(
            share * reports / one_report_variance(self.labels, own)
            for share, own in zip(self.shares, self.epsilons, strict=True)
        )
        spread = (1 - concentration) / self.labels
        return 1 / known + sampling(reports, self.population) * spread


class PersonalFleet:
    """Users on one roster who report with epsilons of their own, each under its own accountant."""

    def __init__(
        self, noise: PersonalNoise, window: int, levels: FleetLevels, rng: np.random.Generator
    ) -> None:
        users = noise.population
        self._noise = noise
        self._level = np.empty(users, np.uint8)
        for place, members in enumerate(members_of(levels, users, rng)):
            self._level[members] = place
        self._roster = Roster(users, window, rng)
        self._accountants = [Accountant(users, one.epsilon, one.window) for one in levels.each]
        self._rng = rng
        self.reports = 0

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        def answer(ask: Ask) -> Tally:
            users = self._roster.sample(t, ask.users)
            self.reports += len(users)
            tallies, precisions = [], []
            for place, epsilon in enumerate(self._noise.epsilons):
                members = users[self._level[users] == place]
                if not len(members):
                    continue
                self._accountants[place].charge(t, members, epsilon)
                truth = snapshot.counts_of(members, self._rng)
                support = self._noise.lab(epsilon).sample_support(truth, self._rng)
                tallies.append(self._noise.tally(epsilon, support))
                alone = one_report_variance(self._noise.labels, epsilon)
                precisions.append(len(members) / alone)
            return self._combined(tallies, np.array(precisions))

        return answer

    def _combined(self, tallies: list[Tally], precisions: np.ndarray) -> Tally:
        weights = precisions / precisions.sum()
        drawn = [sampling(tally.reports, self._noise.population) for tally in tallies]
        return Tally(
            weights @ np.array([tally.estimate for tally in tallies]),
            weights**2 @ np.array([tally.variance for tally in tallies]),
            sum(tally.reports for tally in tallies),
            float(weights**2 @ np.array(drawn)),
        )


def build_personal(name: str, settings: Settings) -> Adaptive:
    """Return the mechanism of that name, at t = 0; its noise has the epsilons of its users.

    >>> levels = FleetLevels.read("0.5:40:1/2,1:20:1/2")
    >>> from ldpstream.protocol.terms import SelectionMethod
    >>> settings = Settings(
    ...     2, 4_000, levels.epsilon, levels.window, selection=SelectionMethod.SLOTS, levels=levels
    ... )
    >>> for name in ("plpd", "plpd+"):
    ...     built = build_personal(name, settings)
    ...     print(built.window, built.unit, [str(one) for one in built.noise.epsilons])
    40 50 ['0.5', '1']
    20 100 ['0.25', '1']
    """
    if settings.levels is None or settings.query != HISTOGRAM:
        given = "without levels" if settings.levels is None else f"for {settings.query}"
        raise Mistake(
            Problem.OPTION, option=name, given=given, expected="levels, and ask for a histogram"
        )
    allocation, plus = PERSONAL[name]
    levels, candidates = settings.levels, [settings.window]
    if plus:
        candidates = sorted({level.window for level in levels.each})
    noises = {window: _noise(settings, levels, window) for window in candidates}
    window = min(candidates, key=lambda one: _probe_error(noises[one], one))
    division = PopulationDivision(settings.epsilon, settings.users, window)
    consistency = settings.consistency or Consistency.NONE
    return allocation(division, noises[window], pool=settings.pool, consistency=consistency)


def _noise(settings: Settings, levels: FleetLevels, window: int) -> PersonalNoise:
    """Return the noise of reports that come once in `window`, which may be several in a level's."""
    users = settings.users
    division = PopulationDivision(settings.epsilon, users, window)
    sample = division.share(2 * window)
    epsilons = []
    for level in levels.each:
        own = PopulationDivision(level.epsilon, users, level.window).share(2 * level.window)
        epsilons.append(level.epsilon // max(-(-sample // own), 1))
    return PersonalNoise(
        Oracle.GRR,
        settings.labels,
        users,
        settings.variance,
        tuple(epsilons),
        tuple(level.share for level in levels.each),
    )


def _probe_error(noise: PersonalNoise, window: int) -> float:
    sample = noise.population // (2 * window)
    return noise.variance(noise.epsilons[0], sample, 1 / noise.labels)


def one_report_variance(labels: int, epsilon: Epsilon) -> float:
    """Return the mean variance of the bins of an estimate from one report, by GRR."""
    device = Oracle.GRR.device(labels, epsilon)
    return mean_noise(device.p, device.q, labels)
