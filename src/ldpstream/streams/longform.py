"""A stream from a user's own file of events: CSV or Parquet, a row for each, any columns."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import polars as pl

from ldpstream.arguments import checked
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
from ldpstream.streams.notes import Tell, warn
from ldpstream.streams.reading import readable
from ldpstream.streams.separators import separator_in
from ldpstream.streams.table import Events, TableExtent, Watch, write_events
from ldpstream.streams.times import Every, time_of

SAMPLE = 1000
"""The number of rows from which the format of times is detected."""
TEXTS = (".csv", ".tsv", ".txt")
NOTE = "note.txt"
"""What to tell of the rows whenever the stream is opened."""


@dataclass(frozen=True)
class ColumnNames:
    """The names of a table's columns that hold user, time and value."""

    user: str
    time: str
    value: str

    @property
    def are_numbers(self) -> bool:
        """Whether they are numbers of columns, for a file without a header."""
        return all(name.isdecimal() for name in vars(self).values())


@dataclass(frozen=True)
class EventTable:
    """Rows of events with all their columns, and how messages call them."""

    frame: pl.LazyFrame
    file: Path
    """The file that messages name."""
    first_row: int
    """The number of the first row, as messages count."""


@checked
def read_events(
    path: Path | str,
    *,
    user: str,
    time: str,
    value: str,
    every: str,
    labels: str | None = None,
    bins: str | None = None,
    watch: Watch = lambda what, done, total: None,
    tell: Tell = warn,
) -> EventsStream:
    """Read a file of events; the result is cached for the same file and options.

    A row with a blank cell is left out, and told. Without a header, name columns by their numbers:
    `user="1", time="2", value="3"`.

    Args:
        path: a .csv, .tsv or .txt file (also .gz; separated by commas, tabs or semicolons), or a
            .parquet file, with a row for each event.
        user: the column of users.
        time: the column of times: dates, numbers since 1970, or plain numbers.
        value: the column of what the user holds from then on.
        every: the length of a timestamp, such as "10min"; or a number, if times are plain numbers.
        labels: "top:K" for the K most frequent values, or a file with one label per line; None
            makes every value a label.
        bins: bins of a column of numbers: "0,10,20", "equal:10" or "quantile:10".
        watch: called with the progress of a long reading.
        tell: called with a line about rows that were left out; by default it is a `DataWarning`.

    >>> read_events("trips.csv", user="taxi", time="at", value="zone", every="10min")
    Traceback (most recent call last):
    ldpstream.errors.Mistake: trips.csv: no such file; give a .csv or .parquet file
    """
    columns, file = ColumnNames(user, time, value), Path(path)
    step, rule = Every.parse(every), label_rule(labels, bins)
    table = _scan(file, columns)
    with readable(file):
        events = _events(table, columns, step, rule)
        watch("looking at the file", 0, 0)
        key = fingerprint([file], FORMAT, file.stem, columns, step, rule)
        return _kept(events, table, columns, file.stem, key, watch, tell)


@checked
def events_of(
    frame: pl.DataFrame,
    name: str,
    *,
    user: str,
    time: str,
    value: str,
    every: str,
    labels: str | None = None,
    bins: str | None = None,
    tell: Tell = warn,
) -> EventsStream:
    """Return the stream of a frame of events, with the arguments of `read_events`."""
    columns, step, rule = (
        ColumnNames(user, time, value),
        Every.parse(every),
        label_rule(labels, bins),
    )
    table = EventTable(frame.lazy(), Path(name), 1)
    events = _events(table, columns, step, rule)
    content = frame.select(*dict.fromkeys((user, time, value))).rechunk().write_ipc(None)
    digest = hashlib.sha256(content.getbuffer()).hexdigest()
    key = fingerprint([], FORMAT, name, digest, columns, step, rule)
    return _kept(events, table, columns, name, key, lambda what, done, total: None, tell)


def _kept(
    events: Events,
    table: EventTable,
    columns: ColumnNames,
    name: str,
    key: str,
    watch: Watch,
    tell: Tell,
) -> EventsStream:
    """Return the stream of that key, written if it is not there yet, and tell its notes."""
    folder = home() / "files" / key
    if not folder.exists():
        with whole_folder(folder) as fresh:
            extent = write_events(events, fresh, name=name, key=key, watch=watch)
            if extent.blank:
                note = _note(extent, table, columns)
                (fresh / NOTE).write_text(note, encoding="utf-8")
    if (folder / NOTE).exists():
        tell(f"{table.file}: {(folder / NOTE).read_text(encoding='utf-8')}")
    return EventsStream.open(folder)


def _note(extent: TableExtent, table: EventTable, columns: ColumnNames) -> str:
    names = list(dict.fromkeys(vars(columns).values()))
    blanks = table.frame.select(pl.col(name).is_null() for name in names).with_row_index(
        "row", table.first_row
    )
    first = blanks.filter(pl.any_horizontal(names)).head(1).collect(engine="streaming")
    column = next(name for name in names if first[name][0])
    return (
        f"{extent.blank:,} of {extent.rows:,} rows have a blank cell and are left out; the first "
        f"is row {first['row'][0]}, column {column!r}"
    )


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


def _scan(path: Path, columns: ColumnNames) -> EventTable:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "no such file"
        raise bad_file(path, what, "give a .csv or .parquet file")
    if path.suffix == ".parquet":
        return EventTable(pl.scan_parquet(path), path, 1)
    if path.name.removesuffix(".gz").endswith(TEXTS):
        with readable(path):
            return _scan_text(path, columns)
    what = f"{path.suffix or 'no ending'} is not a known kind"
    raise bad_file(path, what, f"give .csv or .parquet (also {', '.join(TEXTS[1:])}, and .gz)")


def _scan_text(path: Path, columns: ColumnNames) -> EventTable:
    """Scan a file whose columns are all text; those of a file without a header have numbers."""
    separator = separator_in(path)
    named = pl.scan_csv(path, infer_schema=False, separator=separator)
    if not columns.are_numbers or set(vars(columns).values()) & set(named.collect_schema()):
        return EventTable(named, path, 2)
    rows = pl.scan_csv(path, infer_schema=False, separator=separator, has_header=False)
    numbered = {name: str(place) for place, name in enumerate(rows.collect_schema(), 1)}
    return EventTable(rows.rename(numbered), path, 1)


def _events(table: EventTable, columns: ColumnNames, every: Every, rule: LabelRule) -> Events:
    raw, path = table.frame, table.file
    names = raw.collect_schema().names()
    for option, column in vars(columns).items():
        if column not in names:
            known = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            what = f"there is no column {column!r}"
            headless = "; in a file without a header, columns are 1, 2, 3 ..."
            raise bad_file(path, what, f"give --{option} one of: {known}{headless}")
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
    blank = pl.any_horizontal(pl.col(name).is_null() for name in vars(columns).values())

    def blame(column: str) -> Mistake:
        return _first_null(table, getattr(columns, column), read[column], column)

    frame = raw.select(**read, blank=blank)
    return Events(frame, every.length, rule, blame, path, blank=pl.col("blank"))


_FIXES = {
    "user": "fill it in, or remove the row",
    "time": "give ISO 8601 like 2024-05-01T12:30:00, seconds since 1970, or a number from 0",
    "value": "fill it in (with a number, for --bins), or remove the row",
}


def _first_null(table: EventTable, column: str, read: pl.Expr, role: str) -> Mistake:
    """Name the first row in which a cell is there and cannot be read."""
    bad = read.is_null() & pl.col(column).is_not_null()
    rows = table.frame.select(column, bad=bad).with_row_index("row", table.first_row)
    row, cell = rows.filter("bad").select("row", column).head(1).collect(engine="streaming").row(0)
    return bad_file(table.file, f"row {row}, column {column!r} cannot be {cell!r}", _FIXES[role])


def _option(option: str, given: str, expected: str) -> Mistake:
    return Mistake(Problem.OPTION, option=option, given=given, expected=expected)
