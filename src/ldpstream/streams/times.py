"""Reading times: dates as people and programs write them, seconds since 1970, plain numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from ldpstream.durations import milliseconds
from ldpstream.errors import Mistake, Problem

SECOND_US = 1_000_000
_DATE = "%Y-%m-%d"
_RARER = (_DATE, *(f"{_DATE}{gap}{clock}" for gap in "T " for clock in ("%H:%M", "%H:%M:%S%.f%#z")))


@dataclass(frozen=True)
class Every:
    """The length of a timestamp: microseconds, or steps of a plain number.

    >>> Every.parse("10min"), Every.parse("5")
    (Every(length=600000000, clock=True), Every(length=5, clock=False))
    """

    length: int
    clock: bool

    @classmethod
    def parse(cls, text: str) -> Every:
        length_ms = milliseconds(text)
        if length_ms:
            return cls(1000 * length_ms, clock=True)
        if re.fullmatch(r"[1-9][0-9]{0,8}", text.strip()):
            return cls(int(text), clock=False)
        expected = "a duration like 30s, 10min, 1h, 1d, 1w, or a number of steps"
        raise Mistake(Problem.OPTION, option="--every", given=repr(text), expected=expected)


def time_of(column: str, sample: pl.Series, every: Every) -> pl.Expr | None:
    """Return an Int64 expression of the column, in microseconds or steps; null if it is unreadable.

    The format is detected from a sample of the column. None if that does not fit `every`.
    """
    if sample.dtype.is_temporal():
        return pl.col(column).cast(pl.Datetime("us")).dt.epoch("us") if every.clock else None
    numbers = sample.cast(pl.Float64, strict=False)
    if 2 * numbers.count() >= sample.count():  # one bad row does not turn numbers into dates
        number = pl.col(column).cast(pl.Float64, strict=False)
        top = numbers.max()
        scale = _microseconds(float(top) if isinstance(top, int | float) else 0.0)
        read = (number * scale if every.clock else number).floor().cast(pl.Int64, strict=False)
        return pl.when(number >= 0).then(read)
    if not every.clock:
        return None
    return _written(pl.col(column), sample)


def _written(column: pl.Expr, sample: pl.Series) -> pl.Expr:
    """Read every date format that the sample has, and no other: each costs a pass."""
    ways = [
        *(_to_the_second(column, f"{_DATE}{gap}%H:%M:%S") for gap in "T "),
        *(_parsed(column, form) for form in _RARER),
    ]
    shown = []
    unread = sample.drop_nulls().to_frame()
    for way in ways:
        left = unread.filter(way.is_null())
        if len(left) < len(unread):
            shown.append(way)
            unread = left
    return pl.coalesce(shown or ways[:1])


def _microseconds(number: float) -> float:
    """Return the unit of a time since 1970: its digits tell, for dates from 1973 to 5138."""
    for most, scale in ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0)):
        if number < most:
            return scale
    return 1e-3


def _to_the_second(column: pl.Expr, form: str) -> pl.Expr:
    """Read a time of 19 characters, with an optional fraction and an optional Z.

    This is several times as fast as a format with a fraction in it, and fits most files.
    """
    rest = column.str.slice(19).str.strip_suffix("Z")
    fraction = (
        pl.when(rest == "")
        .then(pl.lit(0.0))
        .when(rest.str.starts_with("."))
        .then(rest.cast(pl.Float64, strict=False))
    )
    return _parsed(column.str.slice(0, 19), form) + (fraction * SECOND_US).cast(pl.Int64)


def _parsed(column: pl.Expr, form: str) -> pl.Expr:
    return column.str.to_datetime(form, time_unit="us", strict=False).dt.epoch("us")
