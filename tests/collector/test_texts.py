"""A live stream of texts, driven by hand: what is found, kept over restarts, and shown."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.alerts.state import AlertState
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config.alert_rules import read_request
from ldpstream.collector.releases.formats import FACTS, write
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.revised import RevisedHistory
from ldpstream.collector.rounds.running_vocabulary import past_columns
from ldpstream.collector.rounds.text_figures import TextFigures
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.names import ReleasedNames
from ldpstream.collector.store.postgres.store import PostgresStore
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.protocol.history import TermsHistory
from ldpstream.vocabulary.device import encoded
from tests.collector.driving import Crash, DyingStore
from tests.collector.helpers import SECRETS
from tests.collector.store_contract import as_leader
from tests.collector.texts import NASTY, WINDOW, TextWorld, labels_of, world_of

LONG = 3 * WINDOW


def live(world: TextWorld, until_t: int) -> list[StoredRelease]:
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, until_t)
        return store.releases("a", 0, 1000)


def test_texts_that_nobody_listed_are_found_with_figures_that_hold(tmp_path: Path) -> None:
    last = live(world_of(tmp_path), LONG)[-1].content
    assert sorted(last["labels"]) == ["osl", "paris", "rome"]
    for low, value, high in zip(last["low"], last["values"], last["high"], strict=True):
        # 5 standard errors of a third of the devices, who have reported three times
        assert low <= value <= high
        assert abs(value - 1 / 3) < 0.15
    assert last["rest"]["low"] <= 1e-9
    assert last["values"] == sorted(last["values"], reverse=True)


def test_a_restart_at_every_timestamp_changes_no_release(tmp_path: Path) -> None:
    whole, parts = world_of(tmp_path, "whole"), world_of(tmp_path, "parts")
    expected = live(whole, LONG + 3)
    assert any(labels_of(one) for one in expected)
    for t in range(1, LONG + 4):
        found = live(parts, t)
    assert [one.content for one in found] == [one.content for one in expected]


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_change_of_the_store_changes_no_release(after: bool, tmp_path: Path) -> None:
    expected = [one.content for one in live(world_of(tmp_path, "whole"), LONG)]
    for die_at in (21, 38):
        world = world_of(tmp_path, f"{die_at}")
        with closing(SqliteStore(world.file, SECRETS.master)) as store, suppress(Crash):
            world.live(DyingStore(store, die_at, after=after), LONG)
        assert [one.content for one in live(world, LONG)] == expected


def test_a_candidate_that_is_named_later_has_figures_from_rounds_of_before(tmp_path: Path) -> None:
    world = world_of(tmp_path, prefixes=[])
    assert not any(labels_of(one) for one in live(world, LONG))
    world.config = replace(world.config, candidates=("rome", "nobody has it"))
    last = live(world, LONG + 1)[-1]
    assert labels_of(last) == ["rome"]
    assert last.content["low"][0] <= 1 / 3 <= last.content["high"][0]


def test_texts_that_are_shown_alike_are_listed_once(tmp_path: Path) -> None:
    world = world_of(tmp_path, prefixes=[])
    world.held = ("x" * 255 + "ж", "x" * 255 + "é", "rome")
    world.config = replace(world.config, candidates=tuple(world.held))
    last = live(world, LONG)[-1]
    assert sorted(labels_of(last)) == ["rome", "x" * 255 + "\ufffd"]


def test_a_text_is_taken_up_when_it_rises_and_dropped_when_it_sinks(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    live(world, LONG)
    world.held = ("rome", "paris", "new")
    last = live(world, 3 * LONG)[-1]
    assert sorted(labels_of(last)) == ["new", "paris", "rome"]
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        state = store.stream("a")
        assert state is not None
        assert state.mechanism is not None
        assert b"osl".hex() not in state.mechanism["texts"]


def test_silence_widens_intervals_and_makes_no_release_fresh(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    world.silent = frozenset(range(LONG + 1, LONG + 4))
    found = live(world, LONG + 3)
    heard, *silent = found[LONG - 1 :]
    assert heard.content["fresh"]
    assert not any(one.content["fresh"] for one in silent)
    known = dict(zip(labels_of(heard), heard.content["variance"], strict=True))
    for one in silent:
        for label, variance in zip(labels_of(one), one.content["variance"], strict=True):
            assert variance >= known[label]


def test_no_alert_on_a_text_is_resolved_by_silence(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    world.silent = frozenset(range(LONG + 1, 3 * LONG))
    above = read_request({"label": "rome", "above": 0.1}, "a", None)
    wide = read_request({"label": "rome", "wider_than": 0.01}, "a", None)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, 1)
        evaluator = AlertEvaluator("a", (above, wide), store, sends=False)
        world.live(store, 3 * LONG - 1)
        assert {one.alert.state for one in evaluator.catch_up()} == {AlertState.FIRING}
        assert labels_of(store.releases("a", 3 * LONG - 1, 1)[0]) == []
        world.held = ("osl", "paris")
        world.live(store, 4 * LONG)
        assert {one.alert.state for one in evaluator.catch_up()} == {AlertState.RESOLVED}


def test_missed_timestamps_repeat_the_last_release(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    before = live(world, LONG)[-1]
    world.clock.advance(5 * world.config.interval_ms)
    found = live(world, LONG + 6)
    missed = [one for one in found if one.missed]
    assert len(missed) >= 4
    assert all(labels_of(one) == labels_of(before) for one in missed)
    assert not any(one.content["fresh"] for one in missed)


def test_the_salt_is_drawn_once_and_kept(tmp_path: Path) -> None:
    world = world_of(tmp_path, salt=None)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        first = Coordinator(world.config, store, ManualClock(0)).terms
        assert Coordinator(world.config, store, ManualClock(0)).terms == first
    with closing(SqliteStore(tmp_path / "other.sqlite", SECRETS.master)) as store:
        assert Coordinator(world.config, store, ManualClock(0)).terms.values != first.values


def test_a_population_that_is_counted_follows_the_fleet(tmp_path: Path) -> None:
    world = world_of(tmp_path, population="auto")
    world.__class__.devices = property(lambda self: range(1, 1601))  # type: ignore[assignment]
    try:
        last = live(world, LONG)[-1]
    finally:
        del world.__class__.devices
    assert abs(last.content["devices"]["expected"] - 1600) < 160
    assert sorted(labels_of(last)) == ["osl", "paris", "rome"]


def test_any_text_can_be_asked_for_by_name(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    live(world, LONG)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        state = store.stream("a")
        assert state is not None
        terms = TermsHistory.read(state.versions).latest
        figures = TextFigures(store)
        told = figures.of(terms, ["paris", "nobody has it", NASTY], 1600)
        assert figures.of(terms, ["paris"], 1600)["texts"] == told["texts"][:1]
        assert len(past_columns(store, terms, LONG)) == LONG
    paris, nobody, nasty = told["texts"]
    assert told["t"] == LONG
    assert paris["low"] <= 1 / 3 <= paris["high"]
    assert paris["high"] - paris["low"] < 0.2
    # An interval at 5 standard errors of nothing: what nobody holds is not above it.
    assert max(nobody["value"], nasty["value"]) < 5 / 1.645 * (nobody["high"] - nobody["value"])


def test_nothing_is_revised(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    rows = live(world, LONG)
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        revised = RevisedHistory(world.config, store)
        assert all(one.content["revised"] is None for one in revised.of(rows))
        assert revised.over(rows).changes == ()


@pytest.mark.parametrize("kind", ["json", "ndjson", "csv", "arrow", "parquet"])
def test_every_format_has_texts_that_need_escaping(kind: str, tmp_path: Path) -> None:
    world = world_of(tmp_path, prefixes=[])
    world.held = (NASTY, "rome")
    world.config = replace(world.config, candidates=(NASTY, "rome"))
    rows = live(world, LONG)
    last = dict(zip(labels_of(rows[-1]), rows[-1].content["values"], strict=True))
    assert last.keys() == {NASTY, "rome"}
    body = write(kind, "a", ReleasedNames(((),)), rows)
    if kind == "json":
        told = json.loads(body)["releases"][-1]
    elif kind == "ndjson":
        told = json.loads(body.splitlines()[-1])
    elif kind == "csv":
        row = [*csv.DictReader(io.StringIO(body.decode(), newline=""))][-1]
        assert {name: float(row[name]) for name in last} == last
        assert {float(row[f"low:{name}"]) < last[name] for name in last} == {True}
        return
    else:
        read = pl.read_ipc if kind == "arrow" else pl.read_parquet
        table = read(io.BytesIO(body)).filter(pl.col("t") == LONG)
        assert dict(zip(table["label"], table["value"], strict=True)) == last
        return
    assert dict(zip(told["labels"], told["values"], strict=True)) == last


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, min_size=1, max_size=5))
def test_any_texts_survive_every_format(texts: list[str]) -> None:
    labels = [encoded(text).decode("utf-8", "replace") for text in texts]
    labels = [*dict.fromkeys((*labels, *FACTS[:2], f"low:{labels[0]}"))]
    taken = {*FACTS, labels[-1]}
    values = [place / 8 for place in range(len(labels))]
    parts = dict.fromkeys(("values", "variance", "low", "high"), values)
    row = StoredRelease(1, 2, {"t": 1, "labels": labels, "fresh": True, **parts}, 3, 4, False)
    names = ReleasedNames(((),))
    header, cells = csv.reader(io.StringIO(write("csv", "a", names, [row]).decode(), newline=""))
    told = dict(zip(header, cells, strict=True))
    for label, value in zip(labels, values, strict=True):
        assert float(told[f"value:{label}" if label in taken else label]) == value
        assert float(told[f"high:{label}"]) == value
    assert json.loads(write("ndjson", "a", names, [row]))["labels"] == labels
    table = pl.read_parquet(io.BytesIO(write("parquet", "a", names, [row])))
    assert table["label"].to_list() == labels


def test_a_store_on_postgresql_has_the_same_releases(tmp_path: Path, database: Database) -> None:
    expected = live(world_of(tmp_path), WINDOW + 2)
    world = world_of(tmp_path)
    with closing(PostgresStore(database, SECRETS.master)) as opened:
        Coordinator(world.config, opened, world.clock)  # creates the stream
        store = as_leader(opened)
        for t in (WINDOW, WINDOW + 2):  # and they go on after a restart
            world.live(store, t)
        found = store.releases("a", 0, 100)
    assert [one.content for one in found] == [one.content for one in expected]
