"""The report of `ldpstream reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ldpstream.lab.figures import Chart, draw
from ldpstream.lab.figures.comparisons import Pair, draw_comparisons
from ldpstream.lab.figures.deviations import draw_deviations
from ldpstream.lab.files import write_whole
from ldpstream.lab.report import content
from ldpstream.lab.report.page import Html, Section, figure, made_by, page, paragraph, table
from ldpstream.lab.report.report_table import ReportTable
from ldpstream.lab.reproduction.analysis.exhibit import LBU_LPU, Analysis
from ldpstream.lab.reproduction.claims import Exhibit, JudgedClaim
from ldpstream.lab.reproduction.judges.communication import NEAR
from ldpstream.lab.reproduction.run import Reproduction


def write_exhibits(result: Reproduction, folder: Path) -> list[Path]:
    """Write CSV, PNG and SVG of each exhibit."""
    paths = []
    for name, exhibit in result.exhibits.items():
        paths.append(write_whole(folder / f"{name}.csv", exhibit.to_csv()))
        if isinstance(exhibit, Chart):
            paths += draw(exhibit, folder)
        elif isinstance(exhibit, Analysis):
            paths += draw_comparisons(_panels(exhibit), folder / name)
        else:
            paths += draw_deviations(exhibit.deviations(), NEAR, folder / name)
    return paths


def write_report(result: Reproduction, folder: Path, command: str) -> Path:
    """Write `report.html`, from the exhibits that `write_exhibits` left in the folder."""
    judged = result.judged()
    lead = [
        paragraph(content.outcome(judged), "lead"),
        paragraph(content.method(result)),
        made_by(command),
    ]
    sections = [
        Section("claims", "The paper's claims", (_claims(judged),)),
        *(_exhibit(name, exhibit, folder) for name, exhibit in result.exhibits.items()),
        Section("streams", "Streams", (table(content.streams_grid(result.streams)),)),
        Section(
            "cost",
            "What it took",
            (
                table(content.timings_grid(result.timings)),
                paragraph(f"{content.machine()} {content.SHARED_RUNS}", "soft"),
            ),
        ),
    ]
    return write_whole(folder / "report.html", page(content.TITLE, lead, sections))


def _claims(judged: Sequence[JudgedClaim]) -> Html:
    rows: list[tuple[object, ...]] = []
    for one in judged:
        said = one.row()["verdict"]
        verdict = f'<span class="{"good" if one.verdict.holds else "bad"}">{said}</span>'
        link = f'<a href="#{one.claim.rests_on}">{one.claim.rests_on}</a>'
        rows.append((Html(verdict), one.claim.words, Html(link), content.numbers(one)))
    columns = ("verdict", "claim", "rests on", "numbers compared")
    return table(ReportTable(columns, rows), "claims")


def _panels(analysis: Analysis) -> dict[str, list[Pair]]:
    """Return what the figure shows; a formula without m has a row for each setting."""
    panels: dict[str, list[Pair]] = {}
    for one in analysis.comparisons:
        name = one.mechanism
        if one.m is None:
            mechanisms = "" if name == LBU_LPU else f"{content.mechanisms(name)}, "
            name = mechanisms + one.stream.partition(" (")[0]
        pair = (name, one.predicted, one.measured, one.error)
        panels.setdefault(one.formula.value, []).append(pair)
    return panels


def _exhibit(name: str, exhibit: Exhibit, folder: Path) -> Section:
    svg = (folder / f"{name}.svg").read_text(encoding="utf-8")
    if isinstance(exhibit, Chart):
        return Section(name, exhibit.title, (figure(svg, name, exhibit.caption),))
    if isinstance(exhibit, Analysis):
        compared = table(content.analysis_grid(exhibit))
        parts = (figure(svg, name, content.ANALYSIS_CAPTION), compared)
        return Section(name, content.ANALYSIS_TITLE, parts)
    parts = (figure(svg, name, content.TABLE2_CAPTION), table(content.table2_grid(exhibit)))
    return Section(name, content.TABLE2_TITLE, parts)
