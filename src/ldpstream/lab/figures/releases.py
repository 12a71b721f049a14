"""A figure of what mechanisms released, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ldpstream.lab.simulation import Simulation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUTH = "#222222"
RELEASE = "#0072B2"
FRESH = "#D55E00"
"""From the palette of Okabe and Ito, which colour-blind readers can tell apart."""


def releases_figure(results: Sequence[Simulation], path: Path) -> Path:
    """Draw a panel for each mechanism: the label that moves most, in truth and as released."""
    from matplotlib.figure import Figure

    truth = results[0].runs[0].truth
    label = int(np.argmax(np.ptp(truth, axis=0)))
    columns = min(2, len(results))
    rows = -(-len(results) // columns)
    figure = Figure(figsize=(11, 2.3 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for panel, result in zip(panels, results, strict=False):
        _draw_run(panel, result, label)
    for panel in panels[len(results) :]:
        panel.set_axis_off()
    low, high = truth[:, label].min(), truth[:, label].max()
    margin = 0.6 * (high - low)
    panels[0].set_ylim(low - margin, high + margin)
    named = {
        text: line
        for panel in panels
        for line, text in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(named.values(), named.keys(), loc="outside lower right", ncols=len(named))
    figure.supxlabel("timestamp t")
    figure.supylabel(f"label {label}" if truth.shape[1] > 1 else "mean")
    first = results[0]
    figure.suptitle(
        f"{first.stream}: {first.settings.users:,} users, "
        f"ε = {first.settings.epsilon}, w = {first.settings.window}"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def _draw_run(panel: Axes, result: Simulation, label: int) -> None:
    run = result.runs[0]
    times = range(1, len(run.truth) + 1)
    panel.plot(times, run.released[:, label], color=RELEASE, lw=0.8, label="released")
    panel.plot(times, run.truth[:, label], color=TRUTH, lw=1.4, label="truth")
    fresh = run.fresh.nonzero()[0]
    if len(fresh) < len(run.fresh) / 2:
        published = run.released[fresh, label]
        panel.plot(fresh + 1, published, ".", color=FRESH, ms=3, label="published")
    panel.set_title(
        f"{result.mechanism.upper()}   MRE {result.mean('mre'):.3f}   "
        f"{result.mean('cfpu'):.3f} reports per user and timestamp",
        fontsize="medium",
    )
    panel.grid(alpha=0.3)
