"""The content of a report, apart from its form: the same for HTML and for Markdown."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from ldpstream.compiled import cores
from ldpstream.lab.figures.style import display_name
from ldpstream.lab.metrics import MRE_FLOOR
from ldpstream.lab.report.report_table import ReportTable
from ldpstream.lab.reproduction.analysis.exhibit import Analysis, summaries
from ldpstream.lab.reproduction.claims import JudgedClaim
from ldpstream.lab.reproduction.judges.communication import NEAR
from ldpstream.lab.reproduction.run import Reproduction, Timing
from ldpstream.lab.reproduction.table2 import Table2
from ldpstream.streams.datasets.registry import DATA_SETS
from ldpstream.streams.events import EventsStream
from ldpstream.streams.stream import Stream

TITLE = "LDP-IDS, the evaluation: reproduced"
TABLE2_TITLE = "Table 2: communication on all streams"
TABLE2_CAPTION = (
    "Deviation of our CFPU from the printed one. "
    f"Grey: within {NEAR:g} %. Error bars: one standard deviation over the repeats."
)
ANALYSIS_TITLE = "The analysis: predicted and measured"
ANALYSIS_CAPTION = (
    "Each formula of sections 5.4 and 6.3 at the number m of publications that was measured. The "
    "table has measured over predicted; of the bias, which should be 0, the figure itself. Error "
    "bars: three standard errors."
)
SHARED_RUNS = (
    "A run that several experiments share, or that is in the cache, is not made again: it counts "
    "as computing, not as waiting."
)


def outcome(judged: Sequence[JudgedClaim]) -> str:
    held = sum(one.verdict.holds for one in judged)
    return f"{held} of {len(judged)} claims of the paper hold in these data."


def method(result: Reproduction) -> str:
    """Say how the figures were made."""
    return (
        "The literal algorithms: generalised randomised response, the variance as printed, no "
        f"pooling; {result.repeats} repeats. In the mean relative error a frequency below "
        f"{MRE_FLOOR} counts as {MRE_FLOOR}. LNS is reflected at 0 and 1."
    )


def numbers(one: JudgedClaim) -> str:
    """Say what was compared, and what to bear in mind where the claim does not hold."""
    return f"{one.verdict.compared}. {one.row()['note']}".strip()


def table2_grid(table: Table2) -> ReportTable:
    """Return only the cells that the paper has too; the CSV has all."""
    columns = ("ε, w", "stream", "mechanism", "paper", "ours ± sd", "deviation")
    rows: list[tuple[object, ...]] = [
        (
            f"{cell.epsilon:g}, {cell.window}",
            cell.stream,
            display_name(cell.mechanism),
            f"{cell.paper:.4f}",
            f"{cell.ours:.4f} ± {cell.sd:.4f}",
            f"{cell.deviation:+.2f} %",
        )
        for cell in table.printed()
    ]
    return ReportTable(columns, rows)


def mechanisms(names: str) -> str:
    """Return the names of mechanisms, separated by commas, as the paper writes them."""
    return ", ".join(map(display_name, names.split(", ")))


def analysis_grid(analysis: Analysis) -> ReportTable:
    """Return a row for each formula and mechanism; the CSV has every setting."""
    columns = ("formula", "mechanism", "settings", "least", "median", "most")
    rows: list[tuple[object, ...]] = [
        (
            one.formula.value,
            mechanisms(one.mechanism),
            one.settings,
            *(f"{figure:.3g}" for figure in (one.least, one.median, one.most)),
        )
        for one in summaries(analysis)
    ]
    return ReportTable(columns, rows)


def streams_grid(streams: Sequence[Stream]) -> ReportTable:
    rows: list[tuple[object, ...]] = [
        (stream.name, f"{stream.users:,}", stream.timestamps, len(stream.domain), origin(stream))
        for stream in streams
    ]
    return ReportTable(("stream", "users", "timestamps", "labels", "what it is"), rows)


def origin(stream: Stream) -> str:
    """Say what a prepared data set is, where it comes from, and whether it was cut."""
    known = DATA_SETS.get(stream.name)
    if not isinstance(stream, EventsStream) or known is None or stream.folder != known.folder:
        return ""
    whole = EventsStream.open(stream.folder).timestamps
    cut = f"; its first {stream.timestamps:,} of {whole:,} timestamps"
    said = f"{known.what}; from {known.where}; licence: {known.licence}"
    return said + cut if stream.timestamps < whole else said


def machine() -> str:
    """Say where the times were measured."""
    python = platform.python_version()
    return f"Measured on {cores()} cores, {platform.machine()}, Python {python}."


def timings_grid(timings: Sequence[Timing]) -> ReportTable:
    rows: list[tuple[object, ...]] = [
        (timing.name, timing.runs, f"{timing.wall:.1f}", f"{timing.computing:.1f}")
        for timing in timings
    ]
    return ReportTable(("experiment", "runs", "waited for, s", "computing, s"), rows)
