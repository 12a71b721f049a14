"""Files of events as users have them, and what is said of the ones that cannot be used."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ldpstream.errors import Mistake
from ldpstream.streams.events import EventsStream
from ldpstream.streams.labels import Chosen
from ldpstream.streams.longform import label_rule, read_events

COLUMNS: dict[str, Any] = {"user": "who", "time": "when", "value": "what"}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def csv(folder: Path, *rows: str, header: str = "who,when,what") -> Path:
    path = folder / "events.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def read(path: Path, every: str = "1", **options: Any) -> EventsStream:
    return read_events(path, **COLUMNS, every=every, **options)


def histograms(stream: EventsStream) -> list[dict[str, int]]:
    return [
        {
            label: int(count)
            for label, count in zip(stream.domain.labels, snapshot.counts, strict=True)
            if count
        }
        for snapshot in stream.snapshots(np.random.default_rng(0))
    ]


def test_steps_are_carried_forward_and_none_comes_first(folder: Path) -> None:
    stream = read(csv(folder, "ann,3,tea", "bob,5,milk", "ann,5,milk", "cid,3,tea"))
    assert stream.domain.labels == ("none", "milk", "tea")
    assert histograms(stream) == [
        {"none": 1, "tea": 2},
        {"none": 1, "tea": 2},
        {"milk": 2, "tea": 1},
    ]


def test_there_is_no_none_where_everybody_has_a_value_at_once(folder: Path) -> None:
    stream = read(csv(folder, "ann,0,10", "bob,0,9", "ann,1,9"))
    assert stream.domain.labels == ("9", "10")
    assert histograms(stream) == [{"9": 1, "10": 1}, {"9": 2}]


def test_a_value_none_is_the_label_none(folder: Path) -> None:
    stream = read(csv(folder, "ann,0,a", "ann,1,none", "bob,1,a"))
    assert stream.domain.labels == ("none", "a")
    assert histograms(stream) == [{"none": 1, "a": 1}, {"none": 1, "a": 1}]


START = datetime(2024, 5, 1, 12, 0)
MOMENTS = [START, START + timedelta(minutes=9, seconds=59), START + timedelta(minutes=20)]


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%d %H:%M:%S.%f",
        "%Y-%m-%dT%H:%M:%S.%fZ",
        "%Y-%m-%dT%H:%M:%S+02:00",
        "%Y-%m-%d %H:%M:%S+0000",
        "%s",
        "%s000",
        "%s000000",
        "%s.25",
    ],
)
def test_ways_of_writing_a_time(folder: Path, form: str) -> None:
    rows = [
        f"{who},{moment.strftime(form)},{what}"
        for moment, who, what in zip(MOMENTS, ("ann", "ann", "bob"), ("x", "y", "y"), strict=True)
    ]
    assert histograms(read(csv(folder, *rows), every="10min")) == [
        {"none": 1, "y": 1},
        {"none": 1, "y": 1},
        {"y": 2},
    ]


def test_dates_alone_and_two_ways_in_one_file(folder: Path) -> None:
    rows = ("ann,2024-05-01,x", "bob,2024-05-02T10:30:00,y", "ann,2024-05-03 09:00,y")
    stream = read(csv(folder, *rows), every="1d")
    assert histograms(stream) == [{"none": 1, "x": 1}, {"x": 1, "y": 1}, {"y": 2}]


def test_parquet_with_types(folder: Path) -> None:
    path = folder / "events.parquet"
    pl.DataFrame({"who": [7, 7, 8], "when": MOMENTS, "what": [1.5, 2.5, 9.0]}).write_parquet(path)
    stream = read(path, every="10min", bins="0,2,4")
    assert stream.domain.labels == ("none", "[0, 2)", "[2, 4)", "4 or more")
    assert histograms(stream)[-1] == {"[2, 4)": 1, "4 or more": 1}


def test_compressed_csv_reads_as_csv(folder: Path) -> None:
    import gzip

    plain = csv(folder, "ann,0,a", "bob,0,b")
    packed = folder / "packed.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert histograms(read(packed)) == histograms(read(plain))


MANY = [f"u{user},0,{value}" for user, value in enumerate([1, 1, 1, 2, 2, 3, 4, 5, 6, 10])]


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({"labels": "top:2"}, {"1": 3, "2": 2, "other": 5}),
        ({"labels": "top:99"}, {"1": 3, "2": 2, "3": 1, "4": 1, "5": 1, "6": 1, "10": 1}),
        ({"bins": "2,4,20"}, {"below 2": 3, "[2, 4)": 3, "[4, 20)": 4}),
        ({"bins": "1,4,10"}, {"[1, 4)": 6, "[4, 10)": 3, "10 or more": 1}),
        ({"bins": "equal:3"}, {"[1, 4)": 6, "[4, 7)": 3, "[7, 10]": 1}),
        ({"bins": "quantile:2"}, {"[1, 3)": 5, "[3, 10]": 5}),
        ({"bins": "-0.5,2.25,11"}, {"[-0.5, 2.25)": 5, "[2.25, 11)": 5}),
    ],
)
def test_labels_and_bins(folder: Path, options: dict[str, str], labels: dict[str, int]) -> None:
    (found,) = histograms(read(csv(folder, *MANY), **options))
    assert found == labels


def test_labels_from_a_file_keep_its_order(folder: Path) -> None:
    names = folder / "names.txt"
    names.write_text("3\n1\n\n77\n")
    stream = read(csv(folder, *MANY), labels=str(names))
    assert stream.domain.labels == ("3", "1", "77", "other")
    assert histograms(stream) == [{"3": 1, "1": 3, "other": 6}]


def test_the_result_is_kept_for_the_same_file_and_options(folder: Path) -> None:
    path = csv(folder, *MANY)
    stages: list[str] = []
    read(path, watch=lambda stage, done, total: stages.append(stage))
    assert "reading the events" in stages
    stages.clear()
    first = read(path, watch=lambda stage, done, total: stages.append(stage))
    assert "reading the events" not in stages
    assert read(path, labels="top:2").key != first.key
    csv(folder, *MANY, "new,1,1")
    assert read(path).users == 11


def test_many_rows_in_many_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("table", "grouping"):
        monkeypatch.setattr(f"ldpstream.streams.{module}.BATCH", 100)
    rng = np.random.default_rng(5)
    size, users = 20_000, 50
    times, who, what = (rng.integers(0, top, size) for top in (300, users, 6))
    path = folder / "many.parquet"
    pl.DataFrame({"who": who, "when": times, "what": what}).write_parquet(path)
    start, now, expected = times.min(), dict.fromkeys(range(users), "none"), []
    for t in range(start, times.max() + 1, 3):
        for place in np.flatnonzero((times >= t) & (times < t + 3))[
            np.argsort(times[(times >= t) & (times < t + 3)], kind="stable")
        ]:
            now[int(who[place])] = str(what[place])
        expected.append({v: list(now.values()).count(v) for v in now.values()})
    assert histograms(read(path, every="3")) == expected


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([], {}, "events.csv: no row of events; give a row for each event"),
        (["ann,1,a", "ann,2,b"], {}, "all events are of one user; give events of 2 or more"),
        (["ann,0,a", "bob,0,a"], {}, "every value is 'a'; give a column with 2 or more"),
        (["ann,0,a", "bob,soon,b"], {}, "row 3, column 'when' cannot be 'soon'; give ISO 8601"),
        (["ann,0,a", "bob,-3,b"], {}, "row 3, column 'when' cannot be '-3'"),
        (["ann,0,a", "bob,NaN,b"], {}, "row 3, column 'when' cannot be 'NaN'"),
        (["ann,,a", "bob,0,"], {}, "every row has a blank cell; fill in some of them"),
        (["ann,0,1", "bob,0,x"], {"bins": "0,1"}, "row 3, column 'what' cannot be 'x'"),
        (["ann,0,1", "bob,0,nan"], {"bins": "0,1"}, "row 3, column 'what' cannot be 'nan'"),
        (["ann,0,1", "bob,0,inf"], {"bins": "equal:2"}, "row 3, column 'what' cannot be 'inf'"),
        (["ann,2024-05-01,a", "bob,2024-05-02,b"], {}, "column 'when' holds dates; give --every"),
        (["ann,2024-02-30,a"], {"every": "1d"}, "row 2, column 'when' cannot be '2024-02-30'"),
        (["a,0,x", "b,9000000,y"], {}, "9,000,001 timestamps .* give a longer --every"),
        (["ann,0,a,extra", "bob,0,b"], {}, "events.csv: cannot be read"),
    ],
)
def test_bad_rows_are_named(
    folder: Path, rows: list[str], options: dict[str, str], said: str
) -> None:
    with pytest.raises(Mistake, match=said) as caught:
        read(csv(folder, *rows), **options)
    assert "\n" not in str(caught.value)


def test_rows_with_a_blank_cell_are_left_out_and_told_each_time(folder: Path) -> None:
    path = csv(folder, "ann,0,a", "bob,,b", ",1,b", "bob,1,b", "ann,1,", "cat,,")
    notes: list[str] = []
    streams = [read_events(path, **COLUMNS, every="1", tell=notes.append) for _ in range(2)]
    assert histograms(streams[0]) == histograms(read(csv(folder, "ann,0,a", "bob,1,b")))
    said = "4 of 6 rows have a blank cell and are left out; the first is row 3, column 'when'"
    assert notes == [f"{path}: {said}"] * 2


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt"])
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_cells_are_separated_by_commas_tabs_or_semicolons(
    folder: Path, ending: str, separator: str
) -> None:
    expected = histograms(read(csv(folder, "ann,0,a", "bob,1,b")))
    path = folder / f"other.{ending}"
    path.write_text("who,when,what\nann,0,a\nbob,1,b\n".replace(",", separator))
    assert histograms(read(path)) == expected


def test_without_a_header_columns_have_numbers(folder: Path) -> None:
    expected = histograms(read(csv(folder, "ann,0,a", "bob,1,b")))
    path = folder / "bare.txt"
    path.write_text("x\tann\t0\ta\nx\tbob\t1\tb\n")
    stream = read_events(path, user="2", time="3", value="4", every="1")
    assert histograms(stream) == expected
    with pytest.raises(Mistake, match=r"no column 'who'.* without a header, columns are 1, 2, 3"):
        read(path)
    path.write_text("x\tann\t0\ta\nx\tbob\tsoon\tb\n")
    with pytest.raises(Mistake, match="row 2, column '3' cannot be 'soon'"):
        read_events(path, user="2", time="3", value="4", every="1")


def test_a_missing_column_is_named_with_those_there_are(folder: Path) -> None:
    path = csv(folder, "ann,0,a", header="who,time,what")
    with pytest.raises(Mistake, match="no column 'when'; give --time one of: who, time, what"):
        read(path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gone.csv", None, "no such file; give a .csv or .parquet file"),
        ("empty.csv", b"", "the file is empty; give a header and a row per event"),
        ("events.xlsx", b"x", ".xlsx is not a known kind; give .csv or .parquet"),
        ("events", b"x", "no ending is not a known kind"),
        ("broken.parquet", b"not parquet at all", "broken.parquet: cannot be read"),
        ("bytes.csv", b"who,when,what\nann,0,\xff\xfe\nbob,0,b\n", "bytes.csv: cannot be read"),
    ],
)
def test_bad_files_are_named(folder: Path, name: str, content: bytes | None, said: str) -> None:
    path = folder / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Mistake, match=said) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_nothing_is_left_behind_by_a_bad_file(folder: Path) -> None:
    with pytest.raises(Mistake):
        read(csv(folder, "ann,0,a", "bob,0,a"))
    assert list((folder / "home" / "files").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": "soon"}, "--every is 'soon'; give a duration like 30s"),
        ({"every": "0"}, "--every is '0'"),
        ({"every": "10 parsecs"}, "--every is '10 parsecs'"),
        ({"labels": "top:0"}, "--labels is top:0; give top:K"),
        ({"labels": "top:x"}, "--labels is top:x"),
        ({"labels": "gone.txt"}, "gone.txt: No such file or directory; give --labels top:K"),
        ({"bins": "3"}, "--bins is 3; give increasing edges"),
        ({"bins": "3,2"}, "--bins is 3,2"),
        ({"bins": "0,nan"}, "--bins is 0,nan"),
        ({"bins": "equal:1"}, "--bins is equal:1"),
        ({"bins": "0,1", "labels": "top:3"}, "--bins is 0,1; give either it or --labels"),
    ],
)
def test_bad_options_are_named(folder: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        read(csv(folder, "ann,0,1", "bob,0,2"), **options)


@pytest.mark.parametrize(("text", "said"), [("", "no label"), ("a\nb\na\n", "'a' appears twice")])
def test_bad_label_files_are_named(folder: Path, text: str, said: str) -> None:
    path = folder / "labels.txt"
    path.write_text(text)
    with pytest.raises(Mistake, match=said):
        label_rule(str(path), None)


def test_a_label_file_is_read_in_linear_time(folder: Path) -> None:
    """Compared pair by pair, so many labels would take minutes."""
    path = folder / "labels.txt"
    names = tuple(map(str, range(100_000)))
    path.write_text("\n".join(names))
    assert label_rule(str(path), None) == Chosen(names)


def test_too_many_values_for_a_domain(folder: Path) -> None:
    path = folder / "ids.parquet"
    ids = np.arange(70_000)
    pl.DataFrame({"who": ids, "when": ids * 0, "what": ids}).write_parquet(path)
    with pytest.raises(Mistake, match="70,000 different values; choose with --labels top:20"):
        read(path)
