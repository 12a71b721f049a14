"""A table of factors as colours: rows and columns with names, each cell with its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ldpstream.lab.figures.drawing import save
from ldpstream.lab.figures.style import paper_style

CELL_INCHES = (0.62, 0.27)
LARGEST = 100.0
"""The factor from which on the colour is the same."""
LIGHT_FROM = 20.0
"""The factor from which on the number is white."""


def draw_heat(
    factors: Mapping[tuple[str, str], float],
    rows: Sequence[str],
    columns: Sequence[str],
    stem: Path,
) -> list[Path]:
    """Draw the factor of each (row, column), from 1, pale, to 100 and more, dark."""
    from matplotlib.figure import Figure

    table = np.array([[factors[row, column] for column in columns] for row in rows])
    width, height = CELL_INCHES
    size = (width * len(columns) + 1.8, height * len(rows) + 1.4)
    with paper_style():
        figure = Figure(figsize=size, layout="constrained")
        spot = figure.subplots()
        spot.imshow(np.log10(table), cmap="YlOrBr", vmin=0, vmax=np.log10(LARGEST), aspect="auto")
        spot.set_xticks(range(len(columns)), columns, rotation=40, ha="right")
        spot.set_yticks(range(len(rows)), rows)
        spot.spines[:].set_visible(False)
        for (row, column), factor in np.ndenumerate(table):
            colour = "white" if factor >= LIGHT_FROM else "#1a1a1b"
            spot.text(
                column, row, _short(factor), ha="center", va="center", fontsize=7, color=colour
            )
        return save(figure, stem)


def _short(factor: float) -> str:
    """Return a factor with two digits.

    >>> [_short(factor) for factor in (1.0, 1.04, 23.4, 1234.0)]
    ['1', '1.0', '23', '1234']
    """
    return "1" if factor == 1 else f"{factor:.1f}" if factor < 9.95 else f"{factor:.0f}"
