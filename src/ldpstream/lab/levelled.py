"""Simulated fleets whose users have levels of privacy of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldpstream.arrays import UserIndexes
from ldpstream.lab.selection import SlotSelector
from ldpstream.mechanisms.levels import FleetLevels
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.settings import Settings
from ldpstream.mechanisms.strata import StrataMemory, Stratum, combine
from ldpstream.privacy.accountant import Accountant
from ldpstream.streams.stream import Snapshot


class LevelledFleet:
    """N simulated devices, each of which reports once in its own window with all its own epsilon.

    Each level has its own slots, oracle and accountant; their tallies are combined (`strata.py`).
    """

    def __init__(self, settings: Settings, levels: FleetLevels, rng: np.random.Generator) -> None:
        self._strata = strata_of(settings, levels)
        self._members = members_of(levels, settings.users, rng)
        self._selectors = [
            SlotSelector(len(members), stratum.window, rng)
            for members, stratum in zip(self._members, self._strata, strict=True)
        ]
        self._accountants = [
            Accountant(len(members), stratum.epsilon, stratum.window)
            for members, stratum in zip(self._members, self._strata, strict=True)
        ]
        self._memory = StrataMemory()
        self._rng = rng
        self.reports = 0

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        def answer(ask: Ask) -> Tally:
            supports = {}
            for place, stratum in enumerate(self._strata):
                chosen = self._selectors[place].select(t, ask)
                self._accountants[place].charge(t, chosen, stratum.epsilon)
                truth = snapshot.counts_of(self._members[place][chosen], self._rng)
                inputs = stratum.noise.inputs(truth)
                lab = stratum.noise.lab(stratum.epsilon)
                supports[stratum.name] = lab.sample_support(inputs, self._rng)
                self.reports += len(chosen)
            bins = self._strata[0].noise.labels
            tally, self._memory = combine(t, self._strata, supports, self._memory, bins)
            return tally

        return answer


def strata_of(settings: Settings, levels: FleetLevels) -> list[Stratum]:
    """Return a stratum for each level, with the best oracle for its epsilon unless one is set."""
    strata = []
    for place, level in enumerate(levels.each):
        noise = settings.query.noise(settings.at_level(level), level.epsilon)
        strata.append(Stratum(str(place), level.epsilon, level.window, noise))
    return strata


def members_of(levels: FleetLevels, users: int, rng: np.random.Generator) -> list[UserIndexes]:
    """Return the users of each level: any of them or, if levels are correlated, in order."""
    order = np.arange(users, dtype=np.uint32)
    if not levels.correlation:
        rng.shuffle(order)
    return np.split(order, np.cumsum(levels.sizes(users))[:-1])
