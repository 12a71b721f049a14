"""A stream from a user's own file of events: CSV or Parquet, a row for each, any columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import polars as pl

from ldpstream.errors import Mistake, Problem
from ldpstream.streams.events import FORMAT, EventsStream
from ldpstream.streams.faults import bad_file, unreadable
from ldpstream.streams.home import fingerprint, home, whole_folder
from ldpstream.streams.labels import (
    Chosen,
    Edges,
    EqualBins,
    EveryValue,
    LabelRule,
    MostFrequent,
    QuantileBins,
)
from ldpstream.streams.reading import readable
from ldpstream.streams.table import Events, Watch, write_events
from ldpstream.streams.times import Every, time_of

SAMPLE = 1000
"""The number of rows from which the format of times is detected."""


@dataclass(frozen=True)
class Columns:
    """The names of a file's columns that hold user, time and value."""

    user: str
    time: str
    value: str


def read_events(
    path: Path,
    columns: Columns,
    *,
    every: str,
    labels: str | None = None,
    bins: str | None = None,
    watch: Watch = lambda what, done, total: None,
) -> EventsStream:
    """Read a file of events; the result is cached for the same file and options."""
    step, rule = Every.parse(every), label_rule(labels, bins)
    raw = _scan(path)
    with readable(path):
        events = _events(path, raw, columns, step, rule)
        watch("looking at the file", 0, 0)
        folder = home() / "files" / fingerprint([path], FORMAT, path.stem, columns, step, rule)
        if not folder.exists():
            with whole_folder(folder) as fresh:
                write_events(events, fresh, name=path.stem, key=folder.name, watch=watch)
    return EventsStream.open(folder)


def label_rule(labels: str | None, bins: str | None) -> LabelRule:
    """Return the rule that `--labels` and `--bins` ask for."""
    if labels is not None and bins is not None:
        raise _option("--bins", bins, "either it or --labels")
    if bins is not None:
        return _bins(bins)
    if labels is None:
        return EveryValue()
    kind, _, number = labels.partition(":")
    if kind != "top":
        return Chosen(_lines(Path(labels)))
    if not number.isdecimal() or not 1 <= int(number) <= 65_534:
        raise _option("--labels", labels, "top:K with K from 1 to 65534, or a file of labels")
    return MostFrequent(int(number))


def _bins(text: str) -> LabelRule:
    kind, _, number = text.partition(":")
    rules: dict[str, Callable[[int], LabelRule]] = {"equal": EqualBins, "quantile": QuantileBins}
    if kind in rules and number.isdecimal() and 2 <= int(number) <= 1000:
        return rules[kind](int(number))
    try:
        edges = tuple(float(edge) for edge in text.split(","))
    except ValueError:
        edges = ()
    if len(edges) < 2 or any(not a < b for a, b in pairwise(edges)):
        expected = "increasing edges like 0,10,20, or equal:N or quantile:N with N from 2 to 1000"
        raise _option("--bins", text, expected)
    return Edges(edges)


def _lines(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(
            path, error, "give --labels top:K, or a file with one label per line"
        ) from None
    names = [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise bad_file(path, "no label", "give one label per line")
    times = Counter(names)
    for name in names:
        if times[name] > 1:
            raise bad_file(path, f"label {name!r} appears twice", "name each label once")
    return tuple(names)


def _scan(path: Path) -> pl.LazyFrame:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "no such file"
        raise bad_file(path, what, "give a .csv or .parquet file")
    if path.name.endswith((".csv", ".csv.gz")):
        return pl.scan_csv(path, infer_schema=False)
    if path.suffix == ".parquet":
        return pl.scan_parquet(path)
    raise bad_file(
        path, f"{path.suffix or 'no ending'} is not a known kind", "give .csv or .parquet"
    )


def _events(
    path: Path, raw: pl.LazyFrame, columns: Columns, every: Every, rule: LabelRule
) -> Events:
    names = raw.collect_schema().names()
    for option, column in vars(columns).items():
        if column not in names:
            known = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            what = f"there is no column {column!r}"
            raise bad_file(path, what, f"give --{option} one of: {known}")
    sample = raw.select(columns.time).head(SAMPLE).collect().to_series()
    time = time_of(columns.time, sample, every)
    if time is None:
        what = f"column {columns.time!r} holds dates"
        raise bad_file(path, what, "give --every a unit, like 10min")
    value = pl.col(columns.value)
    if isinstance(rule, Edges | EqualBins | QuantileBins):
        number = value.cast(pl.Float64, strict=False)
        value = pl.when(number.is_finite()).then(number)
    read = {"user": pl.col(columns.user), "time": time, "value": value}

    def blame(column: str) -> Mistake:
        return _first_null(path, raw, getattr(columns, column), read[column], column)

    return Events(raw.select(**read), every.length, rule, blame, path)


_FIXES = {
    "user": "fill it in, or remove the row",
    "time": "give ISO 8601 like 2024-05-01T12:30:00, seconds since 1970, or a number from 0",
    "value": "fill it in (with a number, for --bins), or remove the row",
}


def _first_null(path: Path, raw: pl.LazyFrame, column: str, read: pl.Expr, role: str) -> Mistake:
    """Name the first row, the header being row 1, in which a column cannot be read."""
    rows = raw.select(column, bad=read.is_null()).with_row_index(
        "row", 1 if path.suffix == ".parquet" else 2
    )
    row, cell = rows.filter("bad").select("row", column).head(1).collect(engine="streaming").row(0)
    said = "is empty" if cell is None else f"cannot be {cell!r}"
    return bad_file(path, f"row {row}, column {column!r} {said}", _FIXES[role])


def _option(option: str, given: str, expected: str) -> Mistake:
    return Mistake(Problem.OPTION, option=option, given=given, expected=expected)
