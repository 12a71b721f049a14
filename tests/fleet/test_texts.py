"""Fleets that hold texts, against a real collector: what many hold is found."""

from __future__ import annotations

import asyncio
import csv
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ldpstream.cli import run
from ldpstream.fleet.fleet import Fleet, FleetOutcome, FleetPlan
from ldpstream.fleet.reader import JudgedRelease
from ldpstream.fleet.simulated.fleet import SimulatedFleet
from ldpstream.oracles import Oracle
from ldpstream.oracles.lab_half import encode_table
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.words import WordStream, named_words, words
from tests.serving import LATE, TOKEN, serving, stream_table

PATIENCE = 180.0
DEVICES = 240
SOURCE = words(users=DEVICES, texts=5, exponent=2.5, longest=4, seed=3)
"""Three quarters of the devices hold the first word, which has at most two bytes and two."""
DROPPED = ("labels", "oracle", "mechanism", "selection")


def texts_table(**settings: object) -> str:
    given = {
        "vocabulary": '"open"',
        "prefixes": "[2]",
        "bits": 18,
        "epsilon": 8,
        "population": DEVICES,
    }
    table = stream_table("words", datetime.now(UTC), **(given | settings))
    return "\n".join(line for line in table.splitlines() if not line.startswith(DROPPED))


def until_listed(kind: type[Fleet], url: str, source: WordStream = SOURCE) -> FleetOutcome:
    """Run a fleet until a release lists the word that most devices hold."""

    def watch(judged: JudgedRelease) -> None:
        if judged.truth.max(initial=0.0) > 0.5:
            fleet.stop()

    plan = FleetPlan(url, "words", TOKEN, source, DEVICES, PATIENCE, gateway=True)
    fleet = kind(plan, watch=watch)
    return asyncio.run(fleet.run())


@pytest.mark.parametrize("kind", [Fleet, SimulatedFleet], ids=["real", "simulated"])
def test_a_text_that_most_devices_hold_is_found_and_exported(
    kind: type[Fleet], tmp_path: Path
) -> None:
    with serving(tmp_path, texts_table(interval='"1s"')) as url:
        outcome = until_listed(kind, url)
        file, other = tmp_path / "words.csv", tmp_path / "words.json"
        export = ["export", "--stream", "words"]
        assert run([*export, "--collector", url, "--out", str(file)]) == 0
        store = str(tmp_path / "collector.sqlite")
        assert run([*export, "--format", "json", "--store", store, "--out", str(other)]) == 0
    assert outcome.delivered > 0
    assert set(outcome.refused) <= LATE
    assert outcome.metrics is None
    assert outcome.found is not None
    assert outcome.found.found >= 1
    word = SOURCE.domain.labels[0]
    with file.open(newline="") as table:
        rows = [*csv.DictReader(table)]
    assert any(float(row[word] or 0) > 0.4 for row in rows)
    told = json.loads(other.read_text())
    assert any(word in one["labels"] for one in told["releases"])


def test_more_buckets_than_labels_can_be_are_reported_as_they_are() -> None:
    epsilon, buckets = Epsilon.of(8), (1 << 17) - 1
    lab = Oracle.HADAMARD.lab(buckets, epsilon)
    held = np.full(1000, buckets - 5, np.uint32)
    for reports in (
        lab.perturb(held, np.random.default_rng(1)),
        lab.supporting(held, np.random.default_rng(1)),
    ):
        table = encode_table(reports, lab.device)
        read = Oracle.HADAMARD.collector(buckets, epsilon).decode_table(table)
        supports = [lab.device.supports(int(column), buckets - 5) for column in read]
        assert np.mean(supports) > 0.99  # 0.9997 of honest reports


def test_a_stream_of_words_is_the_same_at_all_timestamps() -> None:
    stream = named_words("words:texts=70000,exponent=0.5", users=1000, timestamps=3)
    rng = np.random.default_rng(0)
    first, *others = [snapshot.counts for snapshot in stream.snapshots(rng)]
    assert (first.sum(), len(first), len(others)) == (1000, 70_000, 2)
    assert all(np.array_equal(first, one) for one in others)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--stream", "sin"], "give words"),
        (["--stream", "words", "--mechanism", "lba"], "give lpf"),
        (["--stream", "words", "--lag", "3"], "without --vocabulary"),
        (["--stream", "words", "--levels", "1:20:1"], "without --vocabulary"),
        (["--stream", "words", "--attribute", "country=de:1"], "without --vocabulary"),
        (["--stream", "words", "--window", "0"], "window"),
        (["--stream", "words", "--window", "9" * 20], "too few for a window"),
        (["--stream", "words", "--repeats", "0"], "repeats is 0"),
        (["--stream", "words:longest=2"], "longest"),
        (["--stream", "words:texts=1"], "texts"),
    ],
)
def test_simulate_refuses_what_texts_cannot_have(
    options: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", "--vocabulary", *options]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert word in line


def test_simulate_prints_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--stream", "words:texts=100,exponent=2", "--users", "20000", "--timestamps", "12"]
    run(["simulate", "--vocabulary", *words, "--window", "4", "--epsilon", "3", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["missed"], row["mechanism"], row["bits"]) == (0, "lpf", 16)
    assert row["found"] >= 1
    assert row["windows"] <= 3
    assert row["coverage"] > 0.7
