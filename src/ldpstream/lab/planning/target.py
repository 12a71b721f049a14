"""The error to reach, and what it takes to reach it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

from ldpstream.errors import Mistake, Problem
from ldpstream.lab.numbers import readable
from ldpstream.lab.planning.outcome import PlanOutcome
from ldpstream.lab.planning.search import round_up, smallest
from ldpstream.mechanisms.settings import Settings
from ldpstream.privacy.epsilon import Epsilon

LEAST_EPSILON, MOST_EPSILON = 1e-3, 32.0


class Judge(Protocol):
    """A function that says what to expect of a mechanism under some settings."""

    @property
    def most_users(self) -> int:
        """The largest fleet it can judge."""
        ...

    def __call__(self, mechanism: str, settings: Settings) -> PlanOutcome: ...


def read_goal(text: str, typical: float) -> float:
    """Parse a target RMSE: a number, a share of a `typical` value, or both, of which the lesser.

    >>> read_goal("0.01", 0.1), read_goal("5%", 0.1), read_goal("0.01,5%", 0.1)
    (0.01, 0.005, 0.005)
    """
    return min(_one_goal(part.strip(), typical) for part in text.split(","))


def _one_goal(text: str, typical: float) -> float:
    try:
        goal = float(text.removesuffix("%")) * (typical / 100 if text.endswith("%") else 1)
    except ValueError:
        goal = 0.0
    if not 0 < goal < inf:
        expected = "an error like 0.01, or 5% of a typical value"
        raise Mistake(Problem.OPTION, option="--target-error", given=repr(text), expected=expected)
    return goal


@dataclass(frozen=True)
class Target:
    """A goal, and the least that reaches it with one mechanism."""

    goal: float
    reached: bool
    """Whether the plan reaches the goal as it stands."""
    users: int | None
    """The least at this epsilon; None if no fleet that can be judged is enough."""
    epsilon: Epsilon | None
    """The least with these users; None if even 32 is not enough."""

    def row(self) -> dict[str, object]:
        epsilon = None if self.epsilon is None else float(self.epsilon)
        return {
            "rmse": self.goal,
            "reached": self.reached,
            "smallest_users": self.users,
            "smallest_epsilon": epsilon,
        }


def aim(judge: Judge, mechanism: str, settings: Settings, goal: float, rmse: float) -> Target:
    """Return what it takes to reach a goal; raise a `Mistake` if nothing does."""
    users = enough_users(judge, mechanism, settings, goal)
    epsilon = enough_epsilon(judge, mechanism, settings, goal)
    if users is None and epsilon is None:
        raise unreachable(mechanism, settings, goal)
    return Target(goal, rmse <= goal, users, epsilon)


def unreachable(mechanism: str, settings: Settings, goal: float) -> Mistake:
    return Mistake(
        Problem.TARGET_UNREACHABLE,
        mechanism=mechanism,
        goal=readable(goal),
        window=settings.window,
        labels=settings.labels,
    )


def enough_users(judge: Judge, mechanism: str, settings: Settings, goal: float) -> int | None:
    """Return the smallest fleet that reaches the goal, rounded up to three digits."""

    def error(users: float) -> float:
        return _error(judge, mechanism, lambda: replace(settings, users=round(users)))

    found = smallest(error, goal, settings.users, 1, judge.most_users)
    return None if found is None else int(round_up(round(found)))


def enough_epsilon(judge: Judge, mechanism: str, settings: Settings, goal: float) -> Epsilon | None:
    """Return the smallest epsilon that reaches the goal, rounded up to three digits."""

    def error(epsilon: float) -> float:
        return _error(judge, mechanism, lambda: replace(settings, epsilon=Epsilon.of(epsilon)))

    found = smallest(error, goal, float(settings.epsilon), LEAST_EPSILON, MOST_EPSILON)
    return None if found is None else Epsilon.of(f"{round_up(found):g}")


def _error(judge: Judge, mechanism: str, settings: Callable[[], Settings]) -> float:
    """Return the error to expect; infinite if the mechanism cannot run."""
    try:
        return judge(mechanism, settings()).rmse
    except Mistake as refusal:
        if refusal.problem in (Problem.TOO_FEW_USERS, Problem.BUDGET_TOO_SMALL):
            return inf
        raise
