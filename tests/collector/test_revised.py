"""Revised figures beside releases, and changes, by HTTP."""

from __future__ import annotations

import csv
import io
import json
import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from ldpstream.collector.alerts.conditions import Comparand, LevelChanged, RequiredEvidence
from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.state import AlertState
from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import Suspicion
from ldpstream.collector.releases.formats import REVISED
from ldpstream.collector.rounds import revised
from ldpstream.collector.rounds.batch_tallies import tallies_at_once
from ldpstream.collector.rounds.loading import mechanism_of
from ldpstream.collector.rounds.revised import RevisedHistory
from ldpstream.collector.service.service import Service
from ldpstream.collector.store.content import StoredContent, stored_text
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.mechanisms.tallies import Tallies
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.terms import Terms
from tests.collector.api import STREAM, Api, running
from tests.collector.helpers import SECRETS, START_MS, config, new_round, stream_config
from tests.collector.strata import Fleet, StrataWorld
from tests.collector.test_api_releases import released
from tests.collector.test_levels import GIVEN


def test_a_release_stays_and_a_revised_figure_stands_beside_it(api: Api) -> None:
    released(api, 12)
    plain = api.client.get(f"{STREAM}/releases").json()["releases"]
    revised = api.client.get(f"{STREAM}/releases?revised=true").json()["releases"]
    assert len(plain) == len(revised) == 12
    for one, other in zip(plain, revised, strict=True):
        assert one == {name: part for name, part in other.items() if "revised" not in name}
        low, middle, high = (other[name] for name in ("revised_low", "revised", "revised_high"))
        assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))


def test_what_comes_later_revises(api: Api) -> None:
    def figures() -> list[float]:
        page = api.client.get(f"{STREAM}/releases?limit=1&revised=true").json()["releases"]
        found: list[float] = page[0]["revised"]
        return found

    api.post(api.asking(), 1, b"\1\0")
    released(api, 1)
    before = figures()
    assert figures() == before
    for device in range(2, 6):
        api.post(api.asking(), device, b"\1\1")
        released(api, 1)
    assert figures() != before


def test_columns_of_files(api: Api) -> None:
    released(api, 3)
    text = api.client.get(f"{STREAM}/releases?format=csv&revised=true").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {"revised:x", "revised_low:x", "revised_high:z"} <= set(rows[0])
    assert "revised:x" not in api.client.get(f"{STREAM}/releases?format=csv").text


def test_changes_of_a_stream_that_stands_still_are_none(api: Api) -> None:
    assert api.client.get(f"{STREAM}/changes").json() == {"stream": "a", "changes": []}
    released(api, 3)
    assert api.client.get(f"{STREAM}/changes").json()["changes"] == []


def test_a_question_about_a_distribution_is_answered_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To fit a density to each timestamp takes long, and of changes there are none to look for."""
    monkeypatch.setattr(revised, "FITTED", 4)
    stream: dict[str, Any] = {"query": "distribution", "range": [0, 5], "bins": 4, "labels": None}
    with running(tmp_path, **stream, mechanism="lpu", oracle=None) as api:
        released(api, 6)
        ask = f"{STREAM}/releases"
        told = api.client.get(f"{ask}?revised=true").json()["releases"]
        assert [one["t"] for one in told] == [1, 2, 3, 4]
        rest = api.client.get(f"{ask}?revised=true&since=5").json()["releases"]
        assert [one["t"] for one in rest] == [5, 6]
        assert len(api.client.get(ask).json()["releases"]) == 6
        monkeypatch.setattr(revised, "revision", None)
        assert api.client.get(f"{STREAM}/changes").json()["changes"] == []
        marks = api.client.get(f"{STREAM}/annotations?from=0&to={1 << 50}")
        assert marks.status_code == 200


def test_who_wants_releases_does_not_wait_for_revised_ones(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    released(api, 2)
    begun, go_on = Barrier(3), Event()

    def slowly(*given: object) -> list[StoredRelease]:
        begun.wait(10)
        assert go_on.wait(10)
        return []

    monkeypatch.setattr(RevisedHistory, "of", slowly)
    with ThreadPoolExecutor() as readers:
        asked = [readers.submit(api.client.get, f"{STREAM}/releases?revised=true") for _ in "ab"]
        begun.wait(10)
        try:
            assert len(api.client.get(f"{STREAM}/releases").json()["releases"]) == 2
        finally:
            go_on.set()
        assert [one.result(10).status_code for one in asked] == [200, 200]


def past(folder: Path, suspect: list[int]) -> SqliteStore:
    """A store with 60 tallies of 2,000 reports each; `suspect` ones say that all is z."""
    stream = stream_config(folder, population=8000)
    terms = Terms("a", stream.values, stream.epsilon, 4, 10_000, START_MS, Oracle.GRR)
    store = SqliteStore(folder / "past.sqlite", b"master secret")
    store.create_stream("a", terms.to_json())
    releases, rng = [], np.random.default_rng(1)
    for t in range(1, 61):
        name = f"{t}-publication"
        shares = [0, 0, 1] if t in suspect else [0.5, 0.25, 0.25]
        counts = rng.multinomial(2000, shares).astype(np.int64)
        store.open_round("a", new_round(t))
        store.close_round("a", name, START_MS)
        store.tally("a", {name: Support(counts, 2000)})
        content = {
            "t": t,
            "values": [0.6, 0.2, 0.2],
            "variance": [1e-3] * 3,
            "fresh": True,
            "low": [0.5, 0.1, 0.1],
            "high": [0.7, 0.3, 0.3],
            **({"suspect": [name]} if t in suspect else {}),
        }
        releases.append(StoredRelease(t, START_MS, content, 2000, 2000, missed=False))
    store.release("a", releases, mechanism_of(stream, terms).save() | {"t": 60}, 0)
    return store


def test_suspect_rounds_that_were_discarded_stay_out(tmp_path: Path) -> None:
    with closing(past(tmp_path, suspect=[30, 31, 32])) as store:
        figures = {}
        for discard in (True, False):
            stream = stream_config(tmp_path, population=8000)
            stream = replace(stream, suspicion=Suspicion(0.001, discard))
            history = RevisedHistory(stream, store)
            found = history.of(store.releases("a", 1, 100))
            figures[discard] = [one.content["revised"][2] for one in found]
            if discard:
                assert history.between(1, 60).changes == ()
        assert max(figures[True]) < 0.3
        assert max(figures[False]) > 0.5


GRR_GAIN = (math.e - 1) / (math.e + 2)
"""p - q at epsilon 1: what `past` counts are reports, not values."""
STEP = [*range(40, 61)]
"""From the first of these on, all is z."""


def test_a_change_of_level_fires_a_rule(tmp_path: Path) -> None:
    rule = Rule(
        "z jumped",
        "a",
        LevelChanged("z", 0.3, within=30, demand=RequiredEvidence(Comparand.INTERVAL)),
    )
    other = Rule("all of it", "a", LevelChanged("z", 3, within=30))
    with closing(past(tmp_path, suspect=STEP)) as store:
        history = RevisedHistory(stream_config(tmp_path, population=8000), store)
        evaluator = AlertEvaluator(
            "a",
            (rule, other),
            store,
            sends=True,
            find_changes=lambda first_t, last_t: history.between(first_t, last_t).changes,
        )
        evaluator.last_t = 59  # the rules were there before the last release
        (change,) = evaluator.catch_up()
    assert (change.rule, change.alert.state) == (rule, AlertState.FIRING)
    (found,) = [one for one in change.evidence.changes or () if one.label == "z"]
    assert found.first_t <= 40 <= found.last_t
    assert found.low < 0.75 / GRR_GAIN < found.high


def test_changes_are_annotations_for_grafana(tmp_path: Path) -> None:
    store = past(tmp_path, suspect=STEP)
    secrets = replace(SECRETS, master=b"master secret")
    clock = ManualClock(START_MS + 60 * 10_000)
    service = Service(config(tmp_path, population=8000), secrets, clock, store)
    with TestClient(build_app(service)) as client:
        found = client.get("/v1/streams/a/changes").json()["changes"]
        marks = client.get("/v1/streams/a/annotations").json()
        later = client.get(f"/v1/streams/a/annotations?from={START_MS + 500_000}").json()
    assert {one["title"].split()[0] for one in marks} == {one["label"] for one in found}
    (mark,) = [one for one in marks if one["title"].startswith("z")]
    assert mark["time"] <= START_MS + 39 * 10_000 <= mark["timeEnd"]
    assert mark["tags"] == "ldpstream,change"
    assert later == []


@pytest.mark.parametrize("levels", [False, True])
def test_tallies_at_once_are_those_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, levels: bool
) -> None:
    given = GIVEN if levels else {"mechanism": "lpf", "epsilon": 4}
    fleet = Fleet(600, "x", level_of=lambda number: "careful" if levels and number % 3 else "")
    world = StrataWorld(tmp_path, fleet, given)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 30)
        pages, found = [], list[Tallies | None]()
        for make in (tallies_at_once, lambda *asked: None):

            def noted(*asked: Any, make: Any = make) -> Tallies | None:
                found.append(make(*asked))
                return found[-1]

            monkeypatch.setattr(revised, "tallies_at_once", noted)
            rows = RevisedHistory(world.config(), store).of(store.releases("a", 0, 100))
            pages.append([[one.content[part] for part in REVISED] for one in rows])
    assert [one is None for one in found] == [False, True]
    assert len(pages[0]) == 30
    assert np.array(pages[0]) == pytest.approx(np.array(pages[1]), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("first", ["t", "fresh", "devices"])
def test_a_page_is_made_of_what_is_stored(tmp_path: Path, first: str) -> None:
    """Also if somebody has stored a release in another order; nothing is parsed twice."""
    entries = {"t": 1, "fresh": True, "values": [0.5], "devices": {"values": 7}, "suspect": ["1"]}
    content = {first: entries[first]} | entries
    stored = StoredRelease(1, 5, StoredContent(stored_text(content)), 3, 2, missed=True)
    plain = StoredRelease(1, 5, content, 3, 2, missed=True)
    assert stored == plain
    assert stored.line == plain.line
    assert json.loads(stored.line) == plain.to_json()
    assert stored.row == plain.row
    assert [stored.content[name] for name in entries] == [*entries.values()]
    assert stored.content.get("low") is None
    assert stored.beside({"low": None}).line == plain.beside({"low": None}).line
    assert stored.beside({"low": [0.1]}).content["low"] == [0.1]
