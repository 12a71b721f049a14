"""`ldpstream plan --vocabulary`: what is found, and a file that a collector takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ldpstream.cli import run
from ldpstream.collector.config import load
from ldpstream.vocabulary import Vocabulary

PLAN = ["plan", "--vocabulary", "--users", "1000000", "--epsilon", "2"]


def test_a_plan_says_what_is_found_and_writes_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "stream.toml"
    assert run([*PLAN, "--out", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (usual,) = (one for one in told["outcomes"] if one["prefixes"] == "2, 4, 6")
    assert usual["longest_found"] == 8
    assert 0.009 < usual["found_from"] < 0.01  # 1 % of a million in three windows
    assert usual["listed_from"] < usual["found_from"]
    assert file.read_text() == told["stream_toml"]
    (stream,) = load(file).streams
    assert stream.values == Vocabulary(0, 20, (2, 4, 6))
    assert (stream.population, stream.window) == (1_000_000, 20)


def test_more_prefixes_find_longer_texts_that_more_must_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run([*PLAN, "--json"])
    none, *rows = json.loads(capsys.readouterr().out)["outcomes"]
    assert none["found_from"] is None
    assert [one["longest_found"] for one in rows] == [4, 6, 8, 10, 16]
    shares = [one["found_from"] for one in rows]
    assert shares == sorted(shares)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--labels", "3"], "--labels with --vocabulary"),
        (["--range", "0:1"], "--range with --vocabulary"),
        (["--target-error", "0.01"], "--target-error with --vocabulary"),
        (["--stream", "sin"], "a sample with --vocabulary"),
        (["--mechanism", "lba"], "--mechanism with --vocabulary"),
        (["--oracle", "grr"], "--oracle with --vocabulary"),
        (["--quantiles"], "--quantiles with --vocabulary"),
        (["--attribute", "country=de"], "--attribute with --vocabulary"),
        (["--users", "10"], "10 users are too few for a window of 20: a timestamp would be left"),
        (["--users", "0"], "--users is 0"),
    ],
)
def test_what_texts_cannot_have_is_refused(
    options: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*PLAN, *options]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert word in line
    assert "stream.toml" not in line


def test_a_fleet_too_small_for_any_text_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--vocabulary", "--users", "1000", "--epsilon", "0.1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert not any(one["found_from"] or one["listed_from"] for one in told["outcomes"][1:])
    assert told["because"][1].startswith("No text is found that nobody has listed")


def test_a_plan_needs_a_fleet_and_an_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--vocabulary", "--users", "1000"]) == 2
    assert "--epsilon is missing" in capsys.readouterr().err
