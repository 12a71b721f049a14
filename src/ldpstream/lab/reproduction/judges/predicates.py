"""Small judges of charts: each compares numbers and returns a verdict that names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, log

from ldpstream.lab.figures.charts import Chart, Panel
from ldpstream.lab.figures.style import display_name

BUDGET = ("lbu", "lbd", "lba")
POPULATION = ("lpu", "lpd", "lpa")
"""LSP belongs to both divisions: it gives all of a window to one timestamp."""
SLOW = ("Sin", "Log")
SYNTHETIC = ("LNS", *SLOW)
"""Prefixes of the titles of the panels with synthetic streams."""


@dataclass(frozen=True)
class ClaimVerdict:
    """Whether a claim holds in the data, and the numbers that say so."""

    holds: bool
    compared: str


def falls(chart: Chart, mechanisms: Sequence[str], panels: str = "") -> ClaimVerdict:
    """Judge whether each line ends lower than it starts."""
    return _trend(chart, mechanisms, panels, lambda change: change < 1)


def rises(chart: Chart, mechanisms: Sequence[str], panels: str = "") -> ClaimVerdict:
    """Judge whether each line ends higher than it starts."""
    return _trend(chart, mechanisms, panels, lambda change: change > 1)


def stays(chart: Chart, mechanisms: Sequence[str], within: float, panels: str = "") -> ClaimVerdict:
    """Judge whether each line ends within this share of where it starts."""
    return _trend(chart, mechanisms, panels, lambda change: abs(change - 1) <= within)


def below(
    chart: Chart, better: Sequence[str], worse: Sequence[str], panels: str = ""
) -> ClaimVerdict:
    """Judge whether at every x the worst of `better` lies below the best of `worse`."""
    lost, factors = [], []
    for panel in _chosen(chart, panels):
        high = _envelope(panel, better, max)
        low = _envelope(panel, worse, min)
        for x in high.keys() & low.keys():
            factors.append(low[x] / high[x])
            if factors[-1] <= 1:
                lost.append(f"{panel.title} at {x:g}: {high[x]:.3g} against {low[x]:.3g}")
    said = f"{_names(better)} against {_names(worse)}: {_span(factors)} times lower in "
    said += f"{len(factors) - len(lost)} of {len(factors)} settings"
    return ClaimVerdict(bool(factors) and not lost, said + _except(lost))


def usually_below(chart: Chart, better: str, worse: str, panels: str = "") -> ClaimVerdict:
    """Judge whether one lies below the other in most settings, and in the geometric mean."""
    ratios = [
        worse_at / better_at
        for panel in _chosen(chart, panels)
        for better_at, worse_at in _pairs(panel, better, worse)
    ]
    won = sum(ratio > 1 for ratio in ratios)
    mean = geometric_mean(ratios)
    said = f"{display_name(better)} below {display_name(worse)} in {won} of {len(ratios)} settings"
    return ClaimVerdict(2 * won > len(ratios) and mean > 1, f"{said}, {mean:.2f} times on average")


def below_on_average(chart: Chart, better: str, worse: str, panels: Sequence[str]) -> ClaimVerdict:
    """Judge whether in each of these panels one's geometric mean along x is below the other's."""
    said, holds = [], True
    for title in panels:
        for panel in _chosen(chart, title):
            mean = geometric_mean([high / low for low, high in _pairs(panel, better, worse)])
            said.append(f"{mean:.2f} times on {panel.title}")
            holds = holds and mean > 1
    start = f"{display_name(better)} below {display_name(worse)}: "
    return ClaimVerdict(holds and bool(said), start + ", ".join(said))


def all_of(*verdicts: ClaimVerdict) -> ClaimVerdict:
    """Return a verdict that holds if all of these hold."""
    return ClaimVerdict(
        all(verdict.holds for verdict in verdicts),
        "; ".join(verdict.compared for verdict in verdicts),
    )


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean, which suits ratios; NaN if there are no values.

    >>> f"{geometric_mean([2, 8]):.6g}"
    '4'
    """
    if not values or min(values) <= 0:
        return float("nan")
    return exp(sum(map(log, values)) / len(values))


def ends(panel: Panel, mechanism: str) -> tuple[float, float]:
    """Return the first and the last y of a line."""
    line = panel.line(mechanism)
    return line[0].y, line[-1].y


def on_synthetic(chart: Chart) -> Chart:
    """Return the chart with only the panels of LNS, Sin and Log."""
    return replace(chart, panels=tuple(p for p in chart.panels if p.title.startswith(SYNTHETIC)))


def on_real(chart: Chart) -> Chart:
    """Return the chart with only the panels of real streams."""
    return replace(
        chart, panels=tuple(p for p in chart.panels if not p.title.startswith(SYNTHETIC))
    )


def panel_of(chart: Chart, title: str) -> Panel:
    """Return the panel whose title begins with `title`."""
    return _chosen(chart, title)[0]


def _trend(
    chart: Chart, mechanisms: Sequence[str], panels: str, fine: Callable[[float], bool]
) -> ClaimVerdict:
    changes, wrong = [], []
    for panel in _chosen(chart, panels):
        for mechanism in mechanisms:
            if panel.line(mechanism):
                first, last = ends(panel, mechanism)
                changes.append(last / first)
                if not fine(changes[-1]):
                    name = display_name(mechanism)
                    wrong.append(f"{name} on {panel.title}: {first:.4g} to {last:.4g}")
    said = f"last / first of {_names(mechanisms)}: {_span(changes)} over {len(changes)} lines"
    return ClaimVerdict(bool(changes) and not wrong, said + _except(wrong))


def _chosen(chart: Chart, start: str) -> list[Panel]:
    return [panel for panel in chart.panels if panel.title.startswith(start)]


def _pairs(panel: Panel, left: str, right: str) -> Iterable[tuple[float, float]]:
    lefts, rights = panel.values(left), panel.values(right)
    return [(lefts[x], rights[x]) for x in sorted(lefts.keys() & rights.keys())]


def _envelope(
    panel: Panel, mechanisms: Sequence[str], pick: Callable[[list[float]], float]
) -> dict[float, float]:
    """Return, by x, the highest or the lowest of these lines."""
    lines = [panel.values(mechanism) for mechanism in mechanisms]
    shared = set.intersection(*(set(line) for line in lines))
    return {x: pick([line[x] for line in lines]) for x in sorted(shared)}


def _names(mechanisms: Sequence[str]) -> str:
    return ", ".join(map(display_name, mechanisms))


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.3g} to {max(values):.3g}" if values else "nothing"


def _except(cases: Sequence[str], shown: int = 3) -> str:
    if not cases:
        return ""
    more = f" and {len(cases) - shown} more" if len(cases) > shown else ""
    return "; not " + "; not ".join(cases[:shown]) + more
