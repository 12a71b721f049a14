"""`ldpstream compare` from the outside."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from ldpstream.cli import run
from ldpstream.lab import engines
from ldpstream.lab.engines import InProcess

SMALL = ["--users", "1000", "--timestamps", "30", "--epsilons", "1,2", "--windows", "5,10"]


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(engines, "engine_named", lambda text: InProcess())


def test_a_built_in_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    given = ["compare", "--stream", "sin:b=0.1", *SMALL, "--repeats", "2", "--out", str(out)]
    assert run([*given, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    ranked = [row["mechanism"] for row in said["ranking"]]
    assert set(ranked) >= {"lbu", "lsp", "lbd", "lba", "lpu", "lpd", "lpa"}
    assert said["recommendation"] in ranked
    assert said["because"][0].startswith("Use ")
    assert sum(row["best_in"] for row in said["ranking"]) == 4
    names = {path.name for path in out.iterdir()}
    charts = ("error-epsilon", "error-window", "communication", "roc")
    assert names == {f"{chart}.{end}" for chart in charts for end in ("csv", "png", "svg")} | {
        "comparison.csv",
        "releases.png",
        "releases.svg",
        "report.html",
    }
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "ldpstream compare --out" in report
    assert "--stream sin:b=0.1" in report


def test_a_file_of_counts_and_some_mechanisms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = tmp_path / "counts.csv"
    counts.write_text("a,b,c\n" + "".join(f"{100 + t},{200 - t},50\n" for t in range(30)))
    out = tmp_path / "out"
    given = ["compare", "--counts", str(counts), "--mechanisms", "lpu,lsp", "--windows", "5"]
    assert run([*given, "--repeats", "1", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "One repeat cannot rule out chance" in said.replace("\n", " ")
    assert "lba" not in said
    assert "p50_mae" not in said


def test_the_mean_of_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    given = ["compare", "--stream", "meter:steps=16", "--mean", "0:5", "--mechanisms", "lpu,lpf"]
    assert run([*given, *SMALL, "--repeats", "2", "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {row["mechanism"] for row in said["ranking"]} == {"lpu", "lpf"}
    header, *rows = csv.reader((out / "comparison.csv").read_text().splitlines())
    oracles = {row[header.index("oracle")] for row in rows}
    assert oracles <= {"duchi", "hybrid", "piecewise"}
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "a value below 0.005 counts as 0.005" in report
    assert "--mean 0:5" in report


@pytest.mark.slow
def test_the_distribution_of_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    given = ["compare", "--stream", "latency:steps=63", "--distribution", "0:1:8"]
    small = ["--users", "2000", "--timestamps", "20", "--epsilons", "1", "--windows", "5"]
    given += [*small, "--mechanisms", "lpu,lpf", "--repeats", "2", "--out", str(out)]
    assert run([*given, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert all(0 < row["p50_mae"] < row["p99_mae"] < 1 for row in said["ranking"])
    assert any(one.startswith("Its median is off by ") for one in said["because"])
    assert "the share of a bin is above" in (out / "report.html").read_text(encoding="utf-8")
    assert run(given) == 0
    assert "p99_mae" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["--stream", "sin"], "--out"),
        (["--mean", "5", "--out", "x"], "--mean"),
        (["--mean", "0:5", "--distribution", "0:5:8", "--out", "x"], "--distribution"),
        (["--mean", "0:5", "--mechanisms", "central-ba", "--out", "x"], "central-ba"),
        (["--stream", "cosine", "--out", "x"], "cosine"),
        (["--epsilons", "1,high", "--out", "x"], "--epsilons"),
        (["--epsilons", "0", "--out", "x"], "epsilon is 0"),
        (["--windows", "1.5", "--out", "x"], "--windows"),
        (["--windows", "0", "--out", "x"], "window is 0"),
        (["--mechanisms", "lpx", "--out", "x"], "lpx"),
        (["--variance", "none", "--out", "x"], "none"),
        (["--plugin", "nowhere.py", "--out", "x"], "nowhere.py"),
        (["--users", "20", "--out", "x"], "20 users"),
        (["--counts", "nowhere.csv", "--out", "x"], "nowhere.csv"),
    ],
)
def test_mistakes_are_one_line(
    given: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *given]) == 2
    said = capsys.readouterr()
    assert named in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not Path("x").exists()


@pytest.mark.parametrize("command", [["compare"], ["reproduce", "table2"], ["leaderboard"]])
def test_figures_are_an_extra(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run([*command, "--out", "x"]) == 2
    assert "pip install 'ldpstream[figures]'" in capsys.readouterr().err
