"""A recommendation of a mechanism, in sentences that follow from the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, log
from statistics import fmean

from ldpstream.lab.figures.charts import Row
from ldpstream.lab.figures.style import display_name
from ldpstream.lab.paired import Paired, paired

LARGE = 0.5
"""A mean relative error above this is of little use to anyone."""
ENOUGH = 10
"""Repeats from which a difference that chance can explain counts as small, not as unknown."""
NOTABLE = 0.01
"""A difference of AUCs that is worth a sentence."""
TINY = 1e-12
"""Stands for an error of 0, which has no logarithm."""

Setting = tuple[float, int]
"""Epsilon and window."""
Figure = Callable[[Row], float]
"""Returns a figure of a run."""


def log_error(row: Row) -> float:
    return log(max(row["mre"], TINY))


def auc_per_label(row: Row) -> float:
    return float(row["auc_per_label"])


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
    auc_per_label: float | None
    """None if no label has an event."""
    coverage: float | None
    """None if no intervals are stated."""
    p50_mae: float | None
    """Of a distribution, as that below: the mean absolute error, as a share of the range."""
    p99_mae: float | None
    best_in: tuple[Setting, ...]
    """The settings in which its mean error is the smallest."""
    runs: tuple[Row, ...]
    """The figures of its single runs."""

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

    def against(self, other: Ranked, figure: Figure, at: Setting | None = None) -> Paired:
        """Return this one's figure minus the other's, repeat by repeat: at a setting, or at all."""
        own, theirs = _by_repeat(self.runs, figure, at), _by_repeat(other.runs, figure, at)
        return paired(own, theirs)

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
            "auc_per_label": self.auc_per_label,
            "coverage": self.coverage,
            "p50_mae": self.p50_mae,
            "p99_mae": self.p99_mae,
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
                self._quantiles(),
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
                "times as much. One repeat cannot rule out chance: "
                f"give --repeats {ENOUGH} or more."
            )
        if not alike:
            return f"Use {best.name}. {_against(others[0], self.repeats)}."
        if self.repeats < ENOUGH:
            return (
                f"Use {best.name}, which has the smallest error. {self.repeats} repeats are too few"
                f" to tell it from: {_listed(alike)}. {_against(alike[0], self.repeats)}. To know, "
                f"give --repeats {ENOUGH} or more."
            )
        return (
            f"Use {self.chosen.name}. These errors cannot be told apart: "
            f"{_listed([best, *alike])}. {_against(alike[0], self.repeats)}. "
            f"Of these {self.chosen.name} sends the fewest reports."
        )

    def _error(self) -> str:
        where = "" if self.settings == 1 else f" (geometric mean over {self.settings} settings)"
        return (
            f"The mean relative error of {self.chosen.name} is {self.chosen.error:.3g}{where}; an "
            f"estimate is off by {self.chosen.mae:.2g} on average."
        )

    def _quantiles(self) -> str:
        if self.chosen.p50_mae is None or self.chosen.p99_mae is None:
            return ""
        return (
            f"Its median is off by {100 * self.chosen.p50_mae:.2g} % of the range, its p99 by "
            f"{100 * self.chosen.p99_mae:.2g} %."
        )

    def _cost(self) -> str:
        chosen = self.chosen
        every = f", one every {1 / chosen.cfpu:.0f}" if 0 < chosen.cfpu < 1 else ""
        said = f"Each user sends {chosen.cfpu:.3g} reports per timestamp{every}"
        cheapest = min(self.ranking, key=lambda one: one.cfpu)
        if cheapest.cfpu < 0.99 * chosen.cfpu:
            error = _times(cheapest.against(chosen, log_error))
            said += f"; {cheapest.name} takes the fewest, {cheapest.cfpu:.3g}, its error is {error}"
        return f"{said}."

    def _elsewhere(self) -> str:
        """Say in which settings another mechanism is better than the chosen one, beyond chance."""
        won = len(self.chosen.best_in)
        if self.settings == 1 or won == self.settings:
            return ""
        others = {
            one.name: [at for at in one.best_in if one.against(self.chosen, log_error, at).differs]
            for one in self.ranking
            if one is not self.chosen
        }
        where = "; ".join(f"{name} at {_places(at)}" for name, at in others.items() if at)
        said = f"It has the smallest mean error in {won} of {self.settings} settings."
        if not where:
            return f"{said} Elsewhere no other is better beyond chance."
        return f"{said} Better beyond chance: {where}."

    def _events(self) -> str:
        """Name the mechanism that finds high values best, if that is beyond chance."""
        if self.repeats < 2 or self.chosen.auc_per_label is None:
            return ""
        keenest = max(self.ranking, key=lambda one: one.auc_per_label or 0.0)
        gain = keenest.against(self.chosen, auc_per_label)
        if gain.mean < NOTABLE or not gain.differs:
            return ""
        return (
            f"If high values must be noticed, look at {keenest.name}: its AUC per label is "
            f"{keenest.auc_per_label:.3f}, that of {self.chosen.name} "
            f"{self.chosen.auc_per_label:.3f}."
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
    the mechanisms that cannot be told apart from the best one, the cheapest is chosen, if there
    were enough repeats: after a few, anything may be in that set.
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
    chosen = min(alike, key=lambda one: one.cfpu) if repeats >= ENOUGH else ranking[0]
    return Recommendation(chosen, ranking, len(winners), repeats)


def _rank(
    name: str,
    errors: dict[str, list[float]],
    best: str,
    winners: dict[Setting, str],
    rows: Sequence[Row],
) -> Ranked:
    own = tuple(row for row in rows if row["mechanism"] == name)
    ratio = paired(errors[name], errors[best])
    return Ranked(
        name,
        exp(fmean(errors[name])),
        exp(ratio.mean),
        exp(ratio.low),
        exp(ratio.high) if ratio.known else inf,
        fmean(row["mae"] for row in own),
        fmean(row["cfpu"] for row in own),
        fmean(row["auc"] for row in own),
        _mean(own, "auc_per_label"),
        _mean(own, "coverage"),
        _mean(own, "p50_mae"),
        _mean(own, "p99_mae"),
        tuple(setting for setting, winner in winners.items() if winner == name),
        own,
    )


def _errors(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return, by mechanism, the mean over settings of log MRE for each repeat."""
    names = dict.fromkeys(row["mechanism"] for row in rows)
    return {
        name: _by_repeat([row for row in rows if row["mechanism"] == name], log_error)
        for name in names
    }


def _by_repeat(rows: Sequence[Row], figure: Figure, at: Setting | None = None) -> list[float]:
    """Return a figure for each repeat: its mean over all settings, or the one at a setting."""
    found: dict[int, list[float]] = {}
    for row in rows:
        if at in (None, (row["epsilon"], row["window"])):
            found.setdefault(row["repeat"], []).append(figure(row))
    return [fmean(figures) for figures in found.values()]


def _mean(rows: Sequence[Row], column: str) -> float | None:
    """Return the mean of a figure, or None if some run has none."""
    figures = [row[column] for row in rows]
    return None if None in figures else fmean(figures)


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


def _times(logs: Paired) -> str:
    """Say how many times as large an error is, from paired differences of logarithms."""
    said = f"{exp(logs.mean):.2f} times as large"
    if not logs.known:
        return said
    return f"{said} (95 % interval {interval(exp(logs.low), exp(logs.high))})"


def _against(other: Ranked, repeats: int) -> str:
    return (
        f"{other.name} errs {other.factor:.2f} times as much "
        f"(95 % interval {interval(other.low, other.high)}, {repeats} repeats)"
    )


def _listed(ranked: Sequence[Ranked], shown: int = 4) -> str:
    """List names with semicolons, since some have commas of their own."""
    more = [f"{len(ranked) - shown} more"] if len(ranked) > shown else []
    return "; ".join([one.name for one in ranked[:shown]] + more)


def interval(low: float, high: float) -> str:
    """Return an interval of a factor, without digits that mean nothing.

    >>> interval(1.234, 2.5), interval(1e-12, 8.6e11)
    ('1.23 to 2.50', 'below 0.01 to above 100')
    """
    return f"{_factor(low)} to {_factor(high)}"


def _factor(factor: float) -> str:
    if factor < 0.01:
        return "below 0.01"
    return f"{factor:.2f}" if factor <= 100 else "above 100"
