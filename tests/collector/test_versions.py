"""A collector whose stream has had other terms before: what readers, rules and Prometheus see."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ldpstream.cli import run
from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.loading import mechanism_of
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.protocol.history import TermsHistory
from tests.collector.api import ADMIN, STREAM, Api, running
from tests.collector.helpers import SECRETS, START_MS, stream_config
from tests.collector.test_metrics import scrape, value

NEW: dict[str, Any] = {
    "labels": ["new", "z", "x"],
    "successor": {"version": 2, "rename": {"y": "z"}},
}
"""y is merged into z, x has another place, and a label is new."""
KEPT = [{"label": "x", "above": 0.2}, {"label": "y", "above": 0.2}]
SHARES = {"x": 0.5, "y": 0.3, "z": 0.2, "new": 0.1}


@pytest.fixture
def api(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Api]:
    """A collector on a store with releases of two versions, and rules of the API from before."""
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        for at, given in enumerate(({}, NEW)):
            config = stream_config(tmp_path, mechanism="lbu", **given)
            Coordinator(config, store, ManualClock(START_MS + 30_000 * at))
        history = TermsHistory.read(store.versions("a"))
        releases = []
        for t in range(1, 15):
            terms = history.at(t)
            values = [SHARES[name] for name in terms.names]
            content = {"t": t, "values": values, "variance": [1e-4] * 3, "fresh": True}
            content |= {"low": [0.0] * 3, "high": [0.9] * 3}
            content |= {"terms_version": 2} if terms.version > 1 else {}
            releases.append(StoredRelease(t, START_MS + 10_000 * t, content, 40, 40, missed=False))
        state = mechanism_of(config, history.latest).save()
        rules = tuple(config.alert_rule(given, kept=True) for given in KEPT)
        evaluator = AlertEvaluator("a", rules, store, sends=False)
        store.release("a", releases, state, 0)
        evaluator.catch_up()
        store.write_note("a", "alert-rules", {"rules": KEPT})
    with caplog.at_level(logging.WARNING), running(tmp_path, **NEW) as served:
        yield served


def test_releases_of_all_versions_are_given_by_label(api: Api, tmp_path: Path) -> None:
    told = api.client.get(f"{STREAM}/releases").json()
    assert told["labels"] == ["new", "z", "x"]
    assert told["labels_of_versions"] == [["x", "y", "z"], ["new", "z", "x"]]
    assert len({one.get("terms_version", 1) for one in told["releases"]}) == 2
    table = api.client.get(f"{STREAM}/releases?format=csv").text
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["x"] for row in rows] == ["0.5"] * 14
    assert {row["terms_version"]: row["y"] for row in rows} == {"1": "0.3", "2": ""}
    out = tmp_path / "out.csv"
    store = str(tmp_path / "c.sqlite")
    assert run(["export", "--store", store, "--stream", "a", "--out", str(out)]) == 0
    assert out.read_text() == table


def test_revised_figures_are_given_by_label(api: Api, tmp_path: Path) -> None:
    """Of a new label there are none while devices are counted that do not know it."""
    told = api.client.get(f"{STREAM}/releases?revised=true").json()["releases"]
    known = {one.get("terms_version", 1): one["revised"] for one in told}
    assert len(known[1]) == 3
    assert known[2] is None
    table = api.client.get(f"{STREAM}/releases?format=csv&revised=true").text
    for row in csv.DictReader(io.StringIO(table)):
        is_first = row["terms_version"] == "1"
        assert bool(row["revised:y"]) is bool(row["revised_high:x"]) is is_first
        assert row["revised:new"] == ""
    answer = api.client.get(f"{STREAM}/releases?format=parquet&revised=true")
    revised = pl.read_parquet(io.BytesIO(answer.content))
    missing = revised.filter(pl.col("revised_low").is_null())
    assert missing["terms_version"].unique().to_list() == [2]
    assert missing.height == 3 * sum(one.get("terms_version", 1) == 2 for one in told)


def test_a_description_has_the_labels_of_each_version(api: Api) -> None:
    first, second = api.client.get(STREAM).json()["versions"]
    assert (first["labels"], first["called"]) == (["x", "y", "z"], None)
    assert (second["labels"], second["called"]) == (["new", "z", "x"], ["x", "z", "z"])
    assert first["until_t"] >= second["from_t"] > 1


def test_metrics_name_the_labels_of_the_last_release(api: Api) -> None:
    seen = scrape(api)
    assert value(seen, "frequency", label="x") == 0.5
    assert value(seen, "frequency", label="new") == 0.1
    assert value(seen, "frequency", label="y") is None


def test_a_rule_about_a_label_that_is_gone_waits_and_is_named(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    warned = [one for one in caplog.get_records("setup") if "that is gone" in one.message]
    assert [vars(one)["alert"] for one in warned] == ["y above 0.2"]
    listed = api.client.get(f"{STREAM}/alerts/rules", headers=ADMIN).json()["rules"]
    assert [one["rule"]["label"] for one in listed] == ["x", "y"]
    told = api.client.get(f"{STREAM}/alerts").json()["alerts"]
    assert [(one["value"], one["state"]) for one in told] == [(0.5, "firing"), (None, "resolved")]
    given = {"label": "y", "below": 0.1}
    answer = api.client.post(f"{STREAM}/alerts/rules", headers=ADMIN, json=given)
    assert answer.status_code == 400
    assert "'y' is not a label" in answer.json()["detail"]
    gone = listed[1]["id"]
    assert api.client.delete(f"{STREAM}/alerts/rules/{gone}", headers=ADMIN).status_code == 204
