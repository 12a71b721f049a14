"""The page of `ldpstream leaderboard`, as HTML and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from ldpstream import __version__
from ldpstream.lab.figures.heat import draw_heat
from ldpstream.lab.figures.style import display_name
from ldpstream.lab.files import csv_text, write_whole
from ldpstream.lab.leaderboard import Leaderboard, MechanismStanding, Place, standings
from ldpstream.lab.metrics import MRE_FLOOR
from ldpstream.lab.report import markdown
from ldpstream.lab.report.content import machine, streams_grid
from ldpstream.lab.report.page import Html, Section, figure, made_by, page, paragraph, table
from ldpstream.lab.report.report_table import ReportTable

TITLE = "Leaderboard: every mechanism on every stream, under the same promise"
NAME = "leaderboard"
CAPTION = (
    "The MSE of each mechanism over the least of its column; the best mechanism over all streams "
    "is on top."
)
READING = (
    "MSE is that of a frequency, averaged over timestamps and labels, with its standard error; a "
    f"mean relative error (MRE) counts frequencies below {MRE_FLOOR} as {MRE_FLOOR}. Coverage is "
    "the share of true frequencies inside their intervals, which are meant to hold 0.9. AUC is the "
    "area under the ROC of finding high values, all labels pooled. CFPU is the number of reports "
    "per user and timestamp. Time is the processor time of the simulated fleet, the mechanism and "
    "its intervals together. Differences within two standard errors are not significant."
)


@dataclass(frozen=True)
class FinishedLeaderboard:
    """A leaderboard with its figures, and what the page says of how it was made."""

    board: Leaderboard
    places: Sequence[Place]
    command: str
    seconds: float
    """Waited for, without the runs that were cached."""

    @property
    def standings(self) -> list[MechanismStanding]:
        return standings(self.places)

    def lead(self) -> str:
        board, first = self.board, self.standings[0]
        return (
            f"{len(board.mechanisms)} mechanisms on {len(board.entries)} streams, each with "
            f"epsilon {board.epsilon:g} in any {board.window} timestamps, {board.repeats} repeats. "
            f"{display_name(first.mechanism)} has the least MSE on {first.best_on} of them; on the "
            f"others it is at most {self._worst(first.mechanism):.2f} times the best."
        )

    def _worst(self, mechanism: str) -> float:
        return max(place.factor for place in self.places if place.mechanism == mechanism)

    def cost(self) -> str:
        computing = sum(place.seconds for place in self.places) * self.board.repeats
        runs = len(self.places) * self.board.repeats
        return (
            f"{runs:,} runs; waited for {self.seconds:.0f} s, without those in the cache; "
            f"computing {computing:.0f} s. {machine()}"
        )


def write_leaderboard(done: FinishedLeaderboard, folder: Path, also: Path | None = None) -> Path:
    """Write `leaderboard.html`, its CSV and its picture; return the HTML file.

    `also` is a Markdown file for the same page, with links into the folder.
    """
    write_whole(folder / f"{NAME}.csv", _csv(done.places))
    _draw(done, folder)
    if also is not None:
        write_whole(also, _markdown(done, markdown.place_of(folder, also)))
    svg = (folder / f"{NAME}.svg").read_text(encoding="utf-8")
    sections = [
        Section("all", "Over all streams", (table(_standings_grid(done.standings)),)),
        Section("picture", "Stream by stream", (figure(svg, NAME, CAPTION),)),
        *(
            Section(f"stream-{number}", title, (table(grid),))
            for number, (title, grid) in enumerate(_by_stream(done))
        ),
        Section("streams", "Streams", (table(_streams(done)),)),
    ]
    lead: list[Html] = [
        paragraph(done.lead(), "lead"),
        paragraph(READING),
        paragraph(done.cost(), "soft"),
        made_by(done.command),
    ]
    return write_whole(folder / f"{NAME}.html", page(TITLE, lead, sections))


def _draw(done: FinishedLeaderboard, folder: Path) -> None:
    factors = {
        (display_name(place.mechanism), place.entry.name): place.factor for place in done.places
    }
    rows = [display_name(one.mechanism) for one in done.standings]
    columns = [entry.name for entry in done.board.entries]
    draw_heat(factors, rows, columns, folder / NAME)


def _markdown(done: FinishedLeaderboard, place: str) -> str:
    parts = [
        f"# {TITLE}",
        done.lead(),
        f"Made with ldpstream {__version__} by this command, which writes this page too:",
        f"```\n{done.command}\n```",
        READING,
        "## Over all streams",
        markdown.table(_standings_grid(done.standings)),
        "## Stream by stream",
        f"![{CAPTION}]({place}/{NAME}.png)",
        f"{CAPTION} [CSV]({place}/{NAME}.csv), [SVG]({place}/{NAME}.svg)",
    ]
    for title, grid in _by_stream(done):
        parts += [f"### {title}", markdown.table(grid)]
    parts += ["## Streams", markdown.table(_streams(done)), "## What it took", done.cost()]
    return "\n\n".join(parts) + "\n"


def _standings_grid(found: Sequence[MechanismStanding]) -> ReportTable:
    columns = ("mechanism", "MSE / best", "best on", "MRE / best", "coverage", "AUC", "CFPU")
    rows: list[tuple[object, ...]] = [
        (
            display_name(one.mechanism),
            f"{one.factor:.2f}",
            one.best_on,
            f"{one.mre_factor:.2f}",
            _share(one.coverage),
            _share(one.auc),
            f"{one.cfpu:.3g}",
            f"{one.milliseconds:.2g}",
        )
        for one in found
    ]
    return ReportTable((*columns, "CPU ms per timestamp"), rows)


def _by_stream(done: FinishedLeaderboard) -> list[tuple[str, ReportTable]]:
    columns = (
        "mechanism",
        "MSE",
        "± se",
        "/ best",
        "MRE",
        "coverage",
        "AUC",
        "CFPU",
        "CPU s per run",
    )
    grids = []
    for entry in done.board.entries:
        rows: list[tuple[object, ...]] = [
            (
                display_name(one.mechanism),
                f"{one.mse:.3g}",
                f"{one.error:.1g}",
                f"{one.factor:.2f}",
                f"{one.mre:.3g}",
                _share(one.coverage),
                _share(one.auc),
                f"{one.cfpu:.3g}",
                f"{one.seconds:.2f}",
            )
            for one in done.places
            if one.entry is entry
        ]
        grids.append((f"{entry.name} ({entry.kind})", ReportTable(columns, rows)))
    return grids


def _streams(done: FinishedLeaderboard) -> ReportTable:
    entries = done.board.entries
    grid = streams_grid([entry.stream for entry in entries])
    rows = [(entry.name, *row[1:]) for entry, row in zip(entries, grid.rows, strict=True)]
    return ReportTable(grid.columns, rows)


def _csv(places: Sequence[Place]) -> str:
    figures = tuple(field.name for field in fields(Place))[1:]
    return csv_text(
        ("kind", "stream", *figures),
        ((one.entry.kind, one.entry.name, *_figures(one)) for one in places),
    )


def _figures(place: Place) -> tuple[object, ...]:
    return tuple(getattr(place, field.name) for field in fields(Place)[1:])


def _share(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:.3f}"
