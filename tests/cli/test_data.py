"""`ldpstream data`, and streams from real data in `ldpstream simulate`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ldpstream.cli import run
from ldpstream.cli.sources import StreamOptions
from ldpstream.streams.stream import CountsStream

SEQUENCES = (
    "% Categories\n\nfrontpage news tech\n\n% Sequences:\n\n" + "1 2 3 \n2 2 \n3 \n1 1 1 1 \n" * 20
)
MECHANISM = ("--mechanism", "lpu", "--window", "2", "--oracle", "grr", "--json")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "msnbc990928.seq"
    path.write_text(SEQUENCES)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    rows = [f"u{user},{hour},{(user + hour) % 3}" for user in range(20) for hour in range(5)]
    path.write_text("\n".join(["who,when,what", *rows]) + "\n")
    return path


COLUMNS = ("--user", "who", "--time", "when", "--value", "what", "--every", "1")


def test_the_list_shows_what_is_prepared(visits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "prepare", "msnbc", "--from", str(visits), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["users"], row["timestamps"], row["labels"]) == (80, 5, 4)
    assert run(["data", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert [name for name, one in rows.items() if one["prepared"]] == ["msnbc"]
    assert rows["msnbc"] == row
    assert rows["taobao"]["users"] is None
    assert run(["data", "list"]) == 0
    shown = capsys.readouterr().out
    assert "tianchi.aliyun.com" in shown


def test_a_prepared_set_is_a_stream(visits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "prepare", "msnbc", "--from", str(visits)]) == 0
    capsys.readouterr()
    assert run(["simulate", "--stream", "msnbc", "--timestamps", "4", *MECHANISM]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["stream"], row["users"], row["timestamps"], row["labels"]) == ("msnbc", 80, 4, 4)


def test_a_file_of_events_is_a_stream(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--data", str(log), *COLUMNS, *MECHANISM]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["stream"], row["users"], row["timestamps"], row["labels"]) == ("log", 20, 5, 3)


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    path.write_text("a,b,c\n" + "".join(f"{10 + t},{50 - t},40\n" for t in range(30)))
    return path


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ([], (100, 30)),
        (["--timestamps", "7"], (100, 7)),
        (["--users", "5000"], (5000, 30)),
        (["--users", "80", "--timestamps", "30"], (80, 30)),
    ],
)
def test_counts_are_cut_and_rescaled(
    counts: Path, capsys: pytest.CaptureFixture[str], given: list[str], shape: tuple[int, int]
) -> None:
    assert run(["simulate", "--counts", str(counts), *given, "--window", "2", *MECHANISM]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["users"], row["timestamps"]) == shape


def test_rescaled_counts_keep_their_shares(counts: Path) -> None:
    stream = StreamOptions(counts=counts).open(users=10_000, timestamps=2)
    assert isinstance(stream, CountsStream)
    assert stream.table.tolist() == [[1000, 5000, 4000], [1100, 4900, 4000]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--timestamps", "31"], "counts stream: timestamps is 31; give 1 to 30"),
        (["--timestamps", "0"], "counts stream: timestamps is 0; give 1 to 30"),
        (["--users", "0"], "counts stream: users is 0; give 1 to 1,000,000,000,000"),
    ],
)
def test_counts_that_cannot_be_cut_are_refused(
    counts: Path, capsys: pytest.CaptureFixture[str], given: list[str], said: str
) -> None:
    assert run(["simulate", "--counts", str(counts), *given]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--stream", "msnbc"], "msnbc is not prepared; get it from archive.ics.uci.edu"),
        (["--stream", "wind"], "there is no stream 'wind'; use one of: sin, log,"),
        (["--data", "LOG", *COLUMNS[:6]], "--every is missing; give the length of a timestamp"),
        (["--data", "LOG", *COLUMNS[2:]], "--user is missing; give a column's name"),
        (["--data", "LOG", *COLUMNS, "--stream", "sin"], "--stream is sin; give either it or"),
        (["--data", "LOG", *COLUMNS, "--users", "9"], "--users is 9; give either it or --data"),
        (["--data", "LOG", *COLUMNS, "--window", "11"], "20 users are too few for a window of 11"),
        (["--every", "1h"], "--every is 1h; give it with --data only"),
        (["--bins", "0,1"], "--bins is 0,1; give it with --data only"),
        (["--counts", "c.csv", "--stream", "sin"], "--stream is sin; give either it or --counts"),
        (["--counts", "gone.csv"], "gone.csv: No such file or directory; give a readable CSV"),
        (["--data", "gone.csv", *COLUMNS], "gone.csv: no such file; give a .csv or .parquet"),
    ],
)
def test_mistakes_are_one_line(
    log: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    given = [str(log) if option == "LOG" else option for option in options]
    assert run(["simulate", "--mechanism", "lpa", *given]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert said in captured.err


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "--data", "log.csv", *COLUMNS],
        ["data", "prepare", "msnbc", "--from", "msnbc990928.seq"],
    ],
)
def test_without_polars_it_says_what_to_install(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    assert run(command) == 2
    assert "pip install 'ldpstream[data]'" in capsys.readouterr().err


def test_a_prepared_set_needs_no_polars(
    visits: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["data", "prepare", "msnbc", "--from", str(visits)]) == 0
    monkeypatch.setitem(sys.modules, "polars", None)
    assert run(["simulate", "--stream", "msnbc", *MECHANISM]) == 0
