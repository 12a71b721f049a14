"""A stream from a frame: pandas, Polars, Arrow, or whatever else speaks Arrow's C interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from ldpstream.arguments import checked
from ldpstream.errors import Mistake, Problem
from ldpstream.streams.counts import CountsTable
from ldpstream.streams.events import EventsStream
from ldpstream.streams.longform import events_of
from ldpstream.streams.notes import Tell, warn
from ldpstream.streams.stream import CountsStream


@checked
def from_frame(
    frame: Any,
    *,
    user: str | None = None,
    time: str | None = None,
    value: str | None = None,
    every: str | None = None,
    labels: str | None = None,
    bins: str | None = None,
    name: str = "frame",
    tell: Tell = warn,
) -> CountsStream | EventsStream:
    """Make a stream of a frame of events, or of a frame of counts.

    With `user`, `time`, `value` and `every` it has a row for each event, as for `read_events`;
    without them a row for each timestamp and a column for each label, as for `read_counts`.

    >>> from_frame(pl.DataFrame({"red": [3, 1], "blue": [1, 3]}), name="colours")
    CountsStream('colours': 4 users, 2 timestamps, 2 labels)

    Args:
        frame: of pandas, Polars, PyArrow, or any other library with `__arrow_c_stream__`; an index
            is left out.
        user: the column of users.
        time: the column of times.
        value: the column of what the user holds from then on.
        every: the length of a timestamp, such as "10min"; or a number, if times are plain numbers.
        labels: "top:K", or a file with one label per line.
        bins: bins of a column of numbers: "0,10,20", "equal:10" or "quantile:10".
        name: the name of the stream, in results and messages.
        tell: called with a line about blank cells; by default it is a `DataWarning`.
    """
    table = polars_of(frame)
    columns = {"user": user, "time": time, "value": value, "every": every}
    if not any(columns.values()):
        header = tuple(map(str, table.columns))
        return CountsTable(Path(name), header, table.rows(), 1).stream(name, tell)
    for argument, given in columns.items():
        if given is None:
            raise Mistake(Problem.ARGUMENT_MISSING, function="from_frame", name=argument)
    texts = {argument: str(given) for argument, given in columns.items()}
    return events_of(table, name, **texts, labels=labels, bins=bins, tell=tell)


def polars_of(frame: Any) -> pl.DataFrame:
    """Return any frame as one of Polars, without a copy where its library allows it."""
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    if hasattr(frame, "reset_index"):  # pandas: its index would become a column
        frame = frame.reset_index(drop=True).rename(columns=str)
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            return pl.DataFrame(frame)
        except ImportError:
            pass  # pandas without PyArrow
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        series = {str(column): frame[column].tolist() for column in frame.columns}
        return pl.DataFrame(series, strict=False, nan_to_null=True)
    expected = "a frame of pandas, Polars or Arrow"
    raise Mistake(Problem.OPTION, option="frame", given=type(frame).__name__, expected=expected)
