"""Deviations of our figures from the paper's printed ones, in per cent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ldpstream.lab.figures.drawing import PANEL_INCHES, save
from ldpstream.lab.figures.style import LOOKS, display_name, paper_style


@dataclass(frozen=True)
class Deviation:
    """One cell: its panel, its mechanism, its stream, and the deviation with its sd."""

    panel: str
    mechanism: str
    stream: str
    percent: float
    sd: float


def draw_deviations(cells: Sequence[Deviation], tolerance: float, stem: Path) -> list[Path]:
    """Draw a row for each mechanism, a mark for each stream, and `tolerance` as a grey band."""
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(cell.panel for cell in cells))
    names = [name for name in reversed(LOOKS) if any(cell.mechanism == name for cell in cells)]
    streams = list(dict.fromkeys(cell.stream for cell in cells))
    width, height = PANEL_INCHES
    with paper_style():
        figure = Figure(figsize=(width * max(len(panels), 1), height + 0.8), layout="constrained")
        spots = figure.subplots(1, max(len(panels), 1), sharey=True, sharex=True, squeeze=False)
        for spot, panel in zip(spots.ravel(), panels, strict=True):
            spot.axvspan(-tolerance, tolerance, color="#8a8a8a", alpha=0.15, lw=0)
            spot.axvline(0, color="#8a8a8a", lw=0.8)
            for place, stream in enumerate(streams):
                own = [c for c in cells if c.panel == panel and c.stream == stream]
                rows = [names.index(c.mechanism) + 0.12 - 0.24 * place for c in own]
                spot.errorbar(
                    [c.percent for c in own],
                    rows,
                    xerr=[c.sd for c in own],
                    ls="",
                    label=stream,
                    **MARKS[place % len(MARKS)],
                )
            spot.set_title(panel)
            spot.grid(visible=True)
            spot.set_xlabel("ours against the paper's CFPU, %")
            spot.set_yticks(range(len(names)), [display_name(name) for name in names])
        handles, labels = spots[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=max(len(labels), 1))
        return save(figure, stem)


MARKS = (
    {"color": "#0072B2", "marker": "o", "ms": 5, "capsize": 2, "elinewidth": 0.8},
    {"color": "#D55E00", "marker": "s", "ms": 5, "mfc": "none", "capsize": 2, "elinewidth": 0.8},
    {"color": "#009E73", "marker": "^", "ms": 5, "capsize": 2, "elinewidth": 0.8},
)
