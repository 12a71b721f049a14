"""Collectors with a log: what is accepted is counted, what is late is told so, and rounds wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.report_log.counts import LogCounts
from ldpstream.collector.report_log.jetstream import JetStreamLog
from ldpstream.collector.report_log.store import LoggedStore
from ldpstream.collector.reports.verdicts import Verdict
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.contract import RoundState, Store
from ldpstream.collector.store.database import Database
from ldpstream.engines import local
from ldpstream.engines.recount import compare, recount_here
from tests.collector.driving import counts_of
from tests.collector.helpers import SECRETS, START_MS, new_round, report_of, stream_config, unsigned
from tests.engines.rounds import logged
from tests.jetstream import NatsServer


@dataclass(frozen=True)
class Scene:
    """A stream under its lease, and someone to count for it."""

    config: StreamConfig
    store: Store
    clock: ManualClock
    log: JetStreamLog
    """Of the engine."""

    def coordinator(self) -> Coordinator:
        return Coordinator(self.config, self.store, self.clock)


@contextmanager
def scene(
    server: NatsServer, database: Database, folder: Path, **given: object
) -> Iterator[tuple[Scene, Iterator[bool]]]:
    with (
        logged(server, database) as at,
        closing(LoggedStore(database, SECRETS.master, server.settings)) as store,
    ):
        config = stream_config(folder, name=at.stream, **given)
        clock = ManualClock(START_MS)
        Coordinator(config, store, clock)
        lease = store.lease(at.stream, "test", 60)
        assert lease is not None
        assert isinstance(at.log, JetStreamLog)

        def engine() -> Iterator[bool]:
            while True:
                yield local.advance(at.log, at.counts, at.stream)

        yield Scene(config, store.under(lease), clock, at.log), engine()


def test_a_round_is_tallied_when_the_engine_has_counted_to_its_end(
    nats_server: NatsServer, database: Database, tmp_path: Path
) -> None:
    with scene(nats_server, database, tmp_path) as (at, engine):
        coordinator = at.coordinator()
        at.clock.advance_to(coordinator.advance() - 1)
        asking = coordinator.open
        assert asking is not None
        name = at.config.name
        records = unsigned(*((number, report_of(asking, number)) for number in range(8)))
        for _ in range(2):  # the second time they are repeats, for the engine to see
            assert set(at.store.accept(name, asking.name, records)) == {Verdict.ACCEPTED}
        assert next(engine)
        assert at.store.received(name, asking.name) == 8

        at.clock.advance(1)
        coordinator.advance()  # closes the round, and waits
        assert coordinator.last_t == 0
        (stored,) = at.store.rounds(name, 0)
        assert stored.state is RoundState.CLOSED
        late = unsigned((99, report_of(asking, 99)))
        assert list(at.store.accept(name, asking.name, late)) == [Verdict.CLOSED]

        successor = at.coordinator()  # as after a crash in the middle of the waiting
        successor.advance()
        assert successor.last_t == 0
        assert next(engine)
        successor.advance()
        assert successor.last_t == 1
        (stored,) = at.store.rounds(name, 0)
        assert stored.support is not None
        assert stored.support.reports == 8
        assert stored.support.counts.tolist() == counts_of(asking, records).tolist()


def test_a_roster_round_closes_when_the_engine_has_counted_everyone(
    nats_server: NatsServer, database: Database, tmp_path: Path
) -> None:
    given = {"selection": "roster", "population": 4, "mechanism": "lbu"}
    with scene(nats_server, database, tmp_path, **given) as (at, engine):
        for number in range(4):
            at.store.enrol(at.config.name, number.to_bytes(16, "big"))
        coordinator = at.coordinator()
        coordinator.advance()
        asking = coordinator.open
        assert asking is not None
        records = unsigned(*((number, report_of(asking, number)) for number in range(4)))
        at.store.accept(at.config.name, asking.name, records)
        assert not coordinator.complete
        next(engine)
        assert coordinator.complete
        coordinator.advance()
        next(engine)
        coordinator.advance()
        assert coordinator.last_t == 1


def recounted(at: Scene, database: Database) -> list[tuple[object, ...]]:
    """The rounds in the log: their names, reports, and whether a recount agrees."""
    with closing(LogCounts(database)) as counts:
        rows = compare(at.log, counts, at.store, [at.config.name], recount_here(at.log))
        return [(row["round"], row["reports"], row["equal"]) for row in rows]


def test_with_slots_an_engine_that_lags_costs_nobody_a_window(
    nats_server: NatsServer, database: Database, tmp_path: Path
) -> None:
    """Rounds go on while nothing is counted. Then all is counted at once, and released in order."""
    with scene(nats_server, database, tmp_path, selection="slots") as (at, engine):
        name, coordinator = at.config.name, at.coordinator()
        sent = {}
        for t in range(1, 5):
            coordinator.advance()
            asking = coordinator.open
            assert asking is not None
            records = unsigned(*((10 * t + n, report_of(asking, 10 * t + n)) for n in range(5)))
            assert set(at.store.accept(name, asking.name, records)) == {Verdict.ACCEPTED}
            sent[asking.name] = counts_of(asking, records).tolist()
            at.clock.advance(10_000)
            if t == 2:
                coordinator = at.coordinator()  # as after a crash
        coordinator.advance()
        assert coordinator.last_t == 0
        late = unsigned((99, b"\1\0"))
        assert list(at.store.accept(name, "3-publication", late)) == [Verdict.CLOSED]
        assert next(engine)
        coordinator.advance()
        assert coordinator.last_t == 4
        releases = at.store.releases(name, 0, 9)
        assert [(one.t, one.received) for one in releases] == [(t, 5) for t in range(1, 5)]
        stored = at.store.rounds(name, 0)
        counted = {one.name: one.support.counts.tolist() for one in stored if one.support}
        assert counted == sent
        assert recounted(at, database) == [(f"{t}-publication", 5, True) for t in range(1, 5)]


def test_with_slots_a_crash_before_the_end_is_in_the_log_moves_no_report(
    nats_server: NatsServer, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next leader ends the round that was closed before it opens another."""
    with scene(nats_server, database, tmp_path, selection="slots") as (at, engine):
        name, coordinator = at.config.name, at.coordinator()
        coordinator.advance()
        at.store.accept(name, "1-publication", unsigned((1, b"\1\0")))
        at.clock.advance(10_000)
        with monkeypatch.context() as patch:
            patch.setattr(JetStreamLog, "end", None)  # a crash, as far as the log is concerned
            with pytest.raises(TypeError):
                coordinator.advance()
        successor = at.coordinator()
        assert set(at.log.ends(name, 0)) == {"1-publication"}
        successor.advance()
        at.store.accept(name, "2-publication", unsigned((2, b"\1\0")))
        at.clock.advance(10_000)
        successor.advance()
        assert next(engine)
        successor.advance()
        assert recounted(at, database) == [(f"{t}-publication", 1, True) for t in (1, 2)]


def test_an_end_that_is_ignored_is_seen(
    nats_server: NatsServer, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: a collector that does not look for the end promises what is not kept."""
    with scene(nats_server, database, tmp_path) as (at, engine):
        coordinator = at.coordinator()
        at.clock.advance_to(coordinator.advance())
        asking = coordinator.open
        assert asking is not None
        coordinator.advance()
        monkeypatch.setattr(JetStreamLog, "ended", lambda *_: None)
        late = unsigned((1, report_of(asking, 1)))
        accepted = at.store.accept(at.config.name, asking.name, late)
        next(engine)
        coordinator.advance()
        (stored,) = at.store.rounds(at.config.name, 0)
        assert stored.support is not None
        promised = int((accepted == Verdict.ACCEPTED).sum())
        assert (promised, stored.support.reports) == (1, 0)


def test_the_round_of_another_collector_is_looked_up(
    nats_server: NatsServer, database: Database, tmp_path: Path
) -> None:
    with (
        scene(nats_server, database, tmp_path) as (at, engine),
        closing(LoggedStore(database, SECRETS.master, nats_server.settings)) as other,
    ):
        at.store.open_round(at.config.name, new_round())
        records = unsigned((1, b"\x01\x02"), (2, b"\x01\x00"))
        assert list(other.accept(at.config.name, "1-publication", records)) == [0, 0]
        next(engine)
        assert at.store.received(at.config.name, "1-publication") == 2


def test_each_stratum_is_counted_under_its_own_terms(
    nats_server: NatsServer, database: Database, tmp_path: Path
) -> None:
    """Two versions and two levels: other labels, oracles and lengths, counted and recounted."""
    given: dict[str, object] = {
        "selection": "slots",
        "level": [{"name": "careful", "epsilon": 3, "window": 8, "oracle": "oue"}],
    }
    changed = {
        "labels": ["x", "new", "newer", "newest"],
        "successor": {"version": 2, "rename": {"y": "new", "z": "x"}, "overlap": "100s"},
    }
    with scene(nats_server, database, tmp_path, **given) as (at, engine):
        name = at.config.name
        config = stream_config(tmp_path, name=name, **given | changed)
        coordinator = Coordinator(config, at.store, at.clock)
        succeeds = coordinator.history.latest.succeeds
        assert succeeds is not None
        expected, first = {}, succeeds.from_t - 1
        at.clock.advance_to(coordinator.terms.start_of(first))
        for t in range(first, first + 3):
            coordinator.advance()
            for place, asking in enumerate(coordinator.opened):
                records = unsigned(*((n, report_of(asking, n)) for n in range(5 + place)))
                assert not at.store.accept(name, asking.name, records).any()
                expected[asking.name] = counts_of(asking, records).tolist()
            at.clock.advance_to(coordinator.terms.deadline_of(t))
            while coordinator.last_t < t:
                coordinator.advance()
                next(engine)
            at.clock.advance_to(coordinator.terms.start_of(t + 1))
        assert len(expected) == 2 + 4 + 4
        stored = {one.name: one.support for one in at.store.rounds(name, 0)}
        found = {one: support.counts.tolist() for one, support in stored.items() if support}
        assert {one: found[one] for one in expected} == expected
        assert sorted(recounted(at, database)) == sorted(
            (one, support.reports, True) for one, support in stored.items() if support
        )
        assert [one.t for one in at.store.releases(name, 0, 9)] == [first, first + 1, first + 2]
