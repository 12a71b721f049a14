"""The report of `ldpstream reproduce` as a page of Markdown, for the documentation."""

from __future__ import annotations

from os.path import relpath
from pathlib import Path

from ldpstream.lab.figures import Chart
from ldpstream.lab.files import write_whole
from ldpstream.lab.provenance import made_with
from ldpstream.lab.report import content
from ldpstream.lab.report.report_table import ReportTable
from ldpstream.lab.reproduction.analysis.exhibit import Analysis
from ldpstream.lab.reproduction.claims import Exhibit
from ldpstream.lab.reproduction.run import Reproduction


def write_markdown(result: Reproduction, folder: Path, command: str, path: Path) -> Path:
    """Write a page that links to the figures in `folder`."""
    judged = result.judged()
    place = place_of(folder, path)
    claims: list[tuple[object, ...]] = [
        (
            "holds" if one.verdict.holds else "**does not hold here**",
            one.claim.words,
            one.claim.rests_on,
            content.numbers(one),
        )
        for one in judged
    ]
    parts = [
        f"# {content.TITLE}",
        f"{content.outcome(judged)} {content.method(result)}",
        f"Made with {made_with()} by this command, which writes this page too:",
        f"```\n{command}\n```",
        "## The paper's claims",
        table(ReportTable(("verdict", "claim", "rests on", "numbers compared"), claims)),
        *(_exhibit(name, exhibit, place) for name, exhibit in result.exhibits.items()),
        "## Streams",
        table(content.streams_grid(result.streams)),
        "## What it took",
        table(content.timings_grid(result.timings)),
        f"{content.machine()} {content.SHARED_RUNS}",
    ]
    return write_whole(path, "\n\n".join(parts) + "\n")


def place_of(folder: Path, page: Path) -> str:
    """Return the folder as a link of the page names it."""
    return Path(relpath(folder.resolve(), page.parent.resolve())).as_posix()


def table(grid: ReportTable) -> str:
    r"""Return a table in Markdown.

    >>> print(table(ReportTable(("a", "b"), [(1, "x|y")])))
    | a | b |
    |---|---|
    | 1 | x\|y |
    """
    shown = [[str(cell).replace("|", "\\|") for cell in row] for row in grid.rows]
    rule = "|" + "---|" * len(grid.columns)
    first, *rest = (f"| {' | '.join(row)} |" for row in (grid.columns, *shown))
    return "\n".join([first, rule, *rest])


def _exhibit(name: str, exhibit: Exhibit, place: str) -> str:
    if isinstance(exhibit, Chart):
        title, caption, more = exhibit.title, exhibit.caption, []
    elif isinstance(exhibit, Analysis):
        title, caption = content.ANALYSIS_TITLE, content.ANALYSIS_CAPTION
        more = [table(content.analysis_grid(exhibit))]
    else:
        title, caption = content.TABLE2_TITLE, content.TABLE2_CAPTION
        more = [table(content.table2_grid(exhibit))]
    picture = f"![{title}]({place}/{name}.png)"
    files = f"[CSV]({place}/{name}.csv), [SVG]({place}/{name}.svg)"
    return "\n\n".join([f"## {title}", picture, f"{caption} {files}", *more])
