"""Exhibits as the paper describes them, made up: every claim holds in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ldpstream.lab.figures.charts import FALSE_ALARMS, Axis, Chart, Panel, Point
from ldpstream.lab.reproduction.analysis.exhibit import Analysis, Formula, FormulaComparison
from ldpstream.lab.reproduction.claims import Exhibit
from ldpstream.lab.reproduction.studies import CFPU, CLASSIC_BUDGET, HITS, MRE
from ldpstream.lab.reproduction.table2 import Cell, Table2, paper_figures
from ldpstream.mechanisms.registry import CLASSIC

X = Axis("x", "anything")
Lines = dict[str, list[float]]

ERRORS = {"lbu": 1.0, "lbd": 0.9, "lba": 0.7, "lpu": 0.2, "lpd": 0.15, "lpa": 0.12}
GROWTH = {"lbd": 1.5, "lpd": 1.2, "lpa": 1.2}
"""Of the error with w, from one x to the next; 1.3 for the others."""


def panel(title: str, lines: Lines, xs: tuple[float, ...] = (1, 2, 3, 4, 5)) -> Panel:
    points = (
        Point(x, mechanism, y, 0.0, 3)
        for mechanism, ys in lines.items()
        for x, y in zip(xs, ys, strict=True)
    )
    return Panel(title, X, tuple(points))


def chart(name: str, *panels: Panel, y: Axis = MRE) -> Chart:
    return Chart(name, name, "", y, panels)


def errors(sampling: float, factor: Callable[[str], float]) -> Lines:
    starts = {**ERRORS, "lsp": sampling}
    return {name: [y * factor(name) ** i for i in range(5)] for name, y in starts.items()}


def by_stream(name: str, factor: Callable[[str], float]) -> Chart:
    """LSP is best on the slow streams only."""
    levels = {"LNS": 0.4, "Sin": 0.05, "Log": 0.05, "msnbc": 0.4}
    return chart(name, *(panel(title, errors(lsp, factor)) for title, lsp in levels.items()))


def fluctuation() -> Chart:
    lines = {
        **{name: [1 + 0.1 * i for i in range(5)] for name in ("lbu", "lbd", "lba")},
        "lsp": [0.02, 0.05, 0.2, 0.4, 0.6],
        "lpu": [0.20, 0.21, 0.22, 0.23, 0.24],
        "lpd": [0.15, 0.18, 0.21, 0.25, 0.28],
        "lpa": [0.12, 0.15, 0.20, 0.24, 0.27],
    }
    return chart("fig-fluctuation", panel("LNS", lines), panel("Sin", lines))


def monitoring() -> Chart:
    sharpness = {"lba": 3, "lsp": 2, "lpu": 10, "lpd": 20, "lpa": 25}
    points = tuple(
        Point(i / 100, mechanism, (i / 100) ** (1 / k), 0.0, 3)
        for mechanism, k in sharpness.items()
        for i in range(101)
    )
    return chart("fig-roc", Panel("LNS", FALSE_ALARMS, points), y=HITS)


def communication() -> Chart:
    flat = {"lbu": [1.0] * 5, "lbd": [1.27] * 5, "lba": [1.17] * 5}
    flat |= {"lsp": [0.05] * 5, "lpu": [0.05] * 5}
    rising = {"lpd": [0.045 + 0.0005 * i for i in range(5)]}
    rising |= {"lpa": [0.040 + 0.0005 * i for i in range(5)]}
    windows = (10, 20, 30, 40, 50)
    shares = {"lsp": 1.0, "lpu": 1.0, "lpd": 0.9, "lpa": 0.8}
    falling = {name: [share / w for w in windows] for name, share in shares.items()}
    falling |= {"lbd": [1.27 - 0.01 * i for i in range(5)], "lbu": [1.0] * 5}
    falling |= {"lba": [1.17 - 0.01 * i for i in range(5)]}
    return chart(
        "fig-communication",
        panel("population", flat | rising),
        panel("fluctuation", flat | rising),
        panel("privacy budget", flat | rising),
        panel("window", falling, windows),
        y=CFPU,
    )


def remark_3() -> Chart:
    """Population division at half of the error of budget division."""
    lines = {name: [0.1] * 5 for name in CLASSIC} | {name: [0.2] * 5 for name in CLASSIC_BUDGET}
    return chart("fig-remark3", panel("LNS", lines))


def table2() -> Table2:
    """The paper's own."""
    return Table2(tuple(Cell(*key, y, 0.0, 3, y) for key, y in paper_figures().items()))


def analysis() -> Analysis:
    """Formulas that hold to the letter; ratios of LBU to LPU are 2."""
    at = ("lpa", "sin", 1.0, 20)
    return Analysis(
        (
            *(
                FormulaComparison(formula, *at, None, 0.0, 0.0, 0.001)
                for formula in (Formula.DISSIMILARITY, Formula.CORRECTED)
            ),
            *(
                FormulaComparison(formula, *at, None, 1.0, 2.0)
                for formula in (Formula.UNIFORM, Formula.UNIFORM_SAMPLED)
            ),
            *(
                FormulaComparison(formula, *at, 4.0, 0.5, 0.5)
                for formula in (
                    Formula.WINDOW_MSE,
                    Formula.WINDOW_MSE_AS_USED,
                    Formula.COMMUNICATION,
                )
            ),
        )
    )


def exhibits() -> dict[str, Exhibit]:
    return {
        "analysis": analysis(),
        "table2": table2(),
        "fig-epsilon": by_stream("fig-epsilon", lambda name: 0.8),
        "fig-window": by_stream("fig-window", lambda name: GROWTH.get(name, 1.3)),
        "fig-population": by_stream("fig-population", lambda name: 0.7),
        "fig-fluctuation": fluctuation(),
        "fig-roc": monitoring(),
        "fig-communication": communication(),
        "fig-remark3": remark_3(),
    }


def turned_over(exhibit: Exhibit) -> Exhibit:
    """The same with every order reversed: y becomes 1/y, or 1-y for a rate or a bias."""
    if isinstance(exhibit, Analysis):
        return Analysis(
            tuple(
                replace(one, measured=1 / one.measured if one.measured else 1.0)
                for one in exhibit.comparisons
            )
        )
    if isinstance(exhibit, Table2):
        return Table2(tuple(replace(cell, ours=1 / cell.ours) for cell in exhibit.cells))
    rate = exhibit.y is HITS
    panels = (
        replace(one, points=tuple(replace(p, y=1 - p.y if rate else 1 / p.y) for p in one.points))
        for one in exhibit.panels
    )
    return replace(exhibit, panels=tuple(panels))
