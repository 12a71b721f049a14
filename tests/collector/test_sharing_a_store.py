"""Collectors that share a store: what they must agree on, crashes, lost connections, alerts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import psycopg
import pytest
from starlette.testclient import TestClient

from ldpstream.cli import run
from ldpstream.collector.alerts.evaluator import NOTE, AlertEvaluator
from ldpstream.collector.alerts.rulebook import RuleBook
from ldpstream.collector.alerts.runner import AlertRunner
from ldpstream.collector.alerts.state import AlertState
from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock, ticks
from ldpstream.collector.config import Config, SelectionMethod
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.leadership.stream_driver import StreamDriver
from ldpstream.collector.rounds.announcement import AnnouncedRounds
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.follower import Follower
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.loading import terms_of
from ldpstream.collector.service.opening import open_store
from ldpstream.collector.service.service import LEASES_OF_SILENCE, Service
from ldpstream.collector.store.contract import Lease, RoundState, Store
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.connections import connect
from ldpstream.collector.store.postgres.store import PostgresStore
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.authentication import report_mac, report_prefix
from ldpstream.protocol.messages import SubmitReport
from tests.collector.driving import Crash, DyingStore, LaggingStore, World, miscounted
from tests.collector.helpers import SECRETS, START_MS, config
from tests.collector.store_contract import TERMS, release_of
from tests.collector.test_alerts import RULE, Hook
from tests.collector.test_export import release
from tests.waiting import eventually


@pytest.fixture
def shared(tmp_path: Path, database: Database) -> Config:
    return replace(config(tmp_path), database=database)


def test_all_collectors_of_a_store_have_the_same_master_secret(shared: Config) -> None:
    for _ in range(2):
        Service(shared, SECRETS).store.close()
    others = Secrets(b"another master secret", SECRETS.enrolment, SECRETS.admin)
    with pytest.raises(Mistake, match="another master secret") as refused:
        Service(shared, others)
    assert refused.value.problem is Problem.MASTER_DIFFERS


def test_all_collectors_of_a_store_have_its_time(
    shared: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(shared, SECRETS)) as store:
        theirs = store.clock_ms()
    assert theirs is not None
    monkeypatch.setattr(PostgresStore, "clock_ms", lambda store: theirs - 3_600_000)
    with pytest.raises(Mistake, match=r"1:00:\d\d ahead of that of the database; set the one"):
        Service(shared, SECRETS)
    monkeypatch.undo()
    service = Service(shared, SECRETS)
    assert service.clock.doubt is None
    service.store.close()
    assert not (shared.folder / "clock.json").exists()


def test_the_extra_is_asked_for_in_a_line(shared: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if ".store.postgres" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Mistake, match=r"pip install 'ldpstream\[postgres\]'"):
        open_store(shared, SECRETS)


def test_releases_are_exported_while_a_collector_runs(
    shared: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shared.database is not None
    url, out = shared.database.url, tmp_path / "out"
    options = ["--stream", "a", "--out", str(out), "--format", "ndjson"]
    with closing(PostgresStore(shared.database, SECRETS.master)) as store:
        store.create_stream("a", TERMS)
        held_by(store, "me").release("a", [release_of(1), release_of(2)], {}, 0)
        assert run(["export", "--store", url, "--since", "2", *options]) == 0
    assert "was not checked" in capsys.readouterr().err
    assert [json.loads(line)["t"] for line in out.read_text().splitlines()] == [2]
    assert run(["export", "--store", url.replace("/test", "/no"), *options]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "does not exist" in told


# Crashes, as on one machine


@pytest.mark.parametrize(
    ("mechanism", "selection"), [("lbd", SelectionMethod.OPEN), ("lpu", SelectionMethod.SLOTS)]
)
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_step_changes_nothing(
    mechanism: str, selection: SelectionMethod, after: bool, shared: Config
) -> None:
    """Die before or after each change; another collector takes over, as if nothing had happened."""

    def lived(die_at: int | None) -> tuple[list[object], int]:
        assert shared.database is not None
        with connect(shared.database) as connection:
            connection.execute("DROP SCHEMA IF EXISTS ldpstream CASCADE")
        given: Any = {"mechanism": mechanism, "selection": selection}
        stream = replace(shared.streams[0], window=3, population=12, **given)
        world, changes = World(stream, Path()), 0
        with closing(PostgresStore(shared.database, SECRETS.master)) as store:
            terms_of(stream, store, world.clock)
            with suppress(Crash):
                changes = world.live(DyingStore(held_by(store, "first"), die_at, after=after), 3)
            store.give_back(Lease("a", "first", 1))
            second = held_by(store, "second")
            world.live(second, 3)
            assert [*miscounted(second, world)] == []
            done = [one for one in second.rounds("a", 0) if one.t <= 3]
            assert {one.state for one in done} == {RoundState.TALLIED}
            return [one.content for one in second.releases("a", 0, 3)], changes

    calm, changes = lived(None)
    assert changes > 10
    assert all(lived(die_at)[0] == calm for die_at in range(changes))


class Announced(Listener):
    """A listener that keeps the last announcement."""

    last: AnnouncedRounds

    def announced(self, announcement: AnnouncedRounds) -> None:
        self.last = announcement


def test_followers_show_the_open_slot_while_earlier_ones_are_not_counted(shared: Config) -> None:
    assert shared.database is not None
    stream = replace(shared.streams[0], selection=SelectionMethod.SLOTS)
    clock, heard = ManualClock(START_MS), Announced()
    with closing(PostgresStore(shared.database, SECRETS.master)) as store:
        terms_of(stream, store, clock)
        lagging: Any = LaggingStore(held_by(store, "leader"))
        leader = Coordinator(stream, lagging, clock)
        follower = Follower(stream, store, clock, heard)
        for t in (1, 2, 3):
            leader.advance()
            follower.advance()
            assert [one.name for one in heard.last.rounds] == [f"{t}-publication"]
            clock.advance(9000)
            leader.advance()
            follower.advance()
            assert heard.last.rounds == ()
            clock.advance(1000)
        assert follower.last_t == 0
        lagging.counts = True
        leader.advance()
        follower.advance()
        assert follower.last_t == 3


def held_by(store: Store, holder: str) -> Store:
    lease = store.lease("a", holder, 60)
    assert lease is not None
    return store.under(lease)


# A collector that is cut off


class DatabaseLink:
    """The connection of a collector to its database, which can break, or hang."""

    def __init__(self, service: Service) -> None:
        store = service.store
        assert isinstance(store, PostgresStore)
        self._use = store._connections.use
        self.works = Event()
        self.works.set()
        self.silent = False
        store._connections.use = self.use  # type: ignore[method-assign]

    def close(self) -> None:
        """Let the calls that hang go on."""
        self.works.set()

    @contextmanager
    def use(self) -> Iterator[psycopg.Connection]:
        if not self.silent and not self.works.is_set():
            raise psycopg.OperationalError("the line is broken")
        assert self.works.wait(60)
        with self._use() as connection:
            yield connection


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("follows", [False, True])
def test_a_collector_that_is_cut_off_is_not_ready_and_denies_no_round(
    shared: Config, follows: bool, silent: bool
) -> None:
    """The leader may have opened the round since: after a 404 the device would not retry."""
    service = Service(replace(shared, lease_ms=500), SECRETS)
    if follows:
        held_by(service.store, "another")
    line = DatabaseLink(service)
    line.silent = silent
    api = TestClient(build_app(service), raise_server_exceptions=False)
    with api as client, closing(line):

        def ready() -> int:
            return client.get("/v1/ready").status_code

        def report() -> int:
            stream = service.streams["a"]
            prefix = report_prefix("a", stream.terms.pin, "99-publication")
            mac = report_mac(stream.intake.keys.of(bytes(16)), prefix, b"\1\0")
            form = SubmitReport("a", "99-publication", bytes(16), mac, b"\1\0").http
            return client.post(form.path, content=form.body, headers=form.headers).status_code

        eventually(lambda: (service.held("a") is None) is follows)
        eventually(lambda: (ready(), report()) == (200, 404))
        line.works.clear()
        eventually(lambda: (ready(), report()) == (503, 503))
        assert "a" in client.get("/v1/ready").json()["failures"]
        line.works.set()
        eventually(lambda: (ready(), report()) == (200, 404))


def test_one_that_counts_for_long_is_ready_as_long_as_its_lease_is_renewed(
    shared: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough to be renewed in time on a machine with ten times the work.
    lease_ms = 2_000
    service = Service(replace(shared, lease_ms=lease_ms), SECRETS)
    counted, counting = Event(), Event()

    def count(driver: StreamDriver) -> int:
        counting.set()
        assert counted.wait(60)
        return 0

    with TestClient(build_app(service), raise_server_exceptions=False) as client:
        eventually(lambda: service.held("a") is not None)
        monkeypatch.setattr(StreamDriver, "advance", count)
        assert counting.wait(60)
        began = service.scheduler.looked["a"]
        eventually(lambda: ticks() - began > (LEASES_OF_SILENCE + 1) * lease_ms / 1000)
        assert client.get("/v1/ready").status_code == 200
        assert service.scheduler.looked["a"] == began
        monkeypatch.undo()
        counted.set()


# Alerts


def test_only_the_leader_tells_of_alerts(database: Database) -> None:
    """The follower shows them; when it takes over, it sends what the former leader could not."""
    hook = Hook([])
    holder = "one"
    with closing(PostgresStore(database, SECRETS.master)) as store, hook.served() as url:
        store.create_stream("a", TERMS | {"labels": ["x", "y", "z"]})
        held = held_by(store, "one")
        evaluators = {
            name: AlertEvaluator("a", (RULE,), store, sends=True) for name in ("one", "two")
        }
        runners = [
            AlertRunner([one], url, held=lambda _, name=name: held if holder == name else None)  # type: ignore[misc]
            for name, one in evaluators.items()
        ]
        held.release("a", [release(1)], {}, 0)  # x is above the rule's threshold
        for runner in runners:
            runner.start()

        def state(name: str) -> AlertState:
            return evaluators[name].alerts[RULE.fingerprint].state

        def struck_out() -> bool:
            """Return whether no message is left that the next leader would send again."""
            return not (store.note("a", NOTE) or {"unsent": hook})["unsent"]

        eventually(
            lambda: state("one") is state("two") is AlertState.FIRING and len(hook.heard) == 1
        )
        eventually(struck_out)
        first = held
        holder = ""  # the first is paused, while another takes its lease
        store.give_back(Lease("a", "one", 1))
        held, holder = held_by(store, "two"), "two"
        low = replace(release(2), content=release(2).content | {"values": [0.1, 0.1, 0.1]})
        held.release("a", [low], {}, 0)
        runners[1].wake()
        eventually(lambda: state("one") is state("two") is AlertState.RESOLVED)
        eventually(lambda: len(hook.heard) == 2)
        with pytest.raises(Mistake, match="another collector holds the lease"):
            first.write_note("a", NOTE, {})
        for runner in runners:
            runner.stop()
    assert [one["status"] for one in hook.heard] == ["firing", "resolved"]


def test_rules_that_one_collector_is_given_hold_at_all_of_them(shared: Config) -> None:
    """None of them needs to lead the stream: a rule is a setting, and needs no lease."""
    stream = shared.streams[0]
    with closing(open_store(shared, SECRETS)) as store:
        store.create_stream("a", TERMS)
        here, there = (
            RuleBook(stream.name, stream.alerts, store, stream.alert_rule) for _ in range(2)
        )
        told: list[int] = []
        there.changed = lambda rules: told.append(len(rules))
        first = here.add({"label": "x", "above": 0.5})
        there.refresh()
        there.refresh()
        assert ([rule.name for rule in there.rules], told) == ([first.name], [1])
        there.add({"label": "y", "below": 0.1})
        here.remove(first.fingerprint)
        there.refresh()
        assert [rule.label for rule in there.rules] == ["y"]
        assert there.rules == here.rules
        with pytest.raises(RuntimeError, match="needs its lease"):
            store.write_note("a", "alerts", {})


def test_rules_that_are_added_at_once_through_two_collectors_are_both_kept(shared: Config) -> None:
    stream, start = shared.streams[0], Barrier(2)
    with (
        closing(open_store(shared, SECRETS)) as here,
        closing(open_store(shared, SECRETS)) as there,
    ):
        here.create_stream("a", TERMS)
        books = [
            RuleBook(stream.name, stream.alerts, store, stream.alert_rule)
            for store in (here, there)
        ]

        def add(book: RuleBook, names: str) -> None:
            for name in names:
                start.wait(60)
                book.add({"label": "x", "above": 0.5, "name": name})

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(add, books, ("abcdefghij", "klmnopqrst")))
        for book in books:
            book.refresh()
            assert {rule.name for rule in book.rules} == set("abcdefghijklmnopqrst")
