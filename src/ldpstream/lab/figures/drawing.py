"""Draws charts with Matplotlib: small multiples, error bars, one legend."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from ldpstream.arguments import checked
from ldpstream.errors import Mistake, Problem
from ldpstream.lab.figures.charts import FALSE_ALARMS, Axis, Chart, Panel
from ldpstream.lab.figures.style import LineStyle, line_styles, paper_style
from ldpstream.lab.files import write_whole
from ldpstream.lab.results import PARAMETERS, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_INCHES = (3.1, 2.45)
DPI = 130
MOST_TICKS = 8
MOST_IN_A_LINE = 7
KEY_INCHES, LETTER_INCHES, LINE_INCHES = 0.6, 0.08, 0.2
"""Of a legend: the mark of an entry with the space around it, a letter, and a line."""
MOST_AREAS = 10
"""More areas under curves stand beside the panel."""
VARY_WITH_MECHANISM = ("mechanism", "oracle", "asked_oracle", "fingerprint")
"""Columns that may differ between the rows of one figure."""
MARKERS_A_CURVE = 6
"""A dense curve, such as a ROC, has this many markers instead of one at each point."""


def draw(chart: Chart, folder: Path) -> list[Path]:
    """Write `<name>.png` and `<name>.svg`."""
    with paper_style():
        return save(compose(chart), folder / chart.name)


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG, without dates, so that equal figures are equal files."""
    paths = []
    for ending, options in (
        ("png", {"dpi": DPI}),
        ("svg", {"metadata": {"Date": None, "Creator": None}}),
    ):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=ending, **options)
        paths.append(write_whole(stem.with_name(f"{stem.name}.{ending}"), buffer.getvalue()))
    return paths


def grid(panels: int) -> tuple[int, int]:
    """Return the rows and columns that this many panels are laid out in.

    >>> [grid(n) for n in (1, 2, 3, 4, 6, 7)]
    [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)]
    """
    columns = panels if panels < 4 else 2 if panels == 4 else 3
    return -(-panels // columns), columns


def compose(chart: Chart) -> Figure:
    """Return the figure of a chart: its panels, with one legend for all of them."""
    from matplotlib.figure import Figure

    rows, columns = grid(len(chart.panels))
    width, height = PANEL_INCHES[0] * max(columns, 2), PANEL_INCHES[1] * rows + 0.8
    styles = line_styles(chart.mechanisms)
    lines = _lines_of_legend(
        [line_style.label for line_style in styles.values() if not line_style.trusted], width
    )
    height += LINE_INCHES * max(lines - 2, 0)
    figure = Figure(figsize=(width, height), layout="constrained")
    spots = figure.subplots(rows, columns, squeeze=False).ravel()
    for spot, panel in zip(spots, chart.panels, strict=False):
        _draw_panel(spot, panel, chart.y, styles)
    for spot in spots[len(chart.panels) :]:
        spot.set_axis_off()
    figure.supylabel(chart.y.label, fontsize=9)
    _legend(figure, styles, lines)
    return figure


@checked
def plot_results(
    results: Results, x: str = "epsilon", y: str = "mre", *, axes: Axes | None = None
) -> Axes:
    """Draw a figure of all mechanisms against a setting, and return Matplotlib's axes.

    Points are means over the repeats, bars one standard deviation.

    Args:
        results: the results of an `Experiment` in which nothing else than `x` varies.
        x: the column of the setting: "epsilon", "window", "users" ...
        y: the column of the figure: "mre", "mse", "cfpu", "auc_per_label" ...
        axes: where to draw; new ones of pyplot, if none are given.

    >>> from matplotlib.figure import Figure
    >>> from ldpstream import Experiment, sin
    >>> stream = sin(users=2_000, timestamps=20)
    >>> results = Experiment([stream], ["lpu"], epsilons=[1, 2], windows=[5]).run()
    >>> len(plot_results(results, axes=Figure().subplots()).containers)
    1
    """
    for column in PARAMETERS:
        found = sorted({str(row[column]) for row in results.rows})
        if len(found) > 1 and column not in (x, *VARY_WITH_MECHANISM):
            expected = f"the rows of one {column} only, or x={column!r}"
            raise Mistake(
                Problem.OPTION,
                option=f"{column} of the results",
                given=", ".join(found),
                expected=expected,
            )
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1]
    panel = Panel.of("", Axis(x, x), y, results.rows)
    styles = line_styles(panel.mechanisms)
    _draw_panel(axes, panel, Axis(y, y), styles)
    axes.set_ylabel(y)
    axes.legend()
    return axes


def _draw_panel(spot: Axes, panel: Panel, y: Axis, styles: dict[str, LineStyle]) -> None:
    for name, line_style in styles.items():
        line = panel.line(name)
        if not line:
            continue
        xs, ys, sds = zip(*((point.x, point.y, point.sd) for point in line), strict=True)
        dense = len(line) > 2 * MARKERS_A_CURVE
        every = len(line) // MARKERS_A_CURVE if dense else 1
        bars = None if dense or line_style.trusted else sds
        spot.errorbar(
            xs, ys, yerr=bars, markevery=every, capsize=2, elinewidth=0.8, **line_style.line()
        )
    spot.set_title(panel.title)
    spot.set_xlabel(panel.x.label)
    _scale_x(spot, panel)
    if y.log:
        _scale_y(spot, panel)
    if panel.x is FALSE_ALARMS:
        _note_areas(spot, panel, styles)
    spot.grid(visible=True)


def _scale_x(spot: Axes, panel: Panel) -> None:
    """Put a tick at each x that was measured, unless there are too many."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    if panel.x.log:
        spot.set_xscale("log")
    places = sorted({point.x for point in panel.points})
    if len(places) <= MOST_TICKS:
        spot.set_xticks(places)
        spot.xaxis.set_minor_locator(NullLocator())
        spot.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _short(x)))


def _scale_y(spot: Axes, panel: Panel) -> None:
    """Make y logarithmic, with plain numbers; also at 2 and 5 if it spans a decade or two."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    spot.set_yscale("log")
    low, high = spot.get_ylim()
    marks = (1.0, 2.0, 5.0) if high < 150 * low else (1.0,)
    spot.yaxis.set_major_locator(LogLocator(subs=marks))
    spot.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    spot.tick_params(axis="y", which="minor", labelleft=False)


def _note_areas(spot: Axes, panel: Panel, styles: dict[str, LineStyle]) -> None:
    """Write the area under each curve into the corner that a ROC leaves free, if it has room."""
    areas = panel.areas()
    lines = [
        f"{line_style.label} {areas[name]:.3f}"
        for name, line_style in styles.items()
        if name in areas
    ]
    text = "\n".join(["AUC", *lines])
    if len(lines) <= MOST_AREAS:
        spot.text(0.97, 0.04, text, transform=spot.transAxes, ha="right", va="bottom", fontsize=8)
    else:
        spot.text(1.02, 0.5, text, transform=spot.transAxes, ha="left", va="center", fontsize=6)


def _short(x: float) -> str:
    """Return a tick's label.

    >>> [_short(x) for x in (0.5, 20, 200_000, 1_000_000)]
    ['0.5', '20', '200k', '1M']
    """
    for unit, size in (("M", 1_000_000), ("k", 1000)):
        if x >= size:
            return f"{x / size:g}{unit}"
    return f"{x:g}"


def _lines_of_legend(labels: list[str], width: float) -> int:
    """Return in how many lines a legend is no wider than so many inches.

    >>> _lines_of_legend(7 * ["LPF"], 6.2), _lines_of_legend(8 * ["LPF"], 6.2)
    (1, 2)
    >>> _lines_of_legend(18 * ["RescueDP, budget"], 6.2)
    6
    """
    lines = 1 if len(labels) <= MOST_IN_A_LINE else 2
    while lines < len(labels):
        columns = [labels[first : first + lines] for first in range(0, len(labels), lines)]
        letters = sum(max(map(len, column)) for column in columns)
        if KEY_INCHES * len(columns) + LETTER_INCHES * letters <= width:
            break
        lines += 1
    return lines


def _legend(figure: Figure, styles: dict[str, LineStyle], lines: int) -> None:
    """Put mechanisms below the panels, and references with a trusted server above them."""
    from matplotlib.lines import Line2D

    local = [
        Line2D([], [], **line_style.line())
        for line_style in styles.values()
        if not line_style.trusted
    ]
    central = [
        Line2D([], [], **line_style.line()) for line_style in styles.values() if line_style.trusted
    ]
    columns = max(-(-len(local) // lines), 1)
    figure.legend(handles=local, loc="outside lower center", ncols=columns)
    if central:
        figure.legend(
            handles=central,
            loc="outside upper right",
            ncols=len(central),
            title="with a trusted server",
            title_fontsize=9,
            handlelength=2.8,
        )
