"""Measure one collector that runs many streams, at an interval of a minute, on SQLite.

    .venv/bin/python benchmarks/streams.py [--streams 1 100 1000] [--minutes M] [--json] [--write]

Starts a real collector (`ldpstream serve`) for so many streams of LPF with slots, all of which
begin at the same instant, so that all of their rounds end at the same instant, too: nothing is
worse for a scheduler. In every minute each stream gets a batch of signed reports over loopback.
The lag of a release is the time from the deadline of its round to the moment it was made, by the
store. With --followed a second collector follows all of the streams on a shared PostgreSQL.

Processor seconds are those of the collector's process in a minute: on a machine that others use,
too, they tell more than the lag does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serving import CollectorProcess, stream_table

from ingest import LABELS, batches, send_all, signed
from ldpstream.protocol.strata import round_name
from ldpstream.sqlite_files import reading
from scale_ingest import collector, postgres
from scaling.servers import cpu_seconds, memory_mb

INTERVAL = 60
DEADLINE = 0.9
REPORTS = 100
"""Reports of each stream in a minute."""
CONNECTIONS = 8
LEAD_SECONDS = 30
"""From the start of the process to the first timestamp, and a second for every 25 streams."""
PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
MARKS = "<!-- benchmarks/streams.py: begin -->", "<!-- benchmarks/streams.py: end -->"


@dataclass(frozen=True)
class Measured:
    """What came of a number of streams."""

    streams: int
    store: str
    minutes: int
    releases: int
    reports: int
    lag_p50_seconds: float
    lag_p99_seconds: float
    lag_worst_seconds: float
    cpu_seconds_per_minute: float
    follower_cpu_seconds_per_minute: float | None
    memory_mb: int
    start_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--minutes", type=int, default=3, help="timestamps of each measurement")
    parser.add_argument("--followed", action="store_true", help="on PostgreSQL, with a follower")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into docs/scale.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [measure(number, options.minutes, options.followed) for number in options.streams]
    if options.write:
        PAGE.write_text(page_with(PAGE.read_text(), rows, load, options.followed))
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print(table(rows))


def measure(streams: int, minutes: int, followed: bool) -> Measured:
    """Run a collector of so many streams for so many timestamps."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = str(folder / "collector.sqlite")
        if followed:
            store, _ = stack.enter_context(postgres(folder / "postgres"))
        start = datetime.now(UTC) + timedelta(seconds=LEAD_SECONDS + streams / 25)
        names = [f"s{number:04}" for number in range(streams)]
        tables = [stream_table(name, start, **_settings()) for name in names]
        head = f'[collector]\nlisten = "127.0.0.1:0"\nstore = "{store}"\n'
        (folder / "collector.toml").write_text(head + "\n".join(tables))
        began = time.monotonic()
        leader = stack.enter_context(collector(folder))
        took = time.monotonic() - began
        others = [stack.enter_context(collector(folder))] if followed else []
        load = Load(leader, names)
        wait_until(start)
        pids = [leader.process.pid], [one.process.pid for one in others]
        before = [cpu_seconds(one) for one in pids]
        for t in range(1, minutes + 1):
            wait_until(start + timedelta(seconds=INTERVAL * (t - 1) + 2))
            load.send(t)
        wait_until(start + timedelta(seconds=INTERVAL * minutes))
        while len(list(lags_of(store, start, minutes))) < minutes * streams:
            time.sleep(1)
        spent = [cpu_seconds(one) - earlier for one, earlier in zip(pids, before, strict=True)]
        memory = memory_mb(pids[0])
        lags = np.array(list(lags_of(store, start, minutes)))

    def lag_at(share: float) -> float:
        return round(float(np.quantile(lags, share)), 2)

    return Measured(
        streams,
        "postgresql" if followed else "sqlite",
        minutes,
        len(lags),
        load.sent,
        lag_at(0.5),
        lag_at(0.99),
        lag_at(1),
        round(spent[0] / minutes, 2),
        round(spent[1] / minutes, 2) if followed else None,
        memory,
        round(took, 1),
    )


def _settings() -> dict[str, object]:
    return {
        "labels": json.dumps([str(label) for label in range(LABELS)]),
        "interval": f'"{INTERVAL}s"',
        "window": 1,  # every device has a turn in every minute
        "mechanism": '"lpf"',
        "selection": '"slots"',
        "population": REPORTS,
        "public": "true",
    }


@dataclass
class Load:
    """Batches of signed reports for all streams of a collector."""

    collector: CollectorProcess
    names: list[str]
    sent: int = 0

    def __post_init__(self) -> None:
        self.pins = {one["stream"]: one["pin"] for one in self.collector.announced["streams"]}

    def send(self, t: int) -> None:
        """Send the reports of one timestamp, one batch for each stream."""
        answers = asyncio.run(send_all(self.collector.port, self._requests(t), CONNECTIONS))
        self.sent += sum(json.loads(answer)["accepted"] for answer in answers)

    def _requests(self, t: int) -> Iterator[bytes]:
        for name in self.names:
            records = signed(name, self.pins[name], round_name(t), 2, REPORTS, 1)
            path = f"/v1/streams/{name}/rounds/{round_name(t)}/batch"
            yield from batches(records, REPORTS).requests(path)


def lags_of(store: str, start: datetime, minutes: int) -> Iterator[float]:
    """Yield the seconds from the deadline to each release."""
    first_ms = start.timestamp() * 1000
    for t, at_ms in select(store, "SELECT t, at_ms FROM release"):
        if t <= minutes:
            yield (at_ms - first_ms) / 1000 - INTERVAL * (t - 1 + DEADLINE)


def select(store: str, statement: str) -> list[tuple[int, ...]]:
    """Ask the store of a collector that is running."""
    if "://" not in store:
        with reading(Path(store)) as connection:
            return connection.execute(statement).fetchall()
    from ldpstream.collector.store.database import Database
    from ldpstream.collector.store.postgres.connections import connect

    with connect(Database(store)) as database:
        return database.execute(statement.encode()).fetchall()


def wait_until(moment: datetime) -> None:
    time.sleep(max((moment - datetime.now(UTC)).total_seconds(), 0))


def table(rows: list[Measured]) -> str:
    """Return the results as a Markdown table."""
    cells = [
        [
            "" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)
            for cell in one
        ]
        for one in (asdict(row).values() for row in rows)
    ]
    head = [name.replace("_", " ") for name in asdict(rows[0])]
    lines = [head, ["---"] * len(head), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page_with(page: str, rows: list[Measured], load: float, followed: bool) -> str:
    """Return the page with this table in the place of the one before."""
    begin, end = (
        mark.replace("streams.py", f"streams.py{' --followed' * followed}") for mark in MARKS
    )
    head, _, rest = page.partition(begin)
    conditions = (
        f"`benchmarks/streams.py{' --followed' * followed} --write`, load {load:.1f} at its start."
    )
    return f"{head}{begin}\n{conditions}\n\n{table(rows)}\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    main()
