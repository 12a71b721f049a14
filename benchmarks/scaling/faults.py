"""Faults: parts are killed with kill -9 during rounds; then what was accepted is counted."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.engines.rounds import LABELS, Logged, a_round, reports, wrong
from tests.engines.sparkling import MASTER as SPARK
from tests.engines.sparkling import Engine, running, write_config
from tests.jetstream import NatsServer
from tests.waiting import eventually

import scale_ingest
from ldpstream.collector.report_log.counts import LogCounts
from ldpstream.collector.report_log.jetstream import JetStreamLog
from ldpstream.collector.store.database import Database
from ldpstream.engines import local
from scaling.ingest_rates import write_config as write_stream
from scaling.load import BATCH, pin_of, signed
from scaling.servers import Servers

EACH = 1000


@dataclass
class Scene:
    """A log that is appended to, and an engine that can be replaced."""

    at: Logged
    nats: NatsServer
    start: Callable[[], Engine]
    engine: Engine


def measure(servers: Servers, times: int, *, spark_times: int) -> list[dict[str, Any]]:
    rows = [
        kill(servers, "local", "engine in one process", times, _restart_engine),
        kill(servers, "local", "nats-server", times, _restart_nats),
        kill_collector(servers, times),
    ]
    if spark_times:
        rows += [
            kill(servers, "spark", "Spark executor", spark_times, _kill_executor),
            kill(servers, "spark", "Spark driver", spark_times, _restart_engine),
        ]
    return rows


def kill(
    servers: Servers, kind: str, what: str, times: int, strike: Callable[[Scene], None]
) -> dict[str, Any]:
    """Run a round; before each kill and after the last, send reports, half of them twice."""
    stream = what.lower().replace(" ", "-")
    with _scene(servers, kind, stream) as scene:
        wanted = a_round(stream)
        accepted = []
        for number in range(times + 1):
            for part in range(4):
                first = (4 * number + part) * EACH
                accepted.append(reports(EACH, seed=first, devices=first))
                scene.at.log.append(wanted, accepted[-1])
                if part % 2:
                    scene.at.log.append(wanted, accepted[-1])
            if number < times:
                strike(scene)
        scene.at.log.end(wanted)
        eventually(lambda: _final(scene.at, wanted.name), "the round is counted")
        tally = scene.at.counts.tally(stream, wanted.name)
        assert tally is not None
        return _row(what, times, sum(map(len, accepted)), tally.outcome.support.reports) | {
            "exact": not wrong(tally, *accepted)
        }


def _row(what: str, times: int, accepted: int, counted: int) -> dict[str, Any]:
    return {
        "killed": what,
        "times": times,
        "accepted": accepted,
        "lost": max(0, accepted - counted),
        "counted_twice": max(0, counted - accepted),
    }


@contextmanager
def _scene(servers: Servers, kind: str, stream: str) -> Iterator[Scene]:
    with ExitStack() as opening:
        database = opening.enter_context(servers.database())
        log = opening.enter_context(closing(JetStreamLog(servers.nats.settings)))
        counts = opening.enter_context(closing(LogCounts(database)))
        folder = servers.folder / stream
        folder.mkdir()
        file = write_config(folder / "c.toml", database, servers.nats, stream, LABELS)
        words = [kind, "--config", str(file)]
        if kind == "spark":
            words += ["--master", SPARK, "--checkpoint", str(folder / "checkpoint")]

        def start() -> Engine:
            return opening.enter_context(running(folder, *words))

        yield Scene(Logged(log, counts, stream), servers.nats, start, start())


def _restart_engine(scene: Scene) -> None:
    """Kill the engine, while it counts if it has not counted all, and start another one."""
    scene.engine.kill()
    scene.engine = scene.start()


def _restart_nats(scene: Scene) -> None:
    scene.nats.kill()
    scene.nats.start()


def _kill_executor(scene: Scene) -> None:
    scene.engine.kill_executor()
    time.sleep(1)


def _final(at: Logged, name: str) -> bool:
    tally = at.counts.tally(at.stream, name)
    return tally is not None and tally.ended is not None


def kill_collector(servers: Servers, times: int) -> dict[str, Any]:
    """Send batches over HTTP in sequence; what is not answered goes to the next collector."""
    folder = servers.folder / "collector"
    folder.mkdir()
    with servers.database() as database:
        write_stream(folder, database, servers.nats)
        unanswered: list[bytes] = []
        sent = 0
        for life in range(times + 1):
            last = life == times
            with scale_ingest.collector(folder) as collector:
                pin = pin_of(collector.url, "standing")
                if not last:
                    _post(collector.port, _batch(pin, 0))  # until the round is open
                    threading.Timer(1.0, collector.process.kill).start()
                try:
                    for _ in range(5 if last else 10_000):
                        if not unanswered:
                            unanswered = [_batch(pin, sent := sent + 1)]
                        _post(collector.port, unanswered[0])
                        unanswered = []
                except (OSError, http.client.HTTPException):
                    pass
        return _counted_in_the_end(servers, database, times, (sent + 1) * BATCH)


def _batch(pin: str, number: int) -> bytes:
    table = signed("standing", pin, "1-publication", 2, BATCH, 1 + number * BATCH)
    return bytes(table.tobytes())


def _counted_in_the_end(
    servers: Servers, database: Database, times: int, accepted: int
) -> dict[str, Any]:
    stream = "standing"
    with (
        closing(JetStreamLog(servers.nats.settings)) as log,
        closing(LogCounts(database)) as counts,
    ):
        at = Logged(log, counts, stream)
        wanted = next(log.read(stream, 0, 1)).message.round
        log.end(wanted)
        while local.advance(log, counts, stream):
            pass
        tally = counts.tally(stream, wanted.name)
        assert _final(at, wanted.name)
        assert tally is not None
        counted = tally.outcome.support.reports
    return _row("collector", times, accepted, counted) | {"exact": counted == accepted}


def _post(port: int, body: bytes) -> int:
    """Wait until the round is open; return how many of a batch were accepted."""
    path = f"{scale_ingest.ROUND}/batch"
    while True:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("POST", path, body)
            answer = connection.getresponse()
            content = json.loads(answer.read())
            if answer.status == 200:
                return int(content["accepted"])
            time.sleep(0.1)
