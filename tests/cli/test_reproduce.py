"""`ldpstream reproduce` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ldpstream.cli import run
from ldpstream.lab import engines
from ldpstream.lab.engines import InProcess
from ldpstream.lab.reproduction import run as reproduction

SMALL = ["--users", "1000", "--timestamps", "30", "--repeats", "1"]


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data sets, a cache of its own, and no processes to start."""
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(engines, "engine_named", lambda text: InProcess())


def test_one_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, page = tmp_path / "out", tmp_path / "page.md"
    given = ["reproduce", "fig-roc", "--out", str(out), *SMALL, "--markdown", str(page), "--json"]
    assert run(given) == 0
    said = json.loads(capsys.readouterr().out)
    assert {claim["rests_on"] for claim in said["claims"]} == {"fig-roc"}
    assert {claim["verdict"] for claim in said["claims"]} <= {"holds", "does not hold here"}
    assert [timing["name"] for timing in said["timings"]] == ["fig-roc"]
    names = {path.name for path in out.iterdir()}
    assert names == {"fig-roc.csv", "fig-roc.png", "fig-roc.svg", "report.html"}
    command = f"ldpstream reproduce fig-roc --out {out} --repeats 1 --users 1000 --timestamps 30"
    assert command in (out / "report.html").read_text(encoding="utf-8")
    assert command in page.read_text(encoding="utf-8")


def test_a_table_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "table2", "--out", str(tmp_path), *SMALL]) == 0
    said = capsys.readouterr().out
    assert "population division sends far less" in said
    assert str(tmp_path / "report.html") in said.replace("\n", "")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["fig-9", "--out", "x"], "fig-9"),
        (["all"], "--out"),
        (["table2", "--out", "x", "--repeats", "0"], "repeats"),
        (["table2", "--out", "x", "--users", "30"], "30 users"),
        (["table2", "--out", "x", "--repeats", "many"], "--repeats"),
    ],
)
def test_mistakes_are_one_line(
    given: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", *given]) == 2
    said = capsys.readouterr()
    assert named in said.err
    assert said.err.startswith("ldpstream: ")
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not Path("x").exists()


def test_an_engine_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))
    assert run(["reproduce", "table2", "--out", "x", "--engine", "spark://here"]) == 2
    assert "dask://HOST:PORT" in capsys.readouterr().err


def test_ctrl_c_leaves_no_file_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    given = ["reproduce", "fig-roc", "--out", str(out), *SMALL]
    with monkeypatch.context() as patch:
        patch.setattr(reproduction, "_each_once", _interrupt)
        assert run(given) == 130
    assert not out.exists()
    assert "the same command again" in capsys.readouterr().err
    with monkeypatch.context() as patch:  # all runs are in the cache by now
        patch.setattr(InProcess, "run", _interrupt)
        assert run(given) == 0
    assert (out / "report.html").exists()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
