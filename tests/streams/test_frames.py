"""A frame of pandas, Polars or Arrow is the stream that its file would be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ldpstream.errors import Mistake
from ldpstream.streams.events import EventsStream
from ldpstream.streams.frames import from_frame, polars_of
from ldpstream.streams.longform import read_events
from ldpstream.streams.notes import DataWarning
from ldpstream.streams.stream import CountsStream

EVENTS = {
    "who": ["ann", "bob", "cat", "ann", "bob"],
    "when": ["2024-05-01", "2024-05-01", "2024-05-02", "2024-05-03", "2024-05-03"],
    "what": ["a", "b", "a", "b", "b"],
}
COLUMNS: dict[str, Any] = {"user": "who", "time": "when", "value": "what", "every": "1d"}
FRAMES = {
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "arrow": pa.table,
    "pandas": pd.DataFrame,
    "an index": lambda data: pd.DataFrame(data, index=pd.Index([7, 3, 9, 1, 5])),
    "dates": lambda data: pd.DataFrame(data | {"when": pd.to_datetime(data["when"])}),
    "categories": lambda data: pd.DataFrame(data).astype({"what": "category"}),
}


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))


def histograms(stream: EventsStream | CountsStream) -> list[list[int]]:
    return [one.counts.tolist() for one in stream.snapshots(np.random.default_rng())]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_of_events_is_what_its_file_is(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    pl.DataFrame(EVENTS).write_csv(file)
    expected = read_events(file, **COLUMNS)
    stream = from_frame(FRAMES[kind](EVENTS), **COLUMNS, name="mine")
    assert (stream.name, stream.domain) == ("mine", expected.domain)
    assert histograms(stream) == histograms(expected)


def test_frames_are_told_apart_by_what_they_hold() -> None:
    first = from_frame(pl.DataFrame(EVENTS), **COLUMNS)
    other = from_frame(pl.DataFrame(EVENTS | {"what": list("abbbb")}), **COLUMNS)
    again = from_frame(pl.DataFrame(EVENTS), **COLUMNS)
    assert first.fingerprint == again.fingerprint != other.fingerprint


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.table, pd.DataFrame])
def test_a_frame_of_counts_has_a_column_for_each_label(kind: Any) -> None:
    stream = from_frame(kind({"a": [1, 2, 3], "b": [3, 2, 1]}))
    assert isinstance(stream, CountsStream)
    assert (stream.domain.labels, histograms(stream)) == (("a", "b"), [[1, 3], [2, 2], [3, 1]])


def test_pandas_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: pd.DataFrame, requested_schema: object = None) -> None:
        raise ImportError("pyarrow")

    monkeypatch.setattr(pd.DataFrame, "__arrow_c_stream__", fails)
    frame = pd.DataFrame(EVENTS | {"when": [0, 0, 1, 2, None]})
    assert polars_of(frame)["when"].to_list() == [0, 0, 1, 2, None]


def test_blank_cells_are_counted_and_told() -> None:
    holes = EVENTS | {"what": ["a", None, "a", "b", "b"]}
    with pytest.warns(DataWarning, match="1 of 5 rows have a blank cell .* row 2, column 'what'"):
        from_frame(pd.DataFrame(holes), **COLUMNS)
    with pytest.warns(DataWarning, match=r"1 blank cell\(s\), filled with what the row lacks to 4"):
        stream = from_frame(pd.DataFrame({"a": [1, None], "b": [3, 2]}))
    assert histograms(stream) == [[1, 3], [2, 2]]


@pytest.mark.parametrize(
    ("frame", "given", "said"),
    [
        ([1, 2], {}, "frame is list; give a frame of pandas, Polars or Arrow"),
        (pl.DataFrame(EVENTS), {"user": "who"}, r"from_frame\(\) needs the argument 'time'"),
        (pl.DataFrame(EVENTS), COLUMNS | {"user": "nobody"}, "frame: there is no column 'nobody'"),
        (pl.DataFrame({"a": [1.5], "b": [2]}), {}, "row 1, column 'a': 1.5 is not a count"),
    ],
)
def test_mistakes_are_one_line(frame: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(Mistake, match=said) as caught:
        from_frame(frame, **given)
    assert "\n" not in str(caught.value)
