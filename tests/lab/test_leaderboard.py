"""The leaderboard: what is ranked, and the page that the command writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ldpstream.cli import run
from ldpstream.lab.leaderboard import Leaderboard, entries, standings

SMALL = ["--users", "2000", "--timestamps", "30", "--window", "5", "--repeats", "2"]


def test_places_and_standings_follow_the_error() -> None:
    board = Leaderboard(entries((), 3000, 30)[:3], ("lbu", "lpu", "lpf"), window=5, repeats=2)
    places = board.places(board.experiment().run())
    for entry in board.entries:
        own = [place for place in places if place.entry is entry]
        assert [place.mse for place in own] == sorted(place.mse for place in own)
        assert own[0].factor == 1
        assert {place.mechanism for place in own} == {"lbu", "lpu", "lpf"}
    ranked = standings(places)
    assert [one.factor for one in ranked] == sorted(one.factor for one in ranked)
    assert [one.mechanism for one in ranked] == ["lpf", "lpu", "lbu"]


def test_a_stream_without_an_event_has_no_auc() -> None:
    (constant,) = (one for one in entries((), 1000, 20) if one.name == "constant")
    board = Leaderboard((constant,), ("lpu",), window=5, repeats=1)
    (place,) = board.places(board.experiment().run())
    assert place.auc is None
    assert standings([place])[0].auc is None


def test_the_command_writes_one_page_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))
    page = tmp_path / "page.md"
    command = ["leaderboard", "--out", str(tmp_path / "out"), "--mechanisms", "lpu,lsp", *SMALL]
    command += ["--markdown", str(page), "--json"]
    assert run(command) == 0
    first = json.loads(capsys.readouterr().out)
    text = page.read_text()
    for entry in entries((), 2000, 30):
        assert f"### {entry.name} ({entry.kind})" in text
    assert "![" in text
    assert "(out/leaderboard.png)" in text
    assert (tmp_path / "out" / "leaderboard.html").stat().st_size > 10_000
    with (tmp_path / "out" / "leaderboard.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(entries((), 2000, 30))
    assert {"mse", "mre", "coverage", "auc", "cfpu", "seconds"} <= rows[0].keys()
    # Whatever is in the cache is not run again: the processor times are the same figures.
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out)["standings"] == first["standings"]
