"""Table 2 of the paper: communication on every stream, the printed figures beside ours."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean, stdev

from ldpstream.lab.figures.charts import Row
from ldpstream.lab.figures.deviations import Deviation
from ldpstream.lab.files import csv_text

SETTINGS = ((1.0, 20), (2.0, 20), (2.0, 40))
"""(epsilon, w)"""

PAPER_NAMES = {"tdrive": "taxi"}
"""The paper's name for a stream, where ours differs."""

Key = tuple[float, int, str, str]
"""Epsilon, window, stream, mechanism."""


@dataclass(frozen=True)
class Cell:
    """One figure of the table."""

    epsilon: float
    window: int
    stream: str
    mechanism: str
    ours: float
    sd: float
    repeats: int
    paper: float | None
    """None for a stream that the paper does not have."""

    @property
    def deviation(self) -> float | None:
        """The deviation of our figure from the paper's, in %."""
        return None if self.paper is None else 100 * (self.ours / self.paper - 1)


@dataclass(frozen=True)
class Table2:
    """All cells that were run."""

    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, runs: Sequence[Row]) -> Table2:
        groups: dict[Key, list[float]] = {}
        for row in runs:
            if (row["epsilon"], row["window"]) in SETTINGS:
                key = (row["epsilon"], row["window"], row["stream"], row["mechanism"])
                groups.setdefault(key, []).append(row["cfpu"])
        return cls(tuple(_cell(key, found) for key, found in groups.items()))

    def printed(self) -> list[Cell]:
        """Return the cells that the paper has too."""
        return [cell for cell in self.cells if cell.paper is not None]

    def deviations(self) -> list[Deviation]:
        return [
            Deviation(
                f"ε = {cell.epsilon:g}, w = {cell.window}",
                cell.mechanism,
                cell.stream,
                cell.deviation,
                100 * cell.sd / cell.ours,
            )
            for cell in self.cells
            if cell.deviation is not None
        ]

    def to_csv(self) -> str:
        return csv_text(COLUMNS, ((*astuple(cell), cell.deviation) for cell in self.cells))


COLUMNS = (
    *("epsilon", "window", "stream", "mechanism", "cfpu", "sd", "repeats"),
    *("paper", "deviation_percent"),
)


def _cell(key: Key, found: list[float]) -> Cell:
    sd = stdev(found) if len(found) > 1 else 0.0
    epsilon, window, stream, mechanism = key
    printed = paper_figures().get((epsilon, window, PAPER_NAMES.get(stream, stream), mechanism))
    return Cell(*key, fmean(found), sd, len(found), printed)


@cache
def paper_figures() -> dict[Key, float]:
    """Return the printed table.

    >>> paper_figures()[1.0, 20, "sin", "lpa"]
    0.0404
    """
    text = files("ldpstream.lab.reproduction").joinpath("paper_table2.csv").read_text()
    return {
        (float(row["epsilon"]), int(row["window"]), row["stream"], row["mechanism"]): float(
            row["cfpu"]
        )
        for row in csv.DictReader(io.StringIO(text))
    }
