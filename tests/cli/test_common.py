"""What all commands have in common: versions, tables, and mistakes told before the work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from ldpstream import __version__
from ldpstream.build import find_commit
from ldpstream.cli import run
from ldpstream.cli.app import app
from ldpstream.cli.output import print_rows

SMALL = ["--users", "2000", "--timestamps", "40"]


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    commit = find_commit()
    assert commit is not None
    assert capsys.readouterr().out == f"ldpstream {__version__} ({commit[:12]})\n"


def test_without_a_command_there_is_help_and_no_complaint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([]) == 2
    said = capsys.readouterr()
    assert "simulate" in said.out
    assert not said.err


def test_a_machine_that_is_too_small_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill_memory(arguments: list[str]) -> int:
        raise MemoryError("Unable to allocate 373. GiB for an array")

    monkeypatch.setattr("ldpstream.cli._call", fill_memory)
    assert run(["simulate", "--stream", "sin", "--users", "99999999999"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "not enough memory" in line
    assert "373. GiB" in line


@pytest.mark.parametrize(
    "command", [["serve", "--check"], ["audit", "store"], ["device", "status"], ["status"]]
)
def test_a_name_of_several_lines_is_told_in_one(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "no\nsuch \x1b[31mü"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert r"no\nsuch \x1b[31mü" in line


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Each command and each group of them, as the words that name it."""
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


@pytest.mark.parametrize("path", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_help_is_short_and_long(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*path, "--help"]) == 0
    long = capsys.readouterr()
    assert run([*path, "-h"]) == 0
    assert capsys.readouterr() == long
    assert "usage: ldpstream" in long.out.lower()


def test_the_list_of_commands_says_all_that_device_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["--help"]) == 0
    assert "or leave a stream" in " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize(
    ("words", "completed"),
    [("sim", ["simulate"]), ("device st", ["status"]), ("device l", ["leave"])],
)
def test_shells_can_complete(words: str, completed: list[str]) -> None:
    completing = {
        "_LDPSTREAM_COMPLETE": "complete_bash",
        "COMP_WORDS": f"ldpstream {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    done = subprocess.run(
        [sys.executable, "-c", "from ldpstream.cli import main; main()"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | completing,
    )
    assert done.stdout.split() == completed


def test_a_single_row_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", *SMALL, "--mechanism", "lpu"]) == 0
    said = capsys.readouterr().out
    assert "…" not in said
    names = [line.split()[0] for line in said.splitlines() if line.strip()]
    assert {"stream", "mechanism", "mse", "coverage"} <= set(names)
    assert run(["simulate", *SMALL, "--mechanism", "lpu", "--intervals"]) == 0
    assert "coverage_big" in capsys.readouterr().out


def test_a_mechanism_is_run_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", *SMALL, "--mechanism", "lpu,lpu", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_one_repeat_gives_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", *SMALL, "--mechanisms", "lpu,lsp", "--epsilons", "1", "--windows", "5"]
    assert run([*command, "--repeats", "1", "--out", str(tmp_path / "report"), "--json"]) == 0
    ranking = json.loads(capsys.readouterr().out)["ranking"]
    assert [(row["low"], row["high"]) for row in ranking] == [(None, None)] * 2


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["simulate", "--plot", "x.foo"], "--plot"),
        (["simulate", "--plot", "."], "--plot"),
        (["simulate", "--users", "9" * 23], "users"),
        (["simulate", "--timestamps", "9" * 12], "timestamps"),
        (["compare", "--out", "FILE"], "--out"),
        (["reproduce", "table2", "--out", "FILE"], "--out"),
        (["leaderboard", "--out", "FILE"], "--out"),
        (["audit", "--quick", "--out", "FILE"], "--out"),
        (["audit", "--seconds", "nan"], "--seconds"),
        (["demo", "--seconds", "-1"], "--seconds"),
        (["plan", "--labels", "4", "--epsilon", "1", "--users", "9" * 23], "--users"),
        (
            ["plan", "--labels", "4", "--epsilon", "1", "--users", "999", "--interval", "soon"],
            "--interval",
        ),
        (["plan", "--labels", "4", "--users", "1000", "--epsilon", "1e99999999"], "epsilon"),
    ],
)
def test_what_cannot_work_is_told_in_one_line_before_the_work(
    given: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert run([str(file) if word == "FILE" else word for word in given]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert named in said.err
    assert said.err.count("\n") == 1


def test_a_table_is_whole_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    wide = [{f"a column of numbers {n}_{'x' * 20}": n + row for n in range(9)} for row in (0, 1)]
    print_rows(wide, as_json=False)
    said = capsys.readouterr().out
    assert all(f"{n}_{'x' * 20}" in said for n in range(9))


def test_a_file_that_is_not_there_has_no_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", str(tmp_path / "stream.tml")]) == 2
    assert "stream.tml: No such file or directory; give a TOML file" in capsys.readouterr().err


def test_rows_are_printed_as_people_read_them(capsys: pytest.CaptureFixture[str]) -> None:
    """No Python in a table, and labels as they are: they are not markup."""
    row = {"label": "[red]:smile:", "good": True, "refused": {"late": 1234, "lost": 2}, "left": {}}
    print_rows([row], as_json=False)
    told = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert {name: value.strip() for name, value in told.items()} == {
        "label": "[red]:smile:",
        "good": "yes",
        "refused": "late 1,234, lost 2",
        "left": "none",
    }
