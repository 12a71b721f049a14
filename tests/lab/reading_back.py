"""Exhibits of a reproduction, read back from their CSVs, which hold all that a claim rests on."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace

from ldpstream.lab.figures.charts import Chart, Point
from ldpstream.lab.reproduction.analysis.exhibit import Analysis, Formula, FormulaComparison
from ldpstream.lab.reproduction.claims import Exhibit
from ldpstream.lab.reproduction.table2 import Cell, Table2


def read_back(exhibit: Exhibit, text: str) -> Exhibit:
    """Return an exhibit with the content of a CSV in place of its own."""
    rows = list(csv.DictReader(io.StringIO(text)))
    if isinstance(exhibit, Analysis):
        return Analysis(tuple(map(_comparison, rows)))
    if isinstance(exhibit, Table2):
        return Table2(tuple(map(_cell, rows)))
    return _chart(exhibit, rows)


def _chart(chart: Chart, rows: list[dict[str, str]]) -> Chart:
    found: dict[str, list[Point]] = {panel.title: [] for panel in chart.panels}
    for row in rows:
        point = float(row["x"]), row["mechanism"], float(row["y"]), float(row["sd"])
        found[row["panel"]].append(Point(*point, int(row["repeats"])))
    panels = (replace(panel, points=tuple(found[panel.title])) for panel in chart.panels)
    return replace(chart, panels=tuple(panels))


def _cell(row: Mapping[str, str]) -> Cell:
    return Cell(
        float(row["epsilon"]),
        int(row["window"]),
        row["stream"],
        row["mechanism"],
        float(row["cfpu"]),
        float(row["sd"]),
        int(row["repeats"]),
        float(row["paper"]) if row["paper"] else None,
    )


def _comparison(row: Mapping[str, str]) -> FormulaComparison:
    return FormulaComparison(
        Formula(row["formula"]),
        row["mechanism"],
        row["stream"],
        float(row["epsilon"]),
        int(row["window"]),
        float(row["m"]) if row["m"] else None,
        float(row["predicted"]),
        float(row["measured"]),
        float(row["error"]) if row["error"] else None,
    )
