"""A plan: what to expect of each mechanism, which to use, and what it takes to reach a target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldpstream.lab.planning.advice import Advice, best_mechanism, best_oracle
from ldpstream.lab.planning.costs import Cost
from ldpstream.lab.planning.outcome import PlanOutcome
from ldpstream.lab.planning.shuffling import Shuffled
from ldpstream.lab.planning.target import (
    Judge,
    Target,
    aim,
    enough_epsilon,
    enough_users,
    unreachable,
)
from ldpstream.mechanisms.division import BudgetDivision
from ldpstream.mechanisms.queries import DistributionQuery, MeanQuery, Query
from ldpstream.mechanisms.registry import PAPER, recipe, report_epsilon
from ldpstream.mechanisms.settings import Settings
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle

MECHANISMS = (*PAPER, "lpf")
"""The mechanisms that are compared by default."""

SHOWN = ("p50", "p99")
"""The quantiles whose errors people see in the table; programs get all."""

AnyOracle = Oracle | Numeric


@dataclass(frozen=True)
class PlanRequest:
    """The inputs of a plan."""

    settings: Settings
    interval_ms: int
    windows: float
    """How many windows the errors are averaged over."""
    mechanisms: Sequence[str] = MECHANISMS
    oracles: Sequence[AnyOracle] | None = None
    """The oracles to try with each mechanism; None means the best one for it."""
    compare_oracles: bool = True
    """Whether the mechanism that is chosen is tried with all oracles, if none were named."""
    typical: float = 1.0
    """What a relative error is relative to."""
    goal: float | None = None
    find: str | None = None
    """"users" or "epsilon", if `settings` has a guess of it that is to be fitted to the goal."""

    def size(self) -> int:
        """Return the number of outcomes that the plan will have."""
        if self.oracles:
            return len(self.mechanisms) * len(self.oracles)
        return len(self.mechanisms) + max(0, len(self.more_oracles) - 1)

    @property
    def more_oracles(self) -> Sequence[AnyOracle]:
        """The oracles to try the chosen mechanism with."""
        if self.oracles or not self.compare_oracles:
            return ()
        return tuple(oracles_for(self.settings.query))


@dataclass(frozen=True)
class Plan:
    """The outcomes that were found, and the advice that follows from them."""

    settings: Settings
    interval_ms: int
    typical: float
    outcomes: Sequence[PlanOutcome]
    advice: Advice

    @property
    def shuffled(self) -> Shuffled:
        """What a round of the chosen mechanism would promise behind a shuffler."""
        name, settings = self.advice.chosen.mechanism, self.settings
        everyone = recipe(name).division is BudgetDivision
        reports = settings.users if everyone else settings.users // settings.window
        return Shuffled(float(report_epsilon(name, settings)), reports)

    def rows(self) -> list[dict[str, Any]]:
        return [self._row(one) for one in self.outcomes]

    def table(self) -> list[dict[str, Any]]:
        """Return the rows for people to read: short names, and errors with their uncertainty."""
        return [
            {
                "mechanism": row["mechanism"],
                "oracle": row["oracle"],
                "rmse": row["rmse"],
                "±": "" if not row["rmse_doubt"] else f"{row['rmse_doubt'] / row['rmse']:.0%}",
                "last window": row["rmse_settled"],
                **{f"{name} error": row["mae"][name] for name in SHOWN if "mae" in row},
                "by": row["how"],
                "reports / device / day": row["reports_per_device_day"],
                "kB / device / day": row["bytes_per_device_day"] / 1000,
                "peak reports/s": row["peak_reports_per_second"],
            }
            for row in self.rows()
        ]

    def _row(self, one: PlanOutcome) -> dict[str, Any]:
        cost = Cost.of(one, self.interval_ms)
        return {
            "mechanism": one.mechanism,
            "oracle": one.oracle,
            "rmse": one.rmse,
            "rmse_doubt": one.standard_error,
            "rmse_settled": one.settled,
            "rmse_relative": one.rmse / self.typical,
            **({"mae": dict(one.mae)} if one.mae else {}),
            "how": one.how.value,
            "reports_per_device_day": cost.reports_per_day,
            "bytes_per_device_day": cost.bytes_per_day,
            "peak_reports_per_second": cost.peak_per_second,
        }


def make_plan(
    request: PlanRequest, judge: Judge, done: Callable[[int], None] = lambda _: None
) -> Plan:
    """Judge all mechanisms, choose one, and find what the goal takes.

    `done` is called for each outcome of the table.
    """
    judge = CachingJudge(judge)
    settings = _found(request, judge) if request.find else request.settings
    outcomes = []
    for mechanism in request.mechanisms:
        for oracle in request.oracles or (settings.oracle,):
            outcomes.append(judge(mechanism, replace(settings, oracle=oracle)))
            done(1)
    best = best_mechanism(outcomes)
    alike = [one for one in outcomes if one.mechanism == best.mechanism]
    for oracle in request.more_oracles:
        if oracle.value != best.oracle:
            alike.append(judge(best.mechanism, replace(settings, oracle=oracle)))
            done(1)
    chosen = best_oracle(alike, request.goal)
    settings = replace(settings, oracle=settings.query.oracle(chosen.oracle))
    advice = Advice(
        chosen,
        outcomes,
        alike,
        Cost.of(chosen, request.interval_ms),
        float(settings.epsilon),
        request.windows,
        _target(request, judge, chosen, settings),
    )
    shown = [*outcomes, *(one for one in alike if one not in outcomes)]
    return Plan(settings, request.interval_ms, request.typical, shown, advice)


def oracles_for(query: Query) -> Iterable[AnyOracle]:
    """Return all oracles that can serve a query."""
    if isinstance(query, DistributionQuery):
        return (Numeric.SQUARE_WAVE,)
    return Numeric if isinstance(query, MeanQuery) else Oracle


def one_report_has_all(mechanism: str) -> bool:
    """Return whether each report has all of epsilon, as those of a distribution must have live.

    >>> [name for name in MECHANISMS if one_report_has_all(name)]
    ['lsp', 'lpu', 'lpd', 'lpa', 'lpf']
    """
    return recipe(mechanism).division is not BudgetDivision


def _found(request: PlanRequest, judge: Judge) -> Settings:
    """Return the settings with the guess replaced by the least value that reaches the goal."""
    assert request.goal is not None
    guessed = [judge(mechanism, request.settings) for mechanism in request.mechanisms]
    mechanism = best_mechanism(guessed).mechanism
    if request.find == "users":
        users = enough_users(judge, mechanism, request.settings, request.goal)
        if users is not None:
            return replace(request.settings, users=users)
    else:
        epsilon = enough_epsilon(judge, mechanism, request.settings, request.goal)
        if epsilon is not None:
            return replace(request.settings, epsilon=epsilon)
    raise unreachable(mechanism, request.settings, request.goal)


def _target(
    request: PlanRequest, judge: Judge, chosen: PlanOutcome, settings: Settings
) -> Target | None:
    if request.goal is None:
        return None
    if request.find:
        reached = chosen.rmse <= request.goal
        return Target(request.goal, reached, settings.users, settings.epsilon)
    return aim(judge, chosen.mechanism, settings, request.goal, chosen.rmse)


class CachingJudge:
    """A judge that caches the outcomes of another one."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._known: dict[tuple[str, Settings], PlanOutcome] = {}
        self.most_users = judge.most_users

    def __call__(self, mechanism: str, settings: Settings) -> PlanOutcome:
        if (mechanism, settings) not in self._known:
            self._known[mechanism, settings] = self._judge(mechanism, settings)
        return self._known[mechanism, settings]
