"""Several real collectors on one real PostgreSQL: killed and stopped in every state."""

from __future__ import annotations

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from ldpstream.collector.rounds.selection import Asked
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.connections import connect
from ldpstream.collector.store.postgres.store import PostgresStore
from tests.collector.group import Collector, Crowd, group_of
from tests.collector.helpers import SECRETS, device_of
from tests.waiting import eventually

LEASE_SECONDS = 1
GRACE_SECONDS = 2
"""A generous allowance, for a machine that is busy with other work."""
DEVICES = 24
CONFIG = """\
[collector]
listen = "127.0.0.1:0"
store = "{url}"
lease = "{lease}s"

[[stream]]
name = "a"
labels = ["x", "y", "z"]
epsilon = 1
window = 4
interval = "{interval}ms"
mechanism = "{mechanism}"
oracle = "grr"
selection = "roster"
population = {devices}
"""
POINTS = [
    (point, when)
    for point in ("open_round", "close_round", "tally", "release")
    for when in ("before", "after")
]


def config_file(
    folder: Path, database: Database, mechanism: str = "lpa", interval_ms: int = 400
) -> Path:
    file = folder / "collector.toml"
    file.write_text(
        CONFIG.format(
            url=database.url,
            lease=LEASE_SECONDS,
            interval=interval_ms,
            mechanism=mechanism,
            devices=DEVICES,
        )
    )
    return file


def holder(connection: psycopg.Connection) -> tuple[int, float]:
    """The token of the lease, and the time by the server's clock."""
    row = connection.execute(
        "SELECT token, extract(epoch FROM clock_timestamp())::float8 FROM lease"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def taken_over(connection: psycopg.Connection, token: int, since: float) -> float:
    """Wait until another collector has the lease; return the seconds that took."""
    at: float = eventually(lambda: _later(connection, token), "another takes over")
    return at - since


def is_in(collector: Collector, state: str) -> bool:
    return collector.state == state


def follows(collector: Collector, connection: psycopg.Connection, theirs: int) -> bool:
    """Return whether it has given up its old lease: it follows, or has taken a later one by now."""
    return not collector.leads or holder(connection)[0] > theirs


def _later(connection: psycopg.Connection, token: int) -> float:
    now, at = holder(connection)
    return at if now > token else 0.0


def test_a_coordinator_that_is_killed_in_any_state_is_replaced(
    tmp_path: Path, database: Database
) -> None:
    """Each leader is killed at another point, and a new collector starts; devices use all."""
    file = config_file(tmp_path, database)
    with group_of(file, 3) as group, closing(PostgresStore(database, SECRETS.master)) as store:
        crowd = Crowd(group, store, DEVICES)
        crowd.enrol()
        with crowd, connect(database) as connection:
            for point, when in POINTS:
                leader = group.leader
                token, _ = holder(connection)
                leader.order(point, when, signal.SIGKILL)
                eventually(partial(is_in, leader, "X"), "it dies")
                _, died = holder(connection)
                with ThreadPoolExecutor(1) as pool:
                    replacement = pool.submit(group.start)
                    seconds = taken_over(connection, token, died)
                    assert seconds < 2 * LEASE_SECONDS + GRACE_SECONDS, (point, when)
                    crowd.goes_on()
                    replacement.result()
    with closing(PostgresStore(database, SECRETS.master)) as store:
        crowd.store = store
        assert sum(not one.missed for one in crowd.judge()) > len(POINTS)


def test_a_coordinator_that_wakes_up_cannot_change_anything(
    tmp_path: Path, database: Database
) -> None:
    """Stopped just before a change, it still believes in its lease; the store refuses it.

    Each timestamp has one round here, so that one opened late would be of a timestamp that others
    have released as missed.
    """
    file = config_file(tmp_path, database, mechanism="lpu")
    with group_of(file, 2) as group, closing(PostgresStore(database, SECRETS.master)) as store:
        crowd = Crowd(group, store, DEVICES)
        crowd.enrol()
        with crowd, connect(database) as connection:
            for point, when in POINTS[::2]:
                leader = group.leader
                token, _ = holder(connection)
                leader.order(point, when, signal.SIGSTOP)
                eventually(partial(is_in, leader, "T"), "it stops")
                _, stopped = holder(connection)
                seconds = taken_over(connection, token, stopped)
                assert seconds < 2 * LEASE_SECONDS + GRACE_SECONDS, (point, when)
                crowd.goes_on()
                theirs, _ = holder(connection)
                leader.signal(signal.SIGCONT)
                eventually(partial(follows, leader, connection, theirs), "it follows")
        crowd.judge()


def test_every_collector_serves_the_stream(tmp_path: Path, database: Database) -> None:
    """Long polls, feeds, status and page work at followers, with hardly any delay."""
    file = config_file(tmp_path, database, interval_ms=1500)
    with group_of(file, 3) as group, closing(PostgresStore(database, SECRETS.master)) as store:
        crowd = Crowd(group, store, DEVICES)
        crowd.enrol()
        leader = group.leader
        assert [one.leads for one in group.collectors].count(True) == 1
        heard: dict[int, dict[int, float]] = {one.port: {} for one in group.collectors}
        events: dict[int, list[dict[str, Any]]] = {}
        listening = [
            threading.Thread(target=work, args=(one, record[one.port] if record else events))
            for one in group.collectors
            for work, record in ((poll, heard), (feed, None))
        ]
        with crowd:
            for thread in listening:
                thread.start()
            for thread in listening:
                thread.join()
        crowd.judge()
        rounds = [
            replace(one, asked=crowd.asked[one.name].asked)  # as it was before it was forgotten
            for one in store.rounds("a", 0)
            if one.name in crowd.asked
        ]
        told = [one.call("GET", "/v1/streams/a/status")[1] for one in group.collectors]
        assert len({one["stream"] for one in told}) == 1
        assert [len(one.page()) for one in group.collectors] == [len(leader.page())] * 3
        leader.signal(signal.SIGTERM)  # gives the lease back: nobody has to wait for its end
        eventually(partial(is_in, leader, "X"), "it ends")
        assert group.leader is not leader
    # Every collector tells of the same releases, and of every change of the rounds.
    first, *others = events.values()
    assert first == others[0] == others[1]
    assert len(first) == FEED
    late = [
        max(times[serial] - heard[leader.port][serial] for times in heard.values())
        for serial in heard[leader.port]
        if all(serial in times for times in heard.values())
    ]
    assert len(late) >= SERIALS / 2
    assert median(late) < 0.2
    # All had answered, at any collector, so nobody waited for the deadlines.
    early = [
        one.closed_ms < one.deadline_ms
        for one in rounds
        if one.closed_ms and one.support and one.support.reports == len(Asked.of(one))
    ]
    assert early.count(True) > len(early) / 2


SERIALS = 8
FEED = 3


def poll(collector: Collector, times: dict[int, float]) -> None:
    """Record when a device that polls for the next serial first sees each."""
    serial = 0
    while len(times) < SERIALS:
        path = f"/v1/streams/a/rounds?after={serial}&wait=4"
        told = collector.call("GET", path, Ldp_Device=device_of(1).hex())[1]
        if told["serial"] > serial:
            serial = told["serial"]
            times[serial] = time.monotonic()


def feed(collector: Collector, events: dict[int, list[dict[str, Any]]]) -> None:
    """Record the first releases of a feed."""
    with collector.reading("/v1/streams/a/feed", Last_Event_ID="0") as lines:
        data = (line for line in lines if line.startswith(b"data: "))
        events[collector.port] = [json.loads(next(data)[6:]) for _ in range(FEED)]
