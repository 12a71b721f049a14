"""Predicted against measured: the figure of `ldpstream reproduce analysis`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from ldpstream.lab.figures.drawing import PANEL_INCHES, grid, save
from ldpstream.lab.figures.style import GREY, INK, LOOKS, display_name, paper_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pair = tuple[str, float, float, float | None]
"""A mechanism, or another name; predicted, measured, and the error of the latter if it is known."""


def draw_comparisons(panels: Mapping[str, Sequence[Pair]], stem: Path) -> list[Path]:
    """Draw a panel for each formula: a scatter, or a row for each name if all predictions agree."""
    from matplotlib.figure import Figure

    rows, columns = grid(len(panels))
    width, height = PANEL_INCHES
    with paper_style():
        size = (1.3 * width * columns, 1.2 * height * rows)
        figure = Figure(figsize=size, layout="constrained")
        spots = figure.subplots(rows, columns, squeeze=False).ravel()
        for spot, (title, pairs) in zip(spots, panels.items(), strict=False):
            spot.set_title("\n".join(wrap(title, 34)))
            spot.grid(visible=True)
            if len({predicted for _, predicted, _, _ in pairs}) == 1:
                _draw_rows(spot, pairs)
            else:
                _draw_scatter(spot, pairs)
        for spot in spots[len(panels) :]:
            spot.set_axis_off()
        return save(figure, stem)


def _draw_rows(spot: Axes, pairs: Sequence[Pair]) -> None:
    spot.axvline(pairs[0][1], color=GREY, lw=0.8)
    places = range(len(pairs))
    spot.errorbar(
        [measured for _, _, measured, _ in pairs],
        list(places),
        xerr=[3 * (error or 0.0) for *_, error in pairs],
        ls="",
        marker="o",
        color=INK,
        capsize=2,
    )
    spot.set_yticks(places, [name for name, *_ in pairs])
    spot.set_xlabel("measured (grey: predicted)")


def _draw_scatter(spot: Axes, pairs: Sequence[Pair]) -> None:
    low = min(min(predicted, measured) for _, predicted, measured, _ in pairs)
    high = max(max(predicted, measured) for _, predicted, measured, _ in pairs)
    spot.plot([low, high], [low, high], color=GREY, lw=0.8)
    for name in dict.fromkeys(name for name, *_ in pairs):
        own = [(predicted, measured) for one, predicted, measured, _ in pairs if one == name]
        line_style = LOOKS[name]
        style = line_style.line() | {"label": display_name(name), "ls": ""}
        spot.plot(*zip(*own, strict=True), **style)
    spot.set_xscale("log")
    spot.set_yscale("log")
    spot.set_xlabel("predicted")
    spot.set_ylabel("measured")
    spot.legend(fontsize=7)
