"""The report of `ldpstream compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ldpstream import __version__
from ldpstream.lab.figures import Chart, draw
from ldpstream.lab.files import csv_text, write_whole
from ldpstream.lab.metrics import MRE_FLOOR
from ldpstream.lab.recommendation import Recommendation
from ldpstream.lab.report.content import streams_grid
from ldpstream.lab.report.grid import Grid
from ldpstream.lab.report.page import Section, figure, made_by, page, paragraph, table
from ldpstream.lab.results import CURVES, Row
from ldpstream.streams.stream import Stream


def write_comparison(
    stream: Stream,
    charts: Sequence[Chart],
    summary: Sequence[Row],
    advice: Recommendation,
    folder: Path,
    command: str,
    floor: float = MRE_FLOOR,
) -> Path:
    """Write each chart as CSV, PNG and SVG, all figures as `comparison.csv`, and `report.html`."""
    for chart in charts:
        chart.write_csv(folder)
        draw(chart, folder)
    columns = tuple(name for name in summary[0] if name not in CURVES)
    rows = (tuple(row[name] for name in columns) for row in summary)
    write_whole(folder / "comparison.csv", csv_text(columns, rows))
    first, *more = advice.sentences()
    sections = [
        Section("ranking", "The mechanisms", (table(ranking_grid(advice)),)),
        *(_section(chart, folder) for chart in charts),
        Section("stream", "The stream", (table(streams_grid([stream])),)),
    ]
    lead = [
        paragraph(first, "lead"),
        *(paragraph(sentence) for sentence in more),
        paragraph(f"In the mean relative error a value below {floor:g} counts as {floor:g}."),
        made_by(__version__, command),
    ]
    title = f"Which mechanism for {stream.name}?"
    return write_whole(folder / "report.html", page(title, lead, sections))


def ranking_grid(advice: Recommendation) -> Grid:
    columns = ("mechanism", "error (MRE)", "times the best", "95 % interval", "best in")
    rows: list[tuple[object, ...]] = [
        (
            one.name,
            one.error,
            f"{one.factor:.2f}",
            f"{one.low:.2f} to {one.high:.2f}" if advice.repeats > 1 else "unknown",
            f"{len(one.best_in)} of {advice.settings}",
            one.mae,
            one.cfpu,
            f"{one.auc:.3f}",
        )
        for one in advice.ranking
    ]
    return Grid((*columns, "absolute error", "reports per user and timestamp", "AUC"), rows)


def _section(chart: Chart, folder: Path) -> Section:
    svg = (folder / f"{chart.name}.svg").read_text(encoding="utf-8")
    return Section(chart.name, chart.title, (figure(svg, chart.name, chart.caption),))
