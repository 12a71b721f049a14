"""A recommendation of a mechanism, in sentences that follow from the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, log, sqrt
from statistics import fmean, stdev

from ldpstream.lab.figures.charts import Row
from ldpstream.lab.figures.style import display_name

LARGE = 0.5
"""A mean relative error above this is of little use to anyone."""
NOTABLE = 0.01
"""A difference of AUCs that is worth a sentence."""
TINY = 1e-12
"""Stands for an error of 0, which has no logarithm."""

Setting = tuple[float, int]
"""Epsilon and window."""


@dataclass(frozen=True)
class Ranked:
    """The figures of one mechanism over all settings."""

    mechanism: str
    error: float
    """Geometric mean over settings and repeats of the mean relative error."""
    factor: float
    """Its error over that of the best."""
    low: float
    high: float
    """95 % interval of the factor; from 0 to infinity if there was one repeat."""
    mae: float
    cfpu: float
    auc: float
    best_in: tuple[Setting, ...]
    """The settings in which its error is the smallest."""

    @property
    def name(self) -> str:
        return display_name(self.mechanism)

    @property
    def repeated(self) -> bool:
        """Whether there were enough repeats for an interval."""
        return isfinite(self.high)

    @property
    def told_apart(self) -> bool:
        """Whether it is significantly worse than the best one, by its 95 % interval."""
        return self.low > 1

    def row(self) -> dict[str, object]:
        return {
            "mechanism": self.mechanism,
            "mre": self.error,
            "times_the_best": self.factor,
            "low": self.low if self.repeated else None,
            "high": self.high if self.repeated else None,
            "mae": self.mae,
            "cfpu": self.cfpu,
            "auc": self.auc,
            "best_in": len(self.best_in),
        }


@dataclass(frozen=True)
class Recommendation:
    """The choice, and all mechanisms from the smallest error to the largest."""

    chosen: Ranked
    ranking: tuple[Ranked, ...]
    settings: int
    repeats: int

    def sentences(self) -> list[str]:
        return [
            sentence
            for sentence in (
                self._choice(),
                self._error(),
                self._cost(),
                self._elsewhere(),
                self._events(),
                self._warning(),
            )
            if sentence
        ]

    def _choice(self) -> str:
        best, *others = self.ranking
        alike = [one for one in others if not one.told_apart]
        if not others:
            return f"Only {best.name} was run."
        if self.repeats < 2:
            return (
                f"{best.name} has the smallest error; {others[0].name} errs {others[0].factor:.2f} "
                "times as much. One repeat cannot rule out chance: give --repeats 3 or more."
            )
        if not alike:
            return f"Use {best.name}. {_against(others[0], self.repeats)}."
        names = ", ".join(one.name for one in (best, *alike))
        spread = "; ".join(_against(one, self.repeats) for one in alike)
        return (
            f"Use {self.chosen.name}. The errors of {names} cannot be told apart here: {spread}. "
            f"Of these {self.chosen.name} sends the fewest reports."
        )

    def _error(self) -> str:
        where = "" if self.settings == 1 else f" (geometric mean over {self.settings} settings)"
        return (
            f"The mean relative error of {self.chosen.name} is {self.chosen.error:.3g}{where}; an "
            f"estimate is off by {self.chosen.mae:.2g} on average."
        )

    def _cost(self) -> str:
        chosen = self.chosen
        every = f", one every {1 / chosen.cfpu:.0f}" if 0 < chosen.cfpu < 1 else ""
        said = f"Each user sends {chosen.cfpu:.3g} reports per timestamp{every}"
        cheapest = min(self.ranking, key=lambda one: one.cfpu)
        if cheapest.cfpu < 0.99 * chosen.cfpu:
            said += f"; the cheapest, {cheapest.name}, {cheapest.cfpu:.3g} with an error "
            said += f"{cheapest.error / chosen.error:.2f} times as large"
        return f"{said}."

    def _elsewhere(self) -> str:
        """Say in which settings another mechanism is better than the chosen one."""
        others = [
            f"{one.name} at {_places(one.best_in)}"
            for one in self.ranking
            if one.best_in and one is not self.chosen
        ]
        if self.settings == 1 or not others:
            return ""
        won = len(self.chosen.best_in)
        where = "; ".join(others)
        said = f"It has the smallest error in {won} of {self.settings} settings."
        return f"{said} Elsewhere: {where}."

    def _events(self) -> str:
        keenest = max(self.ranking, key=lambda one: one.auc)
        if keenest.auc - self.chosen.auc < NOTABLE:
            return ""
        return (
            f"If high values must be noticed, look at {keenest.name}: its AUC is "
            f"{keenest.auc:.3f}, that of {self.chosen.name} {self.chosen.auc:.3f}."
        )

    def _warning(self) -> str:
        if self.chosen.error <= LARGE:
            return ""
        return (
            "The relative error is large: small values drown in noise. Use more users, a "
            "larger ε, a shorter window or fewer labels."
        )


def recommend(rows: Sequence[Row]) -> Recommendation:
    """Recommend a mechanism from the runs of a `Comparison`.

    Errors are compared by the mean of their logarithms over all settings, repeat by repeat. Of
    the mechanisms that cannot be told apart from the best one, the cheapest is chosen.
    """
    errors = _errors(rows)
    best = min(errors, key=lambda name: fmean(errors[name]))
    winners = _winners(rows)
    ranking = tuple(
        _rank(name, errors, best, winners, rows)
        for name in sorted(errors, key=lambda name: fmean(errors[name]))
    )
    repeats = len(errors[best])
    alike = [one for one in ranking if one.mechanism == best or not one.told_apart]
    chosen = min(alike, key=lambda one: one.cfpu) if repeats > 1 else ranking[0]
    return Recommendation(chosen, ranking, len(winners), repeats)


def _rank(
    name: str,
    errors: dict[str, list[float]],
    best: str,
    winners: dict[Setting, str],
    rows: Sequence[Row],
) -> Ranked:
    own = [row for row in rows if row["mechanism"] == name]
    ratios = [mine - other for mine, other in zip(errors[name], errors[best], strict=True)]
    middle, half = fmean(ratios), _half_interval(ratios)
    return Ranked(
        name,
        exp(fmean(errors[name])),
        exp(middle),
        exp(middle - half),
        exp(middle + half) if isfinite(half) else inf,
        fmean(row["mae"] for row in own),
        fmean(row["cfpu"] for row in own),
        fmean(row["auc"] for row in own),
        tuple(setting for setting, winner in winners.items() if winner == name),
    )


def _errors(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return, by mechanism, the mean over settings of log MRE for each repeat."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        of_repeat = found.setdefault(row["mechanism"], {}).setdefault(row["repeat"], [])
        of_repeat.append(log(max(row["mre"], TINY)))
    return {name: [fmean(logs) for logs in repeats.values()] for name, repeats in found.items()}


def _winners(rows: Sequence[Row]) -> dict[Setting, str]:
    """Return the mechanism with the smallest mean error in each setting."""
    found: dict[Setting, dict[str, list[float]]] = {}
    for row in rows:
        setting = found.setdefault((row["epsilon"], row["window"]), {})
        setting.setdefault(row["mechanism"], []).append(row["mre"])
    return {
        setting: min(means, key=lambda name: fmean(means[name])) for setting, means in found.items()
    }


def _places(settings: Sequence[Setting], shown: int = 3) -> str:
    named = [f"(ε = {epsilon:g}, w = {window})" for epsilon, window in settings[:shown]]
    more = [f"{len(settings) - shown} more"] if len(settings) > shown else []
    return ", ".join(named + more)


def _against(other: Ranked, repeats: int) -> str:
    return (
        f"{other.name} errs {other.factor:.2f} times as much "
        f"(95 % interval {other.low:.2f} to {other.high:.2f}, {repeats} repeats)"
    )


def _half_interval(values: Sequence[float]) -> float:
    """Return half the width of the mean's 95 % interval; infinite if it is unknown."""
    if len(values) < 2:
        return inf
    return student(len(values) - 1) * stdev(values) / sqrt(len(values))


def student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t: a table, then an expansion around the normal one.

    >>> [round(student(freedom), 2) for freedom in (1, 2, 10, 100)]
    [12.71, 4.3, 2.23, 1.98]
    """
    table = (12.706, 4.303, 3.182, 2.776)
    if freedom <= len(table):
        return table[freedom - 1]
    return 1.95996 + 2.3723 / freedom + 2.8225 / freedom**2
