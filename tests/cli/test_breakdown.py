"""Warnings of attributes that single out devices, in `plan` and `serve --check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ldpstream.cli import run
from ldpstream.collector.config import load

PLAN = ["plan", "--labels", "4", "--epsilon", "1", "--mechanism", "lpu,lpf", "--window", "5"]
COUNTRIES = ["--attribute", "country=de,fr,it"]
MODELS = ["--attribute", "model=a,b"]
TOLD = "12 combinations of attributes have about 83.3 devices each, if 1,000 are divided evenly"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("users", "attributes", "warns"),
    [("1000", [*COUNTRIES, *MODELS], True), ("1000", COUNTRIES, False), ("1000", [], False)],
)
def test_attributes_that_single_out_devices_are_warned_of(
    users: str, attributes: list[str], warns: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the plan, and by the check of the file that it writes."""
    assert run([*PLAN, "--users", users, *attributes, "--json", "--out", "stream.toml"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert run(["serve", "--check", "stream.toml", "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert [TOLD in one for one in planned["warnings"]] == [True] * warns
    assert checked["warnings"] == [f"my-stream: {one}" for one in planned["warnings"]]
    assert run(["serve", "--check", "stream.toml"]) == 0
    assert ("warning: my-stream: " in capsys.readouterr().out) == warns
    found = load(Path("stream.toml")).streams[0].attributes
    names = [] if found is None else [one.name for one in found.each]
    assert names == [one.partition("=")[0] for one in attributes if "=" in one]


def test_a_plan_warns_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "--users", "1000", *COUNTRIES, *MODELS]) == 0
    assert "Warning: 12 combinations" in capsys.readouterr().out


def test_a_size_that_is_not_known_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "auto.toml"
    file.write_text(
        '[[stream]]\nname = "a"\nlabels = ["x", "y"]\nepsilon = 1\nwindow = 4\n'
        f'interval = "10s"\n[stream.attributes]\nn = {json.dumps([str(n) for n in range(30)])}\n'
    )
    assert run(["serve", "--check", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--attribute", "country"], "--attribute is country"),
        (["--attribute", "country=de:0.6,fr:.3"], "shares are for simulate and fleet"),
        ([*COUNTRIES, *COUNTRIES], "two attributes have the same name"),
        ([*COUNTRIES, "--mechanism", "lpf,lba"], "lpf or lpu, with --attribute"),
    ],
)
def test_mistakes_are_one_line(
    more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*PLAN, "--users", "1000", *more]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert told in line
