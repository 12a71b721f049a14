"""`ldpstream plan` from the outside."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ldpstream.cli import output, run
from ldpstream.collector.config import load
from ldpstream.lab.files import write_whole

QUICK = ["--mechanism", "lpu,lsp,lpf", "--window", "5"]
SMALL = ["--users", "10000", "--labels", "4", "--epsilon", "1", *QUICK]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def planned(capsys: pytest.CaptureFixture[str], *given: str) -> dict[str, Any]:
    assert run(["plan", *given, "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def test_a_table_and_a_recommendation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", *SMALL]) == 0
    said = capsys.readouterr().out
    assert "Use LPF with " in said
    assert "rehearsal" in said
    assert "reports / device / day" in said


def test_less_than_one_report_in_a_second_is_not_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["--users", "500", "--labels", "3", "--epsilon", "1", "--interval", "1min"]
    assert run(["plan", *given, "--mechanism", "lpu"]) == 0
    assert "up to 0.417 reports/s" in " ".join(capsys.readouterr().out.split())


def test_numbers_are_readable_and_whole_on_a_narrow_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "console", lambda **_: Console(width=80))
    given = ["--users", "10000", "--labels", "4", "--epsilon", "1", "--interval", "2s"]
    assert run(["plan", *given, "--window", "20", "--mechanism", "lbu,lpu,lpf"]) == 0
    said = capsys.readouterr().out
    assert "…" not in said
    assert "e+0" not in said
    (lbu,) = (line.split() for line in said.splitlines() if line.split()[:1] == ["lbu"])
    assert "43,200" in lbu
    assert "hadamard" in said


def test_the_words_have_readable_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--users", "10000", "--labels", "4", "--epsilon", "1", "--interval", "2s"]
    because = planned(capsys, *given, "--window", "20", "--mechanism", "lpu")["because"]
    assert any("A device sends 2,160 reports a day" in sentence for sentence in because)


WIDE = ["--range=-1000000:1000000", "--epsilon", "1", "--window", "5"]


@pytest.mark.parametrize(
    "given",
    [
        ["--users", "1000000", "--mechanism", "lpu"],
        ["--users", "1000000", "--mechanism", "lpu", "--target-error", "5000"],
        ["--users", "10000", "--quantiles", "--mechanism", "lpu", "--repeats", "1"],
    ],
)
def test_large_errors_are_readable_on_the_screen_and_in_the_file(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wide.toml"
    assert run(["plan", *WIDE, *given, "--out", str(file)]) == 0
    for text in (capsys.readouterr().out, file.read_text()):
        assert not re.findall(r"\de\+\d", text)
        flowing = " ".join(text.replace("\n#", " ").split())
        assert re.search(r"root mean squared error[ a-z]* is [1-9]\d*,\d{3}", flowing)


def test_a_large_error_that_cannot_be_reached_is_readable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["--range=-1e12:1e12", *WIDE[1:], "--users", "100", "--mechanism", "lpu"]
    assert run(["plan", *given, "--target-error", "12345"]) == 2
    assert "cannot reach an error of 12,345" in capsys.readouterr().err


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    said = planned(capsys, *SMALL)
    assert said["recommendation"] == "lpf"
    assert (said["users"], said["epsilon"], said["window"], said["labels"]) == (10_000, 1, 5, 4)
    assert said["timestamps"] == 25
    assert said["target"] is None
    rows = {(row["mechanism"], row["oracle"]): row for row in said["outcomes"]}
    assert ("lpf", "hadamard") in rows
    for row in rows.values():
        assert 0 < row["rmse_settled"] <= 1.1 * row["rmse"]
        assert row["rmse_relative"] == pytest.approx(4 * row["rmse"])
        assert row["reports_per_device_day"] == pytest.approx(1440 / 5)
        assert row["bytes_per_device_day"] > 640 * row["reports_per_device_day"]


def test_every_oracle_of_every_mechanism(capsys: pytest.CaptureFixture[str]) -> None:
    said = planned(capsys, *SMALL, "--oracle", "all")
    assert len(said["outcomes"]) == 3 * 7


def test_all_of_the_paper_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--users", "5000", "--labels", "8", "--epsilon", "1", "--window", "4"]
    said = planned(capsys, *given, "--timestamps", "8", "--oracle", "oue")
    assert [row["mechanism"] for row in said["outcomes"]] == [
        *("lbu", "lsp", "lbd", "lba", "lpu", "lpd", "lpa", "lpf")
    ]


def test_the_file_is_one_that_the_collector_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "labels.txt").write_text("north\nsouth, far\n\neast\n")
    out = tmp_path / "new" / "stream.toml"
    given = ["--users", "9000", "--labels", "labels.txt", "--epsilon", "0.5", "--window", "5"]
    assert (
        run(["plan", *given, "--mechanism", "lpf", "--interval", "10min", "--out", str(out)]) == 0
    )
    (stream,) = load(out).streams
    assert stream.labels == ("north", "south, far", "east")
    assert (stream.population, stream.window, stream.interval_ms) == (9000, 5, 600_000)
    assert str(stream.epsilon) == "0.5"
    assert stream.mechanism == "lpf"
    assert "# Use LPF" in out.read_text()
    assert [path.name for path in out.parent.iterdir()] == ["stream.toml"]
    assert str(out) in capsys.readouterr().out.replace("\n", "")


def test_what_a_target_takes(capsys: pytest.CaptureFixture[str]) -> None:
    said = planned(capsys, *SMALL, "--target-error", "0.005")
    target = said["target"]
    assert target["rmse"] == 0.005
    assert not target["reached"]
    assert target["smallest_users"] > 10_000
    assert target["smallest_epsilon"] > 1
    enough = [*SMALL, "--users", str(target["smallest_users"]), "--target-error", "0.005"]
    assert planned(capsys, *enough)["target"]["reached"]


@pytest.mark.parametrize("missing", ["--users", "--epsilon"])
def test_what_is_left_out_is_found(missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = SMALL.index(missing)
    given = [*SMALL[:place], *SMALL[place + 2 :], "--target-error", "2%"]
    said = planned(capsys, *given)
    assert said["target"]["reached"]
    assert said["target"][f"smallest_{missing[2:]}"] == said[missing[2:]]
    chosen = (said["recommendation"], said["oracle"])
    (rmse,) = (
        row["rmse"] for row in said["outcomes"] if (row["mechanism"], row["oracle"]) == chosen
    )
    assert 0.95 * 0.005 < rmse <= 0.005


def test_a_sample_is_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{300 + 5 * (t % 20)},{700 - 5 * (t % 20)}\n" for t in range(40))
    write_whole(tmp_path / "counts.csv", "yes,no\n" + rows)
    given = ["--counts", "counts.csv", "--epsilon", "1", "--repeats", "2", *QUICK]
    said = planned(capsys, *given)
    assert {row["how"] for row in said["outcomes"]} == {"simulation"}
    assert len(said["outcomes"]) == 3
    assert (said["users"], said["labels"], said["timestamps"]) == (1000, 2, 40)
    assert 'labels = ["yes", "no"]' in said["stream_toml"]
    cut = planned(capsys, *given, "--timestamps", "10", "--users", "5000")
    assert (cut["users"], cut["timestamps"]) == (5000, 10)
    larger = planned(capsys, *given, "--users", "50000")
    assert larger["users"] == 50_000
    best = [min(row["rmse"] for row in one["outcomes"]) for one in (said, larger)]
    assert best[1] < best[0]


def test_one_run_has_no_doubt_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--stream", "sin", "--users", "1000", "--timestamps", "10", "--epsilon", "1", *QUICK]
    said = planned(capsys, *given, "--repeats", "1")
    assert {row["rmse_doubt"] for row in said["outcomes"]} == {None}


def test_the_mean_of_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    said = planned(capsys, "--range=-20:60", "--users", "10000", "--epsilon", "1", *QUICK)
    assert {row["oracle"] for row in said["outcomes"]} >= {"duchi", "hybrid", "piecewise"}
    assert "range = [-20.0, 60.0]" in said["stream_toml"]
    lpu = next(row for row in said["outcomes"] if row["mechanism"] == "lpu")
    assert lpu["rmse_relative"] == pytest.approx(lpu["rmse"] / 80)


def test_the_mean_of_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten levels from 0 to 5, in order; the sample is simulated and the file has its range."""
    rows = "".join(f"{100 + t},{','.join(['50'] * 8)},{200 - t}\n" for t in range(40))
    write_whole(tmp_path / "levels.csv", ",".join(map(str, range(10))) + "\n" + rows)
    given = ["--counts", "levels.csv", "--range", "0:5", "--epsilon", "1", "--repeats", "1"]
    said = planned(capsys, *given, *QUICK, "--out", "mean.toml")
    assert {row["how"] for row in said["outcomes"]} == {"simulation"}
    assert {row["oracle"] for row in said["outcomes"]} <= {"duchi", "hybrid", "piecewise"}
    assert (said["users"], said["labels"]) == (700, 10)
    # In the unit of the range: a histogram's error would be far below, a wild guess above.
    assert 0.05 < min(row["rmse"] for row in said["outcomes"]) < 1.5
    written = tomllib.loads((tmp_path / "mean.toml").read_text())
    assert written["stream"][0]["range"] == [0.0, 5.0]


NUMBERS = ["--range=-20:60", "--quantiles", "--users", "10000", "--epsilon", "1"]


def test_the_quantiles_of_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = planned(capsys, *NUMBERS, "--window", "5", "--repeats", "1", "--out", "numbers.toml")
    rows = {row["mechanism"]: row for row in said["outcomes"]}
    assert list(rows) == ["lsp", "lpu", "lpd", "lpa", "lpf"]
    assert {(row["oracle"], row["how"]) for row in rows.values()} == {("square_wave", "reference")}
    for row in rows.values():
        assert list(row["mae"]) == ["p10", "p50", "p90", "p99", "mean"]
        assert 0 < row["mae"]["p50"] < row["mae"]["p99"] < 80
        assert row["rmse_relative"] == pytest.approx(row["rmse"] / 80)
    assert any("stream latency" in sentence for sentence in said["because"])
    assert "stream latency" in said["stream_toml"].replace("\n# ", " ")
    (written,) = tomllib.loads((tmp_path / "numbers.toml").read_text())["stream"]
    assert (written["range"], written["query"]) == ([-20.0, 60.0], "distribution")
    assert (written["bins"], written["oracle"]) == (32, "square_wave")
    assert run(["serve", "--check", "numbers.toml"]) == 0


def test_a_table_of_quantiles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "console", lambda **_: Console(width=80))
    given = ["--window", "5", "--repeats", "1", "--mechanism", "lpu,lpf", "--timestamps", "8"]
    assert run(["plan", *NUMBERS, *given]) == 0
    said = capsys.readouterr().out
    assert "…" not in said
    assert "p50 error" in " ".join(said.split())
    assert "This assumes numbers like those of the stream latency" in " ".join(said.split())


def test_the_quantiles_of_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty levels from 0 to 5: no more bins than levels, and no word of the reference."""
    write_whole(tmp_path / "levels.csv", "\n".join([",".join(map(str, range(20)))] * 11) + "\n")
    given = ["--counts", "levels.csv", "--range", "0:5", "--quantiles", "--users", "5000"]
    said = planned(capsys, *given, "--epsilon", "1", "--repeats", "1", *QUICK)
    assert {row["how"] for row in said["outcomes"]} == {"simulation"}
    assert "bins = 20" in said["stream_toml"]
    assert all("latency" not in sentence for sentence in said["because"])


BOTH = ["--users", "1000", "--epsilon", "1"]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (BOTH, "the subject is missing"),
        ([*BOTH, "--labels", "4", "--range", "0:1"], "--labels and --range"),
        ([*BOTH, "--labels", "1"], "1 labels"),
        ([*BOTH, "--labels", "nowhere.txt"], "nowhere.txt"),
        ([*BOTH, "--range", "1:0"], "the range"),
        ([*BOTH, "--range", "wide"], "--range"),
        ([*BOTH, "--quantiles"], "--quantiles"),
        ([*BOTH, "--labels", "4", "--quantiles"], "--quantiles"),
        ([*BOTH, "--stream", "latency", "--quantiles"], "--quantiles"),
        ([*BOTH, "--range", "1:0", "--quantiles"], "the range"),
        ([*NUMBERS, "--mechanism", "lpf,lbu"], "lbu"),
        ([*NUMBERS, "--oracle", "duchi"], "duchi"),
        ([*NUMBERS, "--target-error", "2%"], "--target-error"),
        ([*NUMBERS, "--users", "100000000"], "--users"),
        ([*BOTH, "--labels", "4", "--interval", "soon"], "--interval"),
        ([*BOTH, "--labels", "4", "--interval", "1ms", *QUICK], "interval"),
        ([*BOTH, "--labels", "4", "--window", "0"], "window is 0"),
        ([*BOTH, "--labels", "4", "--mechanism", "lpx"], "lpx"),
        ([*BOTH, "--labels", "4", "--oracle", "delphi"], "delphi"),
        ([*BOTH, "--labels", "4", "--target-error", "small"], "--target-error"),
        ([*BOTH, "--labels", "4", "--timestamps", "0"], "--timestamps"),
        ([*BOTH, "--labels", "4", "--target-error", "1e-9", *QUICK], "cannot reach"),
        ([*BOTH, "--labels", "4", "--user", "name"], "--user"),
        ([*BOTH, "--stream", "cosine"], "cosine"),
        ([*BOTH, "--counts", "nowhere.csv"], "nowhere.csv"),
        (["--labels", "4", "--users", "100", "--epsilon", "0"], "epsilon is 0"),
        (["--labels", "4", "--users", "8", "--epsilon", "1"], "8 users"),
        (["--labels", "4", "--users", "100"], "--epsilon"),
        (["--labels", "4", "--epsilon", "1"], "--users"),
        (["--labels", "4", "--target-error", "0.1"], "--epsilon"),
    ],
)
def test_mistakes_are_one_line(
    given: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", *given]) == 2
    said = capsys.readouterr()
    assert named in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not Path("x.toml").exists()


@pytest.mark.parametrize("given", [SMALL, ["--vocabulary", "--users", "1000", "--epsilon", "1"]])
def test_a_file_that_is_there_is_kept(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("edited by hand")
    assert run(["plan", *given, "--out", "mine.toml"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("ldpstream: --out is mine.toml; give a file that is not there yet")
    assert (said.err.count("\n"), said.out) == (1, "")
    assert mine.read_text() == "edited by hand"


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("a file, no folder")
    assert run(["plan", *SMALL, "--out", "taken/stream.toml"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
