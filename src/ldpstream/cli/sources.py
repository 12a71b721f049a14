"""The options that say which stream: the same for every command that takes one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli.output import stages
from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.streams import stream as streams

_GROUP = "Where the stream comes from"

Stream = Annotated[
    str | None,
    typer.Option(
        help="sin, log, lns, step, constant, zipf or meter, with parameters as in sin:b=0.1; "
        "or a prepared data set (ldpstream data list)",
        rich_help_panel=_GROUP,
    ),
]
Counts = Annotated[
    Path | None,
    typer.Option(
        help="a CSV: a row a timestamp, a column a label, header = labels", rich_help_panel=_GROUP
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(help="a .csv or .parquet file, a row an event", rich_help_panel=_GROUP),
]
User = Annotated[
    str | None, typer.Option(help="of --data: the column of users", rich_help_panel=_GROUP)
]
Time = Annotated[
    str | None, typer.Option(help="of --data: the column of times", rich_help_panel=_GROUP)
]
Value = Annotated[
    str | None, typer.Option(help="of --data: the column of values", rich_help_panel=_GROUP)
]
Every = Annotated[
    str | None,
    typer.Option(
        help="of --data: length of a timestamp, as 10min, 1h, 1d; or a number, for plain numbers",
        rich_help_panel=_GROUP,
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        help='of --data: top:K or a file, a label a line; the rest is "other"',
        rich_help_panel=_GROUP,
    ),
]
Bins = Annotated[
    str | None,
    typer.Option(
        help="of --data: bins of a column of numbers: 0,10,20 or equal:10 or quantile:10",
        rich_help_panel=_GROUP,
    ),
]
Users = Annotated[
    int | None, typer.Option(help="fleet size of a built-in stream", rich_help_panel=_GROUP)
]
Timestamps = Annotated[
    int | None,
    typer.Option(help="length of a built-in stream; or cut after so many", rich_help_panel=_GROUP),
]


def open_source(
    *,
    stream: str | None = None,
    counts: Path | None = None,
    data: Path | None = None,
    user: str | None = None,
    time: str | None = None,
    value: str | None = None,
    every: str | None = None,
    labels: str | None = None,
    bins: str | None = None,
    users: int | None = None,
    timestamps: int | None = None,
    seed: int = 0,
) -> streams.Stream:
    """The stream that the options name; the sine if they name none."""
    of_data = {"--user": user, "--time": time, "--value": value, "--every": every}
    if data is not None:
        _only("--data", {"--stream": stream, "--counts": counts, "--users": users})
        return _data(data, of_data, labels, bins, timestamps)
    _only("--data", of_data | {"--labels": labels, "--bins": bins}, expected="it with --data only")
    if counts is not None:
        _only("--counts", {"--stream": stream, "--users": users, "--timestamps": timestamps})
        from ldpstream.streams.counts import read_counts

        return read_counts(counts)
    return _named(stream or "sin", users, timestamps, seed)


def _named(name: str, users: int | None, timestamps: int | None, seed: int) -> streams.Stream:
    from ldpstream.streams.datasets.registry import DATA_SETS, open_data_set
    from ldpstream.streams.synthetic import STREAMS, named

    if name in DATA_SETS:
        _only(f"--stream {name}", {"--users": users}, expected="it with a built-in stream only")
        prepared = open_data_set(name)
        return prepared if timestamps is None else prepared.first(timestamps)
    if name.partition(":")[0] not in STREAMS:
        known = ", ".join([*STREAMS, *DATA_SETS])
        raise Mistake(Problem.STREAM_UNKNOWN, given=name, known=known)
    return named(name, users, timestamps, seed)


def _data(
    path: Path,
    columns: dict[str, str | None],
    labels: str | None,
    bins: str | None,
    timestamps: int | None,
) -> streams.Stream:
    from ldpstream.streams.extras import need_polars

    for option, given in columns.items():
        if given is None:
            expected = "the length of a timestamp" if option == "--every" else "a column's name"
            raise Mistake(Problem.OPTION, option=option, given="missing", expected=expected)
    need_polars("--data")
    from ldpstream.streams.longform import Columns, read_events

    user, time, value, every = (given or "" for given in columns.values())
    with stages(path.name) as watch:
        stream = read_events(
            path, Columns(user, time, value), every=every, labels=labels, bins=bins, watch=watch
        )
    return stream if timestamps is None else stream.first(timestamps)


def _only(source: str, others: Mapping[str, object], expected: str = "") -> None:
    """Refuse options that do not go with a source."""
    for option, given in others.items():
        if given is not None:
            wanted = expected or f"either it or {source}"
            raise Mistake(Problem.OPTION, option=option, given=given, expected=wanted)
