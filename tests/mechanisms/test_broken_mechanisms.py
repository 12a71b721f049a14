"""Mechanisms and rosters that are broken on purpose are caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ldpstream.arrays import UserIndexes
from ldpstream.errors import GuaranteeBroken, Problem
from ldpstream.lab.fleet import LabFleet
from ldpstream.lab.roster import Roster
from ldpstream.mechanisms.absorption import Absorption
from ldpstream.mechanisms.distribution import Distribution
from ldpstream.mechanisms.division import BudgetDivision, Division, PopulationDivision
from ldpstream.mechanisms.mechanism import Mechanism, Publication, Step
from ldpstream.mechanisms.messages import Tally
from ldpstream.mechanisms.noise import NoiseModel
from ldpstream.mechanisms.sampling import Sampling
from ldpstream.oracles import Oracle
from ldpstream.privacy.accountant import Accountant
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import CountsSnapshot
from tests.mechanisms.driving import (
    Answers,
    Case,
    jumping_at,
    live,
    live_on,
    noisy_answers,
    steady,
    told,
    watched,
)

WINDOW = 5
CASE = Case("", users=1000, nano=10**9, window=WINDOW)
"""2w divides both epsilon and N, so that an honest mechanism can use up all of them."""

EXCEEDED, EXHAUSTED = Problem.EPSILON_EXCEEDED, Problem.ROSTER_EXHAUSTED


class GreedyAbsorption(Absorption):
    """Absorbs up to w+1 slots."""

    def decide(self, t: int) -> Step:
        probe = yield self.ask_dissimilarity()
        last = self.last_publication
        nullified = last.amount // self.unit - 1
        if t - last.t <= nullified:
            return self.approximate(t)
        potential = self.unit * min(t - (last.t + nullified), self.window + 1)
        if self.worth_publishing(probe, potential):
            fresh = yield self.ask_publication(t, potential)
            return self.publish(t, fresh, probe)
        return self.approximate(t)


class ForgetfulAbsorption(Absorption):
    """Does not nullify the slots after a publication that absorbed some."""

    @property
    def last_publication(self) -> Publication:
        last = super().last_publication
        return Publication(last.t, min(last.amount, self.unit))


def doubled(allocation: type[Absorption | Distribution]) -> type[Mechanism]:
    """Uses eps/w instead of eps/(2w) for dissimilarities, and so in both halves."""

    class Doubled(allocation):  # type: ignore[valid-type,misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.unit = self.division.share(self.window)

    return Doubled


class RefundingSampling(Sampling):
    """Takes back what was spent on a publication that nobody answered."""

    def publish(self, t: int, *tallies: Tally) -> Any:
        if not tallies[0]:
            self.state = type(self.state)(t, self.state.release, ())
        return super().publish(t, *tallies)


class ImpatientSampling(Sampling):
    """Samples once in w-1 timestamps."""

    def decide(self, t: int) -> Step:
        if self.state.publications and t - self.last_publication.t < self.window - 1:
            return self.approximate(t)
        fresh = yield self.ask_publication(t, self.division.total)
        return self.publish(t, fresh)


def watch(
    allocation: type[Mechanism], division: type[Division], answers: Answers, timestamps: int = 40
) -> None:
    noise = NoiseModel(Oracle.GRR, CASE.labels, CASE.users, CASE.variance)

    def make() -> Mechanism:
        return allocation(division(CASE.epsilon, CASE.users, CASE.window), noise)

    live_on(make(), steady(timestamps), watched(CASE, answers), make)


QUIET_THEN_MOVING = jumping_at(CASE, range(WINDOW + 2, 40))
ALWAYS_MOVING = jumping_at(CASE, range(1, 40))
SLOW = jumping_at(CASE, range(3, 40, 3))


def silent(t: int) -> Callable[..., Tally]:
    return told(CASE, [0.0, 0.0], reports=0)


@pytest.mark.parametrize(
    ("broken", "division", "answers", "problem"),
    [
        (GreedyAbsorption, BudgetDivision, QUIET_THEN_MOVING, EXCEEDED),
        (GreedyAbsorption, PopulationDivision, QUIET_THEN_MOVING, EXHAUSTED),
        (ForgetfulAbsorption, BudgetDivision, SLOW, EXCEEDED),
        (ForgetfulAbsorption, PopulationDivision, SLOW, EXHAUSTED),
        (doubled(Absorption), BudgetDivision, ALWAYS_MOVING, EXCEEDED),
        (doubled(Absorption), PopulationDivision, ALWAYS_MOVING, EXHAUSTED),
        (doubled(Distribution), BudgetDivision, ALWAYS_MOVING, EXCEEDED),
        (doubled(Distribution), PopulationDivision, ALWAYS_MOVING, EXHAUSTED),
        (RefundingSampling, BudgetDivision, silent, EXCEEDED),
        (RefundingSampling, PopulationDivision, silent, EXCEEDED),
        (ImpatientSampling, BudgetDivision, ALWAYS_MOVING, EXCEEDED),
        (ImpatientSampling, PopulationDivision, ALWAYS_MOVING, EXCEEDED),
    ],
)
def test_a_broken_mechanism_is_stopped(
    broken: type[Mechanism], division: type[Division], answers: Answers, problem: Problem
) -> None:
    with pytest.raises(GuaranteeBroken) as stopped:
        watch(broken, division, answers)
    assert stopped.value.problem is problem


@pytest.mark.parametrize("answers", [QUIET_THEN_MOVING, ALWAYS_MOVING, SLOW, silent])
@pytest.mark.parametrize("division", [BudgetDivision, PopulationDivision])
@pytest.mark.parametrize("whole", [Absorption, Distribution, Sampling])
def test_the_same_mechanism_unbroken_is_not_stopped(
    whole: type[Mechanism], division: type[Division], answers: Answers
) -> None:
    watch(whole, division, answers)


class HastyRoster(Roster):
    """Recycles one step early, as a public re-implementation does (paper-corrections.md, 6)."""

    def _recycle(self, last: int) -> None:
        super()._recycle(last + 1)


class StutteringRoster(Roster):
    """Hands out one user twice in one ask."""

    def sample(self, t: int, size: int) -> UserIndexes:
        drawn = super().sample(t, size)
        drawn[-1] = drawn[0]
        return drawn


class ForgetfulRoster(Roster):
    """Puts users back at once."""

    def sample(self, t: int, size: int) -> UserIndexes:
        drawn = super().sample(t, size)
        self._recycle(t)
        return drawn


@pytest.mark.parametrize("broken", [HastyRoster, StutteringRoster, ForgetfulRoster])
@pytest.mark.parametrize("name", ["lpu", "lpd", "lpa"])
def test_a_broken_roster_is_stopped(name: str, broken: type[Roster]) -> None:
    """Within 4 windows; that random draws avoid every user of the last step is beyond 1e-20."""
    case = Case(name, users=1000, window=WINDOW)
    roster = broken(case.users, case.window, np.random.default_rng(3))
    with pytest.raises(GuaranteeBroken) as stopped:
        live(
            case,
            steady(4 * WINDOW),
            watched(case, noisy_answers(case, 5, losses=False), roster=roster),
        )
    assert stopped.value.problem is EXCEEDED


def test_the_accountant_speaks_before_any_value_is_read() -> None:
    """A report that would break the guarantee is not made, and so not counted."""
    case = Case("lsp", users=10, window=3)
    accountant = Accountant(10, Epsilon.of(1), 3)
    rng = np.random.default_rng(0)
    noise = NoiseModel(Oracle.GRR, 2, 10, case.variance)
    fleet = LabFleet(noise, accountant, Roster(10, 3, rng), rng)
    snapshot = CountsSnapshot(np.array([4, 6]))
    ask = next(case.build().step(1))
    fleet.at(1, snapshot)(ask)
    before = rng.bit_generator.state
    with pytest.raises(GuaranteeBroken):
        fleet.at(2, snapshot)(ask)
    assert fleet.reports == 10
    assert rng.bit_generator.state == before
