"""The report of `ldpstream compare`."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path

from ldpstream.lab.figures import Chart, draw
from ldpstream.lab.figures.drawing import save
from ldpstream.lab.figures.releases import release_panels
from ldpstream.lab.figures.style import display_name, paper_style
from ldpstream.lab.files import csv_text, write_whole
from ldpstream.lab.metrics import MRE_FLOOR
from ldpstream.lab.recommendation import Recommendation, interval
from ldpstream.lab.report.content import streams_grid
from ldpstream.lab.report.page import Section, figure, made_by, page, paragraph, table
from ldpstream.lab.report.report_table import ReportTable
from ldpstream.lab.results import CURVES, Row
from ldpstream.lab.simulation import Simulation
from ldpstream.streams.stream import Stream

RELEASES = "releases"
SHOWN = 2
"""The labels of the figure of releases."""
COVERAGES = {
    "coverage": "all",
    "coverage_rare": "labels below 1 %",
    "coverage_middle": "1 to 10 %",
    "coverage_big": "above 10 %",
    "coverage_after_jump": "after a jump",
}


def write_comparison(
    stream: Stream,
    charts: Sequence[Chart],
    summary: Sequence[Row],
    advice: Recommendation,
    folder: Path,
    command: str,
    floor: float = MRE_FLOOR,
    releases: Sequence[Simulation] = (),
) -> Path:
    """Write each chart as CSV, PNG and SVG, all figures as `comparison.csv`, and `report.html`.

    `releases` are runs to show with their intervals, as PNG and SVG.
    """
    for chart in charts:
        chart.write_csv(folder)
        draw(chart, folder)
    columns = tuple(name for name in summary[0] if name not in CURVES)
    rows = (tuple(row[name] for name in columns) for row in summary)
    write_whole(folder / "comparison.csv", csv_text(columns, rows))
    first, *more = advice.sentences()
    sections = [
        Section("ranking", "The mechanisms", (table(ranking_grid(advice)),)),
        *([_releases(releases, folder)] if releases else []),
        *(_section(chart, folder) for chart in charts),
        Section("stream", "The stream", (table(streams_grid([stream])),)),
    ]
    lead = [
        paragraph(first, "lead"),
        *(paragraph(sentence) for sentence in more),
        paragraph(f"In the mean relative error a value below {floor:g} counts as {floor:g}."),
        made_by(command),
    ]
    title = f"Which mechanism for {stream.name}?"
    return write_whole(folder / "report.html", page(title, lead, sections))


def _releases(runs: Sequence[Simulation], folder: Path) -> Section:
    """Return the section with what the mechanisms release, and how often the truth was inside."""
    with paper_style():
        save(release_panels(runs, most=SHOWN), folder / RELEASES)
    svg = (folder / f"{RELEASES}.svg").read_text(encoding="utf-8")
    caption = (
        "Truth, releases and 90 % intervals of the labels that move most, in the first repeat."
    )
    rows: list[tuple[object, ...]] = [
        (display_name(one.mechanism), *(_share(one.mean(kind)) for kind in COVERAGES))
        for one in runs
    ]
    coverages = ReportTable(("coverage of", *COVERAGES.values()), rows)
    return Section(RELEASES, "What is released", (figure(svg, RELEASES, caption), table(coverages)))


def _share(part: float | None) -> str:
    return "none" if part is None or isnan(part) else f"{part:.3f}"


def ranking_grid(advice: Recommendation) -> ReportTable:
    """Return the mechanisms; an interval is that of paired differences, repeat by repeat."""
    columns = ("mechanism", "error (MRE)", "times the best", "95 % interval", "differs", "best in")
    rows: list[tuple[object, ...]] = [
        (
            one.name,
            one.error,
            f"{one.factor:.2f}",
            interval(one.low, one.high) if advice.repeats > 1 else "unknown",
            "yes" if one.told_apart else "no" if advice.repeats > 1 else "unknown",
            f"{len(one.best_in)} of {advice.settings}",
            one.mae,
            one.cfpu,
            _share(one.coverage),
            _share(one.auc_per_label),
            f"{one.auc:.3f}",
        )
        for one in advice.ranking
    ]
    more = ("absolute error", "reports per user and timestamp", "coverage", "AUC per label")
    return ReportTable((*columns, *more, "AUC, pooled"), rows)


def _section(chart: Chart, folder: Path) -> Section:
    svg = (folder / f"{chart.name}.svg").read_text(encoding="utf-8")
    return Section(chart.name, chart.title, (figure(svg, chart.name, chart.caption),))
