"""Simulated breakdowns: groups with values of their own, and figures that are as good as stated."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ldpstream.cli import run
from ldpstream.errors import Mistake
from ldpstream.lab.breakdown import simulate_parted
from ldpstream.lab.parts import PartedUsers, Parts, parted
from ldpstream.lab.simulation import simulate
from ldpstream.mechanisms.queries import HISTOGRAM, DistributionQuery, MeanQuery, Query
from ldpstream.mechanisms.settings import RunOptions
from ldpstream.streams.persistent import persistent
from ldpstream.streams.synthetic import constant, meter, sin

COUNTRY = ["country=de:0.6,fr:0.3"]


def rows_of(stream: str = "lpf", **given: Any) -> dict[str, dict[str, float]]:
    usual: dict[str, object] = {"epsilon": 1, "window": 10, "repeats": 2}
    options = RunOptions.read(
        selection="slots", intervals=True, query=given.pop("query", HISTOGRAM)
    )
    source = given.pop("source", None) or sin(users=40_000, timestamps=150)
    found = simulate_parted(source, stream, COUNTRY, options=options, **usual | given)  # type: ignore[arg-type]
    return {str(row["group"]): row for row in found}  # type: ignore[misc]


@pytest.mark.parametrize(("mechanism", "least"), [("lpu", 0.8), ("lpf", 0.5)])
def test_figures_are_as_good_as_they_say(mechanism: str, least: float) -> None:
    """Errors grow with the inverse of the share, and less than that where a filter smooths.

    Errors of LPU are independent: of its 300 intervals fewer than 0.8 hold with a probability below
    1e-7 where 0.9 are meant to. Those of LPF last for as long as its filter remembers, so that a
    few of them decide; docs/breakdowns.md has the coverage of long runs.
    """
    rows = rows_of(mechanism)
    assert list(rows) == ["", "country:de", "country:fr", "country:other"]
    assert [row["share"] for row in rows.values()] == pytest.approx([1, 0.6, 0.3, 0.1])
    errors = [row["mse"] for row in rows.values()]
    assert errors == sorted(errors)
    assert errors[-1] < 20 * errors[0]
    for row in rows.values():
        assert least < row["coverage"] <= 1


def test_the_fleet_is_that_of_a_run_without_attributes() -> None:
    """The mean of 450 squared normal errors is off by a third with a probability below 1e-6."""
    whole = rows_of("lpu", shift=0, repeats=3)[""]["mse"]
    plain = simulate(
        sin(users=40_000, timestamps=150),
        "lpu",
        epsilon=1,
        window=10,
        selection="slots",
        consistency="none",
        repeats=3,
    ).mean("mse")
    assert 0.5 < whole / plain < 2


def test_figures_are_those_of_the_seed() -> None:
    assert rows_of(seed=3, repeats=1) == rows_of(seed=3, repeats=1)
    assert rows_of(seed=3, repeats=1) != rows_of(seed=4, repeats=1)


@pytest.mark.parametrize("query", [MeanQuery(0, 10), DistributionQuery(0, 10, 8)])
def test_numbers_have_groups_too(query: Query) -> None:
    source = meter(users=20_000, timestamps=30)
    rows = rows_of(source=source, query=query, repeats=1, epsilon=2)
    assert set(rows) == {"", "country:de", "country:fr", "country:other"}
    for row in rows.values():
        assert row["mse"] < 1
        assert (row["p50_mae"] is not None) == isinstance(query, DistributionQuery)


def test_each_combination_holds_labels_of_its_own() -> None:
    stream = parted(constant(users=1000, timestamps=2, p=0.1), Parts.read([*COUNTRY, "m=a:0.5"]))
    assert isinstance(stream, PartedUsers)
    rng = np.random.default_rng(1)
    first, _ = stream.snapshots(rng)
    assert first.parts.sum(axis=1).tolist() == [300, 300, 150, 150, 50, 50]
    held = first.counts_by_part(np.arange(1000, dtype=np.uint32), rng)
    assert held.tolist() == first.parts.tolist()
    assert first.counts.tolist() == first.parts.sum(axis=0).tolist()
    assert [part[0] > part[1] for part in first.parts] == [True, False] * 3


def test_users_with_values_of_their_own_are_refused() -> None:
    with pytest.raises(Mistake, match="values of their own"):
        parted(persistent(sin(users=100, timestamps=20), 0.5), Parts.read(COUNTRY))


def test_the_command_prints_a_row_for_each_group(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "--stream", "sin", "--users", "5000", "--timestamps", "30"]
    words += ["--mechanism", "lpf", "--attribute", *COUNTRY]
    assert run([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["group"] for row in rows] == ["", "country:de", "country:fr", "country:other"]
    assert all({"mse", "coverage", "share"} <= row.keys() for row in rows)
    assert run(words) == 0
    assert "country:fr" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--levels", "0.5:40:0.5,1:20:0.5"], "--levels with --attribute"),
        (["--selection", "roster"], "--attribute with is roster"),
        (["--persistence", "0.5"], "--persistence with --attribute"),
        (["--lag", "0"], "--lag with --attribute"),
        (["--attribute", "country=x:0.1"], "two attributes have the same name"),
        (["--mechanism", "lba"], "slots"),
    ],
)
def test_what_does_not_go_with_attributes_is_refused(
    more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", "--stream", "sin", "--users", "5000", "--mechanism", "lpf"]
    assert run([*words, "--attribute", *COUNTRY, *more]) == 2
    assert told in capsys.readouterr().err
