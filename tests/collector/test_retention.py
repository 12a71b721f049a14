"""Releases that become summaries of hours, then of days, and then are gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.releases.retention import Retention, combined, summary_of
from ldpstream.collector.rounds.loading import mechanism_of, terms_of
from ldpstream.collector.service.retention import Pruner
from ldpstream.collector.service.service import Service
from ldpstream.collector.store.contract import Store
from ldpstream.collector.store.postgres.store import PostgresStore
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.durations import DAY_MS, HOUR_MS
from ldpstream.errors import Mistake
from ldpstream.protocol.history import TermsHistory
from tests.collector.helpers import SECRETS, START_MS, config, new_round
from tests.collector.store_contract import SUPPORT, TERMS, as_leader, release_of
from tests.waiting import eventually

WINDOW = 4
HELD = TERMS | {"interval_ms": 600_000, "start_ms": 0, "window": WINDOW}
"""Timestamps of ten minutes: six of them are an hour."""


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store with a stream of 100 releases: 16 hours, and four timestamps more."""
    if request.param == "sqlite":
        opened: Store = SqliteStore(tmp_path / "c.sqlite", SECRETS.master)
    else:
        opened = PostgresStore(request.getfixturevalue("database"), SECRETS.master)
    with closing(opened):
        opened.create_stream("a", HELD)
        held = as_leader(opened)
        for t in range(1, 101):
            held.open_round("a", new_round(t))
            held.close_round("a", f"{t}-publication", 9)
            held.tally("a", {f"{t}-publication": SUPPORT})
            content = release_of(t).content | {"values": [t / 100, 1 - t / 100]}
            held.release("a", [release_of(t, content=content)], {"t": t}, 0)
        yield held


def pruner(store: Store, *ages_ms: int) -> Pruner:
    return Pruner("a", Retention(*ages_ms), TermsHistory.read([HELD]), store)


def test_hours_that_are_over_become_summaries(store: Store) -> None:
    before = store.releases("a", 0, 1000)
    pruner(store, 10 * HOUR_MS).prune(now_ms=12 * HOUR_MS + 1)
    assert store.releases("a", 0, 1000) == before[12:]
    first, second = store.summaries("a")
    assert (first.first_t, first.last_t, first.start_ms) == (1, 6, 0)
    assert (second.first_t, second.last_t, second.start_ms) == (7, 12, HOUR_MS)
    expected = np.array([one.content["values"] for one in before[6:12]])
    np.testing.assert_allclose(second.content["values"], expected.mean(0))
    np.testing.assert_allclose(second.content["least"], expected.min(0))
    np.testing.assert_allclose(second.content["most"], expected.max(0))
    numbers = {name: second.content[name] for name in ("releases", "asked", "received")}
    assert numbers == {"releases": 6, "asked": 60, "received": 48}
    assert [one.t for one in store.rounds("a", 0)] == [*range(13, 101)]
    found = store.check_releases("a")
    assert (found.damage, found.pruned_t, found.summaries) == (None, 12, 2)


def test_hours_become_days_and_days_are_gone(store: Store) -> None:
    ages = (HOUR_MS, DAY_MS, 2 * DAY_MS)
    pruner(store, *ages).prune(now_ms=2 * DAY_MS)
    (day,) = store.summaries("a")
    assert (day.start_ms, day.period_ms, day.first_t, day.last_t) == (0, DAY_MS, 1, 96)
    assert day.content["releases"] == 96
    np.testing.assert_allclose(day.content["values"][0], np.arange(1, 97).mean() / 100)
    assert [one.t for one in store.releases("a", 0, 100)] == [97, 98, 99, 100]
    pruner(store, *ages).prune(now_ms=3 * DAY_MS - 1)
    assert store.summaries("a") == [day]
    pruner(store, *ages).prune(now_ms=3 * DAY_MS)
    assert store.summaries("a") == []
    found = store.check_releases("a")
    assert (found.damage, found.pruned_t) == (None, 96)


def test_a_collector_that_stops_ends_the_pruning_after_an_hour(store: Store) -> None:
    stopping = [False, True, True]
    pruner(store, HOUR_MS, HOUR_MS).prune(2 * DAY_MS, lambda: stopping.pop(0))
    assert store.releases("a", 0, 1)[0].t == 7
    assert [one.period_ms for one in store.summaries("a")] == [HOUR_MS]


def test_the_last_window_stays_however_old_it_is(store: Store) -> None:
    for t in (101, 102):
        store.release("a", [release_of(t)], {"t": t}, 0)
    pruner(store, HOUR_MS).prune(now_ms=900 * DAY_MS)
    assert [one.t for one in store.releases("a", 0, 100)] == [*range(97, 103)]
    store.release("a", [release_of(102 + WINDOW)], {}, 0)
    pruner(store, HOUR_MS).prune(now_ms=900 * DAY_MS)
    assert [one.t for one in store.releases("a", 0, 100)] == [102 + WINDOW]


def test_terms_that_changed_within_an_hour_have_a_summary_each(store: Store) -> None:
    content = release_of(101).content | {"values": [0.2, 0.3, 0.5], "terms_version": 2}
    for t in range(101, 121):
        store.release("a", [release_of(t, content=content | {"t": t})], {"t": t}, 0)
    pruner(store, HOUR_MS).prune(now_ms=18 * HOUR_MS)
    parts = [one for one in store.summaries("a") if one.start_ms == 16 * HOUR_MS]
    spans = [(one.first_t, one.last_t, one.terms_version) for one in parts]
    assert spans == [(97, 100, 1), (101, 102, 2)]
    assert parts[1].content["values"] == pytest.approx([0.2, 0.3, 0.5])
    assert store.check_releases("a").damage is None


def test_a_summary_of_texts_has_the_means_of_the_releases_that_listed_each() -> None:
    history = TermsHistory.read([HELD])
    parts = []
    for t, texts in enumerate((["a", "b"], ["b"], [], ["b", "a"]), 1):
        values = [t / 10] * len(texts)
        content = {"labels": texts, "values": values, "fresh": True}
        parts.append(summary_of(release_of(t, content=content), history.first))
    whole = reduce(combined, parts).content
    assert whole["labels"] == ["a", "b"]
    assert whole["listed"] == [2, 3]
    assert whole["values"] == pytest.approx([0.25, 0.7 / 3])
    assert (whole["least"], whole["most"]) == ([0.1, 0.1], [0.4, 0.4])
    assert whole["releases"] == 4


def test_rounds_that_figures_rest_on_are_kept(store: Store) -> None:
    history, kept = TermsHistory.read([HELD]), Retention(HOUR_MS)
    Pruner("a", kept, history, store, reach=90).prune(now_ms=900 * DAY_MS)
    assert [one.t for one in store.rounds("a", 0)] == [*range(7, 101)]


KEPT = {"releases": "2h", "hourly": "7d", "daily": "365d"}
CONTENT = {"values": [0.25, 0.25, 0.5], "variance": [1.0] * 3, "fresh": True}


def test_a_collector_prunes_and_shows_summaries(tmp_path: Path) -> None:
    """A service finds five hours of releases, and prunes those that are too old."""
    given = config(tmp_path, interval="1m", retention=KEPT)
    start_ms = START_MS - START_MS % HOUR_MS
    clock = ManualClock(start_ms)
    with closing(SqliteStore(given.store, SECRETS.master)) as store:
        stream, history, _ = terms_of(replace(given.streams[0], start_ms=start_ms), store, clock)
        state = mechanism_of(stream, history.first).save()
        for t in range(1, 301):
            store.release("a", [release_of(t, content=CONTENT | {"t": t})], state, 0)
    clock.advance_to(start_ms + 5 * HOUR_MS)
    service = Service(given, SECRETS, clock)
    with TestClient(build_app(service)) as client:

        def summaries() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = client.get("/v1/streams/a/summaries").json()["summaries"]
            return found

        eventually(lambda: len(summaries()) == 3)
        assert summaries()[1]["labels"] == ["x", "y", "z"]
        assert summaries()[1]["values"] == pytest.approx([0.25, 0.25, 0.5])
        first_t = client.get("/v1/streams/a/releases").json()["releases"][0]["t"]
        assert (summaries()[-1]["last_t"], first_t) == (180, 181)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"hourly": "7d"}, "hourly is given without releases; give releases as well"),
        ({"releases": "7d", "hourly": "1d"}, "hourly is less than releases"),
        ({"releases": "7d", "daily": "30d"}, "daily is given without hourly"),
        ({"releases": "1m"}, "releases is '1m'; give a duration like .*, at least 1h"),
        ({"releases": "1d", "ages": "2d"}, "there is no key 'ages' here"),
    ],
)
def test_ages_that_make_no_sense_are_refused(
    tmp_path: Path, given: dict[str, str], refusal: str
) -> None:
    with pytest.raises(Mistake, match=refusal):
        config(tmp_path, retention=given)


def test_a_window_of_releases_must_be_kept(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="less than a window of 4 timestamps plus one; give 5h"):
        config(tmp_path, interval="1h", retention={"releases": "4h"})
    kept = config(tmp_path, interval="1h", retention=KEPT | {"releases": "5h"})
    assert kept.streams[0].retention == Retention(5 * HOUR_MS, 7 * DAY_MS, 365 * DAY_MS)
