"""When streams act: each at its time, only then, and each in one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, cast

import pytest

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.leadership.lease_keeper import LeaseKeeper
from ldpstream.collector.leadership.scheduler import Build, Scheduler
from ldpstream.collector.leadership.store_watch import StoreWatch
from ldpstream.collector.store.contract import Pulse, Store
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.store import PostgresStore
from tests.collector.helpers import SECRETS, new_round
from tests.collector.store_contract import TERMS, as_leader
from tests.waiting import eventually

WORKERS = 8


class Stub:
    """A driver that counts how often it advances, and is due again after a while."""

    def __init__(self, clock: ManualClock, every_ms: int = 1000, held: Store | None = None) -> None:
        self.clock, self.every_ms, self.held = clock, every_ms, held
        self.times = 0
        self.at_once = 0
        self.fails = False
        self.gate: Callable[[], Any] = lambda: None

    def advance(self) -> int:
        self.at_once += 1
        assert self.at_once == 1
        self.gate()
        self.times += 1
        self.at_once -= 1
        if self.fails:
            raise RuntimeError("no disk")
        return self.clock.now_ms() + self.every_ms


def build(stub: Stub) -> Build:
    return cast("Build", lambda: stub)


def pausing(inside: threading.Event, go: threading.Event) -> None:
    """Say that a driver advances, and wait until it may end."""
    inside.set()
    assert go.wait(60)


@contextmanager
def running(clock: ManualClock, watch: Any = None, **stubs: Stub) -> Iterator[Scheduler]:
    drivers = {name: build(stub) for name, stub in stubs.items()}
    scheduler = Scheduler(clock, drivers, watch, WORKERS)
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()
    assert not scheduler.alive


def test_only_what_is_due_advances() -> None:
    clock = ManualClock(0)
    often, rarely = Stub(clock, 1000), Stub(clock, 60_000)
    with running(clock, often=often, rarely=rarely):
        eventually(lambda: (often.times, rarely.times) == (1, 1))
        for second in range(1, 4):
            clock.advance_to(1000 * second)
            eventually(lambda second=second: often.times == 1 + second)  # type: ignore[misc]
        assert rarely.times == 1
        clock.advance_to(60_000)
        eventually(lambda: rarely.times == 2)


def test_one_stream_is_woken_and_no_other() -> None:
    clock = ManualClock(0)
    a, b = Stub(clock), Stub(clock)
    with running(clock, a=a, b=b) as scheduler:
        eventually(lambda: (a.times, b.times) == (1, 1))
        scheduler.wake("a")
        eventually(lambda: a.times == 2)
        assert b.times == 1
        scheduler.wake()
        eventually(lambda: (a.times, b.times) == (3, 2))


def test_one_that_is_woken_while_it_advances_advances_once_more() -> None:
    clock, inside, go = ManualClock(0), threading.Event(), threading.Event()
    stub = Stub(clock)
    stub.gate = lambda: pausing(inside, go)
    with running(clock, a=stub) as scheduler:
        assert inside.wait(60)
        for _ in range(5):
            scheduler.wake("a")
        stub.gate = lambda: None
        go.set()
        eventually(lambda: stub.times == 2)
        scheduler.add("b", build(other := Stub(clock)))
        eventually(lambda: other.times == 1)
        assert stub.times == 2


def test_a_slow_stream_keeps_no_other_waiting() -> None:
    clock, go = ManualClock(0), threading.Event()
    slow = {f"slow{number}": Stub(clock) for number in range(WORKERS - 1)}
    for one in slow.values():
        one.gate = lambda: go.wait(60)
    quick = Stub(clock)
    with running(clock, **slow, quick=quick):
        eventually(lambda: quick.times == 1)
        go.set()
        eventually(lambda: all(one.times == 1 for one in slow.values()))


def test_streams_come_and_go_while_it_runs() -> None:
    clock, inside, go = ManualClock(0), threading.Event(), threading.Event()
    a, b = Stub(clock), Stub(clock)
    b.gate = lambda: pausing(inside, go)
    with running(clock, a=a) as scheduler:
        scheduler.add("b", build(b))
        assert inside.wait(60)
        removing = threading.Thread(target=scheduler.remove, args=("b",))
        removing.start()
        assert "b" in scheduler.drivers  # it is not gone before it has advanced
        go.set()
        removing.join(60)
        assert b.times == 1
        assert [*scheduler.drivers] == [*scheduler.looked] == ["a"]
        clock.advance_to(5000)
        eventually(lambda: a.times == 2)
        assert b.times == 1


def test_one_that_fails_is_built_anew_after_a_while() -> None:
    clock = ManualClock(0)
    broken, whole = Stub(clock), Stub(clock)
    broken.fails = True
    stubs = iter([broken, whole])
    scheduler = Scheduler(clock, {"a": cast("Build", lambda: next(stubs))})
    scheduler.start()
    eventually(lambda: scheduler.failures == {"a": "no disk"})
    scheduler.wake()
    clock.advance_to(1000)
    eventually(lambda: (whole.times, scheduler.failures) == (1, {}))
    assert broken.times == 1
    scheduler.stop()


class Pulses:
    """A shared store of which only the pulses are looked at."""

    def __init__(self) -> None:
        self.now = {"a": Pulse(1, 0), "b": Pulse(1, 0)}
        self.error: Exception | None = None
        self.looks = 0

    def pulses(self) -> dict[str, Pulse]:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return self.now


def test_followers_are_woken_by_one_query_for_all() -> None:
    clock, store = ManualClock(0), Pulses()
    idle = 10**9
    a, b = Stub(clock, idle), Stub(clock, idle)
    led = Stub(clock, idle, held=cast("Store", object()))
    with running(clock, StoreWatch(cast("Store", store)), a=a, b=b, led=led) as scheduler:
        eventually(lambda: (a.times, b.times) == (1, 1) or (a.times, b.times) == (2, 2))
        eventually(lambda: store.looks >= 1)
        first, looks = (a.times, b.times), store.looks
        clock.advance_to(clock.now_ms() + 200)
        eventually(lambda: store.looks > looks)
        store.now = store.now | {"b": Pulse(2, 0)}
        clock.advance_to(clock.now_ms() + 200)
        eventually(lambda: b.times == first[1] + 1)
        assert (a.times, led.times) == (first[0], 1)
        store.now = store.now | {"a": Pulse(1, 0, free=True)}
        clock.advance_to(clock.now_ms() + 200)
        eventually(lambda: a.times == first[0] + 1)
        store.error = RuntimeError("the database is away")
        clock.advance_to(clock.now_ms() + 200)
        away = "the database is away"
        eventually(lambda: scheduler.failures == {"a": away, "b": away})
        store.error = None
        clock.advance_to(clock.now_ms() + 200)
        eventually(lambda: scheduler.failures == {})


@pytest.fixture
def shared(database: Database) -> Iterator[PostgresStore]:
    with closing(PostgresStore(database, SECRETS.master)) as found:
        for name in ("a", "b", "c"):
            found.create_stream(name, TERMS)
        yield found


def test_pulses_show_what_was_done_and_which_leases_are_free(shared: PostgresStore) -> None:
    assert shared.pulses() == dict.fromkeys("abc", Pulse(0, 0, free=True))
    held = as_leader(shared)
    serial = held.open_round("a", new_round(1))
    assert shared.pulses()["a"] == Pulse(serial, 0, free=False)
    assert shared.pulses()["b"].free


def test_leases_are_renewed_together(shared: PostgresStore, database: Database) -> None:
    leases = [shared.lease(name, "one", 1000) for name in "abc"]
    a, b, c = (lease for lease in leases if lease is not None)
    shared.give_back(b)
    assert shared.lease("b", "two", 1000) is not None
    shared.give_back(c)  # it has expired, and nobody has taken it
    assert shared.renew([a, b, c], 1000) == {a, c}
    assert shared.lease("c", "two", 1000) is None


def test_whoever_loses_a_lease_is_told(shared: PostgresStore) -> None:
    lost: list[str] = []
    keeper = LeaseKeeper(shared, 0.3, lost.append)
    lease = keeper.lease("a")
    assert lease is not None
    shared.give_back(lease)
    assert shared.lease("a", "another", 1000) is not None
    keeper.start()
    eventually(lambda: lost == ["a"])
    keeper.stop()
