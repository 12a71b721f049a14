"""Simulated fleets, which answer the asks of a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np

from ldpstream.arrays import UserIndexes
from ldpstream.lab.selection import SELECTORS, Selector
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.noise import Noise
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.accountant import Accountant
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import SelectionMethod
from ldpstream.streams.stream import Snapshot


class Respondents(Protocol):
    """The fleet that answers the asks of a mechanism in a run."""

    @property
    def reports(self) -> int:
        """The number of reports sent so far."""
        ...

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        """Return the function that answers the asks of t, when the fleet holds `snapshot`."""
        ...


class LabFleet:
    """N simulated devices: each randomises its own report, and an accountant checks the budget."""

    def __init__(
        self,
        noise: Noise,
        accountant: Accountant,
        selector: Selector,
        rng: np.random.Generator,
    ) -> None:
        self._noise = noise
        self._accountant = accountant
        self._selector = selector
        self._rng = rng
        self.reports = 0

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        rng: np.random.Generator,
        selection: SelectionMethod = SelectionMethod.ROSTER,
    ) -> Self:
        """Return the fleet that this mechanism was built for."""
        division = mechanism.division
        users = division.population
        accountant = Accountant(users, division.epsilon, division.window)
        selector = SELECTORS[selection](users, division.window, rng)
        return cls(mechanism.noise, accountant, selector, rng)

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        def answer(ask: Ask) -> Tally:
            users = self._selector.select(t, ask)
            self._accountant.charge(t, users, ask.epsilon)
            self.reports += ask.users if users is None else len(users)
            support = self._support(t, users, ask.epsilon, snapshot)
            return self._noise.tally(ask.epsilon, support)

        return answer

    def _support(
        self, t: int, users: UserIndexes | None, epsilon: Epsilon, snapshot: Snapshot
    ) -> Support:
        """Return the counted reports of these users, or of everyone, at t."""
        truth = snapshot.counts if users is None else snapshot.counts_of(users, self._rng)
        return self._noise.lab(epsilon).sample_support(self._noise.inputs(truth), self._rng)
