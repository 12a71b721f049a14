"""The content of a figure, apart from how it is drawn: panels of points, as in its CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from ldpstream.lab.files import csv_text, write_whole

Row = Mapping[str, Any]
COLUMNS = ("panel", "x_name", "x", "mechanism", "y_name", "y", "sd", "repeats")


@dataclass(frozen=True)
class Axis:
    """The quantity that an axis measures."""

    name: str
    """The column it is made from: epsilon, window, mre..."""
    label: str
    log: bool = False


FALSE_ALARMS = Axis("fpr", "false-positive rate")


@dataclass(frozen=True)
class Point:
    """A mean over repeats, with its standard deviation."""

    x: float
    mechanism: str
    y: float
    sd: float
    repeats: int


@dataclass(frozen=True)
class Panel:
    """One pair of axes, with a line for each mechanism."""

    title: str
    x: Axis
    points: tuple[Point, ...]

    @classmethod
    def of(cls, title: str, x: Axis, y: str, rows: Iterable[Row]) -> Panel:
        """Make a panel from rows of single runs that have the columns x, y and mechanism."""
        groups: dict[tuple[str, float], list[float]] = {}
        for row in rows:
            groups.setdefault((row["mechanism"], row[x.name]), []).append(row[y])
        points = (_mean(x, mechanism, ys) for (mechanism, x), ys in groups.items())
        return cls(title, x, tuple(points))

    @classmethod
    def of_roc(cls, title: str, rows: Iterable[Row], curve: str = "roc") -> Panel:
        """Make a panel of mean ROC curves, a column, from the runs that had events to find."""
        curves: dict[str, list[Sequence[float]]] = {}
        for row in rows:
            if row[curve] is not None:
                curves.setdefault(row["mechanism"], []).append(row[curve])
        points = (
            _mean(place / (len(rates) - 1), mechanism, at_place)
            for mechanism, found in curves.items()
            for rates in found[:1]
            for place, at_place in enumerate(zip(*found, strict=True))
        )
        return cls(title, FALSE_ALARMS, tuple(points))

    @property
    def mechanisms(self) -> list[str]:
        return list(dict.fromkeys(point.mechanism for point in self.points))

    def line(self, mechanism: str) -> list[Point]:
        """Return a mechanism's points, from left to right."""
        own = (point for point in self.points if point.mechanism == mechanism)
        return sorted(own, key=lambda point: point.x)

    def values(self, mechanism: str) -> dict[float, float]:
        """Return a mechanism's y by x; empty if it is not shown."""
        return {point.x: point.y for point in self.line(mechanism)}

    def areas(self) -> dict[str, float]:
        """Return the area under each line, by the trapezoidal rule: the AUC of a ROC."""
        lines = {mechanism: self.line(mechanism) for mechanism in self.mechanisms}
        return {
            mechanism: sum(
                (right.x - left.x) * (left.y + right.y) / 2 for left, right in pairwise(line)
            )
            for mechanism, line in lines.items()
        }


def _mean(x: float, mechanism: str, ys: Sequence[float]) -> Point:
    sd = stdev(ys) if len(ys) > 1 else 0.0
    return Point(float(x), mechanism, fmean(ys), sd, len(ys))


@dataclass(frozen=True)
class Chart:
    """A figure: small multiples that share one y axis."""

    name: str
    """Its file name, without an ending."""
    title: str
    caption: str
    y: Axis
    panels: tuple[Panel, ...]

    @property
    def mechanisms(self) -> list[str]:
        return list(dict.fromkeys(name for panel in self.panels for name in panel.mechanisms))

    def to_csv(self) -> str:
        return csv_text(
            COLUMNS,
            (
                (panel.title, panel.x.name, *astuple(point)[:2], self.y.name, *astuple(point)[2:])
                for panel in self.panels
                for point in panel.points
            ),
        )

    def write_csv(self, folder: Path) -> Path:
        return write_whole(folder / f"{self.name}.csv", self.to_csv())
