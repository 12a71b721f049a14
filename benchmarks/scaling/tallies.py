"""The time from a round's deadline to its tally, in one process and on Spark, after a burst.

This is the worst case: all reports of the round come right before the deadline, as fast as one
process can append them, so that an engine has had little time to count ahead.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
from tests.engines.sparkling import MASTER, Engine, family_of, running, write_config
from tests.waiting import eventually

from ldpstream.collector.report_log.counts import LogCounts, LogTally
from ldpstream.collector.report_log.jetstream import JetStreamLog
from ldpstream.collector.report_log.messages import LoggedRound
from ldpstream.collector.reports.records import Records
from ldpstream.collector.store.database import Database
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.limits import HEAD_BYTES
from scaling.servers import Servers, cpu_seconds, memory_mb

LABELS = 128
COLLECTOR = Oracle.OLH.collector(LABELS, Epsilon.of(1))
CHUNK = 500_000


def measure(servers: Servers, engine: str, sizes: list[int]) -> list[dict[str, Any]]:
    """Return a row for each size, from one engine process, after a small round to warm up."""
    stream = f"tally-{engine}"
    with ExitStack() as opening:
        database: Database = opening.enter_context(servers.database())
        log = opening.enter_context(closing(JetStreamLog(servers.nats.settings)))
        counts = opening.enter_context(closing(LogCounts(database)))
        folder = servers.folder / stream
        folder.mkdir()
        file = write_config(folder / "c.toml", database, servers.nats, stream, LABELS)
        process = opening.enter_context(running(folder, *_words(engine, file, folder)))
        rows = [
            _round(log, counts, process, _logged(stream, t), size)
            for t, size in enumerate([20_000, *sizes], 1)
        ]
    return [{"engine": engine} | row for row in rows[1:]]


def _words(engine: str, file: Path, folder: Path) -> list[str]:
    words = [engine, "--config", str(file)]
    if engine == "spark":
        words += ["--master", MASTER, "--checkpoint", str(folder / "checkpoint")]
    return words


def _logged(stream: str, t: int) -> LoggedRound:
    report_bytes = COLLECTOR.device.report_bytes
    return LoggedRound(stream, f"{t}-publication", "olh", LABELS, 10**9, report_bytes)


def _round(
    log: JetStreamLog, counts: LogCounts, engine: Engine, wanted: LoggedRound, size: int
) -> dict[str, Any]:
    appending = 0.0
    before = log.extent(wanted.stream).bytes
    cpu = cpu_seconds(family_of(engine.process.pid))
    for records in _chunks(size):
        start = time.perf_counter()
        log.append(wanted, records)
        appending += time.perf_counter() - start
    log.end(wanted)
    deadline = time.perf_counter()

    def tally() -> LogTally | None:
        return counts.tally(wanted.stream, wanted.name)

    eventually(lambda: (found := tally()) is not None and found.ended is not None, "a tally", 1800)
    seconds = time.perf_counter() - deadline
    found = tally()
    assert found is not None
    assert found.outcome.support.reports == size, found.outcome.support.reports
    members = family_of(engine.process.pid)
    return {
        "reports": size,
        "seconds_from_deadline": round(seconds, 2),
        "cpu_microseconds_per_report": round((cpu_seconds(members) - cpu) / size * 1e6, 2),
        "memory_mb": memory_mb(members),
        "appended_per_second": round(size / appending),
        "log_bytes_per_report": round((log.extent(wanted.stream).bytes - before) / size, 1),
    }


def _chunks(size: int) -> Iterator[Records]:
    """Yield well-formed reports of devices 0 .. size - 1."""
    source = np.random.default_rng(size)
    for first in range(0, size, CHUNK):
        number = min(CHUNK, size - first)
        width = HEAD_BYTES + COLLECTOR.device.report_bytes
        table = source.integers(0, 256, (number, width), dtype=np.uint8)
        devices = np.zeros((number, 2), ">u8")
        devices[:, 1] = np.arange(first, first + number)
        table[:, :16] = devices.view(np.uint8).reshape(number, 16)
        table[:, HEAD_BYTES] = 1
        table[:, -1] %= COLLECTOR.device.buckets  # type: ignore[attr-defined]
        yield Records(table)
