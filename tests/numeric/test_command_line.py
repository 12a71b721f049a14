"""`ldpstream simulate --mean` and `--distribution`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ldpstream.cli.app import app
from ldpstream.cli.queries import query_of
from ldpstream.errors import Mistake

SMALL = ["simulate", "--stream", "meter:steps=64", "--users", "4000", "--timestamps", "20"]


@pytest.mark.parametrize(
    ("option", "oracle"), [("--mean=-20:60", "hybrid"), ("--distribution=0:5:8", "square_wave")]
)
def test_numbers_are_simulated(option: str, oracle: str) -> None:
    done = CliRunner().invoke(app, [*SMALL, option, "--mechanism", "lpu", "--json"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    assert (row["oracle"], row["labels"]) == (oracle, 65)
    assert row["mse"] > 0


@pytest.mark.parametrize(
    ("mean", "distribution", "line"),
    [
        ("5", None, "--mean is '5'; give LOW:HIGH, as in --mean=-20:60"),
        ("a:b", None, "--mean is 'a:b'; give LOW:HIGH"),
        ("1:0", None, "the range is 1.0 to 0.0"),
        ("0:nan", None, "the range is 0.0 to nan"),
        ("0:1", "0:1:4", "--mean is '0:1'; give either it or --distribution"),
        (None, "0:1", "--distribution is '0:1'; give LOW:HIGH:BINS"),
        (None, "0:1:2.5", "--distribution is '0:1:2.5'; give LOW:HIGH:BINS"),
        (None, "0:1:1000", "the range is in 1000 bins; give 2 to 256"),
    ],
)
def test_mistakes_are_named(mean: str | None, distribution: str | None, line: str) -> None:
    with pytest.raises(Mistake) as refused:
        query_of(mean, distribution)
    assert str(refused.value).startswith(line)
