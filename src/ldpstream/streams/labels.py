"""Rules that turn the values of a table into the labels of a domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import polars as pl

from ldpstream.domain import MOST_LABELS
from ldpstream.streams.faults import bad_file
from ldpstream.streams.grouping import grouped

OTHER = "other"
_ROOM = MOST_LABELS - 2
"""The most labels of a file, with room left for "none" and "other"."""
_NUMBER = pl.col("value").cast(pl.Float64)


@dataclass(frozen=True)
class Labels:
    """The result of a rule: the labels, and the index of a row's label as an expression."""

    names: list[str]
    code: pl.Expr


class LabelRule(Protocol):
    """A rule that makes labels of a table's column `value`, which has no nulls."""

    def learn(self, frame: pl.LazyFrame, file: Path) -> Labels: ...


@dataclass(frozen=True)
class EveryValue:
    """A label for each value, sorted: as numbers if they all are."""

    def learn(self, frame: pl.LazyFrame, file: Path) -> Labels:
        values = _counted(frame)["value"].to_list()
        if len(values) > _ROOM:
            what = f"{len(values):,} different values"
            raise bad_file(file, what, "choose with --labels top:20, or put numbers into --bins")
        return _listed(sorted(values, key=_numbers_first), outside=False)


@dataclass(frozen=True)
class MostFrequent:
    """The `most` values that occur most often, and "other" if there are more."""

    most: int

    def learn(self, frame: pl.LazyFrame, file: Path) -> Labels:
        values = _counted(frame)["value"].to_list()
        return _listed(values[: self.most], outside=len(values) > self.most)


@dataclass(frozen=True)
class Chosen:
    """The given labels, and "other" if some value is none of them."""

    names: tuple[str, ...]

    def learn(self, frame: pl.LazyFrame, file: Path) -> Labels:
        values = set(_counted(frame)["value"].to_list())
        return _listed(list(self.names), outside=not values <= set(self.names))


@dataclass(frozen=True)
class Edges:
    """Bins of numbers between given edges, and one below and one above if they are needed."""

    edges: tuple[float, ...]

    def learn(self, frame: pl.LazyFrame, file: Path) -> Labels:
        low, high = _range(frame)
        inner = [f"[{_short(a)}, {_short(b)})" for a, b in pairwise(self.edges)]
        below = [f"below {_short(self.edges[0])}"] if low < self.edges[0] else []
        above = [f"{_short(self.edges[-1])} or more"] if high >= self.edges[-1] else []
        breaks = self.edges[0 if below else 1 : None if above else -1]
        return Labels([*below, *inner, *above], bin_of(_NUMBER, breaks))


@dataclass(frozen=True)
class EqualBins:
    """Bins of equal width from the least value to the greatest."""

    bins: int

    def learn(self, frame: pl.LazyFrame, file: Path) -> Labels:
        low, high = _range(frame)
        step = (high - low) / self.bins
        return _closed([low + step * place for place in range(self.bins)] + [high])


@dataclass(frozen=True)
class QuantileBins:
    """Bins that hold about equally many events; fewer bins if one value has more than its share."""

    bins: int

    def learn(self, frame: pl.LazyFrame, file: Path) -> Labels:
        return _closed(quantiles(frame, "value", self.bins))


def quantiles(frame: pl.LazyFrame, column: str, parts: int) -> list[float]:
    """Return the edges, from least to greatest, of parts of a column of about equal size."""
    places = [
        pl.col(column).quantile(place / parts, "higher").alias(str(place))
        for place in range(parts + 1)
    ]
    return sorted(set(frame.select(places).collect(engine="streaming").row(0)))


def _closed(edges: Sequence[float]) -> Labels:
    """Return the labels of bins up to and including the last edge."""
    texts = [_short(edge) for edge in edges]
    names = [f"[{a}, {b})" for a, b in pairwise(texts)]
    if len(set(names)) < len(names):  # six digits do not tell the edges apart
        names = [f"[{a!r}, {b!r})" for a, b in pairwise(edges)]
    names[-1:] = [name[:-1] + "]" for name in names[-1:]] or [f"[{texts[0]}, {texts[0]}]"]
    return Labels(names, bin_of(_NUMBER, edges[1:-1]))


def bin_of(number: pl.Expr, breaks: Sequence[float]) -> pl.Expr:
    """Return how many of the breaks a number has reached."""
    reached = ((number >= edge).cast(pl.UInt16) for edge in breaks)
    return pl.sum_horizontal(pl.lit(0, pl.UInt16), *reached)


def _range(frame: pl.LazyFrame) -> tuple[float, float]:
    value = pl.col("value")
    return frame.select(low=value.min(), high=value.max()).collect(engine="streaming").row(0)


def _counted(frame: pl.LazyFrame) -> pl.DataFrame:
    """Return the values as text, the most frequent first."""
    values = frame.select(pl.col("value").cast(pl.String), count=pl.lit(1, pl.Int64))
    counts = grouped(values, "value", pl.col("count").sum())
    return counts.sort("count", "value", descending=[True, False])


def _listed(names: list[str], *, outside: bool) -> Labels:
    if outside and OTHER not in names:
        names = [*names, OTHER]
    # Not replace_strict(): that holds the whole column in memory, where a cast goes batch by batch.
    known = pl.col("value").cast(pl.String).cast(pl.Enum(names), strict=False)
    code = known.to_physical().cast(pl.UInt16)
    return Labels(names, code.fill_null(names.index(OTHER)) if outside else code)


def _numbers_first(label: str) -> tuple[bool, float, str]:
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label


def _short(number: float) -> str:
    """Return a number in six digits, without an exponent where a person would write none.

    >>> _short(10.0), _short(1_500_000.0), _short(0.1 + 0.2)
    ('10', '1500000', '0.3')
    """
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f"{number:.6g}"
