"""A figure of what mechanisms released, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ldpstream.arguments import checked
from ldpstream.errors import Mistake, Problem
from ldpstream.lab.figures.style import display_name
from ldpstream.lab.simulation import Simulation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRUTH = "#222222"
RELEASE = "#0072B2"
FRESH = "#D55E00"
"""From the palette of Okabe and Ito, which colour-blind readers can tell apart."""
BAND = 0.2
"""How opaque the intervals are."""
PANEL_INCHES = (5.5, 2.3)


@checked
def plot_releases(
    result: Simulation, label: str | None = None, *, axes: Axes | None = None, repeat: int = 0
) -> Axes:
    """Draw the truth, the releases and their 90 % intervals, and return Matplotlib's axes.

    Args:
        result: what `simulate` returned.
        label: the label to show; the one that moves most, if none is given.
        axes: where to draw; new ones of pyplot, if none are given.
        repeat: the run to show, from 0.

    >>> from matplotlib.figure import Figure
    >>> from ldpstream import simulate, sin
    >>> result = simulate(sin(users=2_000, timestamps=20), "lpu", epsilon=1, window=5)
    >>> plot_releases(result, axes=Figure().subplots()).get_xlabel()
    'timestamp t'
    """
    column = columns_of(result, () if label is None else (label,))[0]
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1]
    _draw_run(axes, result, column, repeat)
    _zoom(axes, result, column)
    axes.set_xlabel("timestamp t")
    axes.set_ylabel(result.bins[column])
    axes.legend()
    return axes


def releases_figure(
    results: Sequence[Simulation], path: Path, labels: Sequence[str] = (), most: int = 1
) -> Path:
    """Draw a row of panels for each mechanism, with a panel for each label, into a file.

    Without `labels`, they are the `most` labels that move most.
    """
    figure = release_panels(results, labels, most)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def release_panels(
    results: Sequence[Simulation], labels: Sequence[str] = (), most: int = 1
) -> Figure:
    """Return the figure of `releases_figure`, which has one legend for all panels."""
    from matplotlib.figure import Figure

    first = results[0]
    shown = columns_of(first, labels, most)
    rows, columns = len(results), len(shown)
    if columns == 1 and rows > 1:  # one label: mechanisms fill two columns
        rows, columns = -(-rows // 2), 2
    width, height = PANEL_INCHES
    figure = Figure(figsize=(width * max(columns, 2), height * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
    pairs = [(result, column) for result in results for column in shown]
    for panel, (result, column) in zip(panels, pairs, strict=False):
        _draw_run(panel, result, column, repeat=0)
        _zoom(panel, first, column)
        panel.set_ylabel(result.bins[column])
    for panel in panels[len(pairs) :]:
        panel.set_axis_off()
    named = {
        text: line
        for panel in panels
        for line, text in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(named.values(), named.keys(), loc="outside lower right", ncols=len(named))
    figure.supxlabel("timestamp t")
    figure.suptitle(
        f"{first.stream}: {first.settings.users:,} users, "
        f"ε = {first.settings.epsilon}, w = {first.settings.window}"
    )
    return figure


def columns_of(result: Simulation, labels: Sequence[str], most: int = 1) -> list[int]:
    """Return the columns of these labels; without any, of those that move most."""
    if not labels:
        # Of two labels each moves as much as the other: the first is enough.
        moves = np.ptp(result.runs[0].truth, axis=0).round(9)  # equal, not by rounding errors
        order: list[int] = np.argsort(-moves, kind="stable").tolist()
        return order[: 1 if len(order) == 2 else most]
    for label in labels:
        if label not in result.bins:
            known = ", ".join(result.bins[:8]) + (", ..." if len(result.bins) > 8 else "")
            raise Mistake(Problem.LABEL_UNKNOWN, label=label, known=known)
    return [result.bins.index(label) for label in labels]


def _draw_run(panel: Axes, result: Simulation, column: int, repeat: int) -> None:
    run = result.runs[repeat]
    times = range(1, len(run.truth) + 1)
    low, high = run.low[:, column], run.high[:, column]
    stated = bool(np.isfinite(low).all())
    if stated:
        panel.fill_between(times, low, high, color=RELEASE, alpha=BAND, lw=0, label="90 % interval")
    panel.plot(times, run.released[:, column], color=RELEASE, lw=0.8, label="released")
    panel.plot(times, run.truth[:, column], color=TRUTH, lw=1.4, label="truth")
    fresh = run.fresh.nonzero()[0]
    if len(fresh) < len(run.fresh) / 2:
        published = run.released[fresh, column]
        panel.plot(fresh + 1, published, ".", color=FRESH, ms=3, label="published")
    truth = run.truth[:, column]
    held = f"   coverage here {np.mean((low <= truth) & (truth <= high)):.2f}" if stated else ""
    panel.set_title(
        f"{display_name(result.mechanism)}   MRE {result.mean('mre'):.3f}   "
        f"{result.mean('cfpu'):.3f} reports per user and timestamp{held}",
        fontsize="small",
    )
    panel.grid(alpha=0.3)


def _zoom(panel: Axes, result: Simulation, column: int) -> None:
    """Show as much above and below the truth as it moves: noise alone would flatten it."""
    truth = result.runs[0].truth[:, column]
    low, high = float(truth.min()), float(truth.max())
    margin = 0.6 * (high - low) or 0.05
    panel.set_ylim(low - margin, high + margin)
