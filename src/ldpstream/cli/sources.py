"""The options that name a stream: the same for every command that takes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli.output import note, stages
from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.streams import stream as streams

_GROUP = "Where the stream comes from"

Labels = Annotated[
    str | None,
    typer.Option(
        help='with --data: top:K, or a file with one label per line; the rest is "other"',
        rich_help_panel=_GROUP,
    ),
]
Users = Annotated[
    int | None,
    typer.Option(
        help="fleet size of a built-in stream; with --counts: rescale its rows to this many users",
        rich_help_panel=_GROUP,
    ),
]
Timestamps = Annotated[
    int | None,
    typer.Option(
        help="timestamps of a built-in stream; any other is cut after this many",
        rich_help_panel=_GROUP,
    ),
]


@dataclass(frozen=True)
class StreamOptions:
    """The options that name a stream, as one argument of a command (`grouped`)."""

    stream: Annotated[
        str | None,
        typer.Option(
            help="a built-in stream: sin, log, lns, step, constant, zipf, meter, latency, "
            "words or generated, with parameters as in sin:b=0.1 or generated:seed=7; or a "
            "prepared data set (ldpstream data list)",
            rich_help_panel=_GROUP,
        ),
    ] = None
    counts: Annotated[
        Path | None,
        typer.Option(
            help="a text file with a row for each timestamp and a column for each label, named in "
            "its header; separated by commas, tabs or semicolons",
            rich_help_panel=_GROUP,
        ),
    ] = None
    data: Annotated[
        Path | None,
        typer.Option(
            help="a .csv, .tsv, .txt or .parquet file with a row for each event",
            rich_help_panel=_GROUP,
        ),
    ] = None
    user: Annotated[
        str | None,
        typer.Option(
            help="with --data: the column of users; its number, in a file without a header",
            rich_help_panel=_GROUP,
        ),
    ] = None
    time: Annotated[
        str | None, typer.Option(help="with --data: the column of times", rich_help_panel=_GROUP)
    ] = None
    value: Annotated[
        str | None, typer.Option(help="with --data: the column of values", rich_help_panel=_GROUP)
    ] = None
    every: Annotated[
        str | None,
        typer.Option(
            help="with --data: length of a timestamp, such as 10min, 1h or 1d; "
            "or a number, if times are plain numbers",
            rich_help_panel=_GROUP,
        ),
    ] = None
    bins: Annotated[
        str | None,
        typer.Option(
            help="with --data: bins of a column of numbers: 0,10,20 or equal:10 or quantile:10",
            rich_help_panel=_GROUP,
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether any of the options was given."""
        return self != StreamOptions()

    @property
    def built_in(self) -> bool:
        """Whether the stream is built in, so that it can have any number of users."""
        return self.data is None and self.counts is None and _is_built_in(self._name)

    @property
    def _name(self) -> str:
        return self.stream or "sin"

    def open(
        self,
        *,
        labels: str | None = None,
        users: int | None = None,
        timestamps: int | None = None,
        seed: int = 0,
    ) -> streams.Stream:
        """Open the stream that the options name; the sine if they name none."""
        of_data = self._of_data()
        if self.data is not None:
            others = {"--stream": self.stream, "--counts": self.counts, "--users": users}
            _only("--data", others)
            return _data(self.data, of_data, labels, self.bins, timestamps)
        only_of_data = of_data | {"--labels": labels, "--bins": self.bins}
        _only("--data", only_of_data, expected="it with --data only")
        if self.counts is not None:
            _only("--counts", {"--stream": self.stream})
            return _counts(self.counts, users, timestamps)
        return _named(self._name, users, timestamps, seed)

    def _of_data(self) -> dict[str, str | None]:
        return {
            "--user": self.user,
            "--time": self.time,
            "--value": self.value,
            "--every": self.every,
        }


def _counts(path: Path, users: int | None, timestamps: int | None) -> streams.Stream:
    from ldpstream.streams.counts import read_counts

    stream = read_counts(path, tell=note)
    stream = stream if timestamps is None else stream.first(timestamps)
    return stream if users is None else stream.held_by(users)


def _named(name: str, users: int | None, timestamps: int | None, seed: int) -> streams.Stream:
    from ldpstream.streams.datasets.registry import DATA_SETS, open_data_set
    from ldpstream.streams.synthetic import STREAMS, named
    from ldpstream.streams.words import NAME, is_words, named_words

    if is_words(name):
        return named_words(name, users, timestamps, seed)
    if name in DATA_SETS:
        _only(f"--stream {name}", {"--users": users}, expected="it with a built-in stream only")
        prepared = open_data_set(name)
        return prepared if timestamps is None else prepared.first(timestamps)
    if not _is_built_in(name):
        known = ", ".join([*STREAMS, NAME, *DATA_SETS])
        raise Mistake(Problem.SOURCE_UNKNOWN, given=name, known=known)
    return named(name, users, timestamps, seed)


def _is_built_in(name: str) -> bool:
    from ldpstream.streams.synthetic import STREAMS
    from ldpstream.streams.words import is_words

    return is_words(name) or name.partition(":")[0] in STREAMS


def _data(
    path: Path,
    columns: dict[str, str | None],
    labels: str | None,
    bins: str | None,
    timestamps: int | None,
) -> streams.Stream:
    from ldpstream.extras import need

    for option, given in columns.items():
        if given is None:
            expected = "the length of a timestamp" if option == "--every" else "a column's name"
            raise Mistake(Problem.OPTION, option=option, given="missing", expected=expected)
    need("--data", "data")
    from ldpstream.streams.longform import read_events

    user, time, value, every = (given or "" for given in columns.values())
    notes: list[str] = []
    with stages(path.name) as watch:
        stream = read_events(
            path,
            user=user,
            time=time,
            value=value,
            every=every,
            labels=labels,
            bins=bins,
            watch=watch,
            tell=notes.append,
        )
    for one in notes:  # below the bar, not across it
        note(one)
    return stream if timestamps is None else stream.first(timestamps)


def _only(source: str, others: Mapping[str, object], expected: str = "") -> None:
    """Refuse options that do not go with a source."""
    for option, given in others.items():
        if given is not None:
            wanted = expected or f"either it or {source}"
            raise Mistake(Problem.OPTION, option=option, given=given, expected=wanted)
