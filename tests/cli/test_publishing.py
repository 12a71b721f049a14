"""Plug-ins, the cache, notes and plots on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ldpstream.cli import run
from ldpstream.cli.app import app
from ldpstream.lab import engines
from ldpstream.lab.cache import ResultCache
from ldpstream.lab.engines import InProcess
from ldpstream.mechanisms.registry import BUILT_IN, names, unregister
from tests.lab.grids import OWN_MECHANISM

SMALL = ["--users", "2000", "--timestamps", "20"]
RUN_MECHANISMS = ("simulate", "compare", "plan", "reproduce", "serve")
"""Commands that run mechanisms; `audit` and `engine` are groups, and have the option, too."""


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(engines, "engine_named", lambda text: InProcess())
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def plugin(tmp_path: Path) -> object:
    path = tmp_path / "mine.py"
    path.write_text("from beside import TWO\n" + OWN_MECHANISM.replace("t % 2", "t % TWO"))
    (tmp_path / "beside.py").write_text("TWO = 2\n")
    yield str(path)
    for name in set(names()) - set(BUILT_IN):
        unregister(name)


@pytest.mark.parametrize("command", RUN_MECHANISMS)
def test_every_command_that_runs_mechanisms_takes_plugins(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (known,) = (one for one in app.registered_commands if one.name == command)
    assert known.callback is not None
    needed = {"serve": ["x.toml"], "reproduce": ["table2", "--out", str(tmp_path)]}
    others = needed.get(command, ["--out", str(tmp_path)] if command == "compare" else [])
    assert run([command, *others, "--plugin", "gone.py"]) == 2
    assert "gone.py: there is no such Python file" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["audit", "--quick"], ["engine", "local", "--config", "x"]])
def test_groups_take_plugins(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--plugin", "gone.py"]) == 2
    assert "gone.py: there is no such Python file" in capsys.readouterr().err


def test_a_plugin_is_simulated_and_planned_with(
    plugin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--mechanism", "every-other,lpu", "--plugin", plugin, "--json"]
    assert run(["simulate", "--stream", "sin", *SMALL, *given]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["mechanism"] for row in rows] == ["every-other", "lpu"]
    assert {row["seed"] for row in rows} == {0}


def test_no_cache_neither_reads_nor_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = ["--stream", "sin", *SMALL, "--mechanisms", "lpu,lsp", "--epsilons", "1"]
    given = ["compare", *grid, "--windows", "5", "--out", str(tmp_path / "out"), "--repeats", "2"]
    assert run([*given, "--no-cache", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "home" / "results.db").exists()
    assert run(given) == 0
    with ResultCache() as cache:
        kept = cache._file.execute("SELECT count(*) FROM results").fetchone()
        assert kept == (4,)
        cache._file.execute("""UPDATE results SET figures = json_set(figures, '$.mre', 99)""")
        cache._file.commit()
    capsys.readouterr()
    assert run([*given, "--no-cache", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["ranking"] == said["ranking"]
    assert "commit " in said["made_with"] or "code " in said["made_with"]
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"Made with {said['made_with']} by" in report
    assert "What is released" in report
    assert "AUC per label" in report


def test_notes_about_data_go_to_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = tmp_path / "counts.csv"
    counts.write_text("a\tb\n" + "600\t400\n" * 9 + "600\t\n")
    given = ["--counts", str(counts), "--window", "5", "--mechanism", "lpu", "--json"]
    assert run(["simulate", *given]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)[0]["users"] == 1000
    said = "1 blank cell(s), filled with what the row lacks to 1000 users; the first is row 11"
    assert captured.err == f"ldpstream: note: {counts}: {said}, column 'b'\n"


def test_labels_to_plot_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts, plot = tmp_path / "counts.csv", tmp_path / "plot.svg"
    counts.write_text("a,b,c\n" + "".join(f"{50 + t},{150 - t},90\n" for t in range(20)))
    usual = ["simulate", "--counts", str(counts), "--window", "5", "--mechanism", "lpu"]
    given = [*usual, "--plot", str(plot), "--plot-label", "a"]
    assert run([*given, "--plot-label", "c"]) == 0
    assert plot.stat().st_size > 10_000
    assert run([*given, "--plot-label", "d"]) == 2
    assert "'d' is not a label of this domain; use one of: a, b, c" in capsys.readouterr().err
    assert run([*usual, "--plot-label", "a"]) == 2
    assert "--plot-label is a; give --plot beside it" in capsys.readouterr().err
