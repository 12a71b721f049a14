"""The two ways to divide what a window holds: the budget of every user, or the users themselves.

Either way the resource is counted in whole units (nano-epsilon, users), so an allocation can be
written once, in integers, and sums over a window are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.messages import Ask, Purpose
from ldpstream.privacy.epsilon import Epsilon


@dataclass(frozen=True)
class Division(ABC):
    """A resource of which any `window` consecutive timestamps may use `total` units."""

    epsilon: Epsilon
    population: int
    window: int

    one_unit_each: ClassVar[Problem]
    """The problem to report when a timestamp's share comes to less than one unit."""

    @property
    @abstractmethod
    def total(self) -> int: ...

    @abstractmethod
    def ask(self, amount: int, purpose: Purpose) -> Ask:
        """Return the ask that uses `amount` units."""

    def share(self, parts: int) -> int:
        """Return one of `parts` equal shares of a window, rounded down; refuse a share of 0."""
        if self.total < parts:
            raise Mistake(
                self.one_unit_each,
                epsilon=self.epsilon,
                users=self.population,
                window=self.window,
                needed=parts,
            )
        return self.total // parts


class BudgetDivision(Division):
    """Everyone reports, with a share of epsilon. Unit: one nano-epsilon."""

    one_unit_each = Problem.BUDGET_TOO_SMALL

    @property
    def total(self) -> int:
        return self.epsilon.nano

    def ask(self, amount: int, purpose: Purpose) -> Ask:
        return Ask(self.population, Epsilon(amount), purpose)


class PopulationDivision(Division):
    """A share of the users report, with all of epsilon. Unit: one user."""

    one_unit_each = Problem.TOO_FEW_USERS

    @property
    def total(self) -> int:
        return self.population

    def ask(self, amount: int, purpose: Purpose) -> Ask:
        return Ask(amount, self.epsilon, purpose)
