"""Measure reports per second accepted durably: one collector on SQLite, one and two on PostgreSQL.

    .venv/bin/python benchmarks/scale_ingest.py [--quick] [--json] [--batch N] [--seconds S]

Also: what the PostgreSQL store accepts by itself, without HTTP and MACs.

Starts real collectors (`ldpstream serve`) on a store on disk, fully synchronous, and for PostgreSQL
a real server from the wheel `pgserver` with its default settings. Signed GRR reports come over
loopback from this process, in batches, to all collectors alike. A report is counted when its batch
was answered, which is after its commit. Warm-up is one uncounted run in each setting.

Collectors, database and sender share the cores of one machine. So wall-clock rates come with the
microseconds of processor time per report, of the collectors and of the database: these say how many
cores a load needs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from ingest import CONFIG, LABELS, MASTER, batches, pin_of, send_all, signed

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serving import CollectorProcess

TURNS = 3
CONNECTIONS = 16
"""The total, however many collectors there are."""
ROUND = "/v1/streams/standing/rounds/1-publication"


@dataclass(frozen=True)
class Measured:
    """One setting; figures are medians over the turns."""

    store: str
    collectors: int
    batch: int
    reports: int
    """Reports in each turn."""
    reports_per_second: int
    collector_us_per_report: float
    database_us_per_report: float | None
    """None for SQLite, which is a part of the collector."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short turn of each setting")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--batch", type=int, default=1000, help="reports in a request")
    parser.add_argument("--seconds", type=float, help="of each turn")
    options = parser.parse_args()
    rows = measure(options.quick, options.seconds, options.batch)
    alone = measure_store(10 if options.quick else 50)
    if options.json:
        print(json.dumps({"ingest": [asdict(row) for row in rows], "store": asdict(alone)}))
        return
    for row in rows:
        database = "" if row.database_us_per_report is None else row.database_us_per_report
        print(
            f"{row.store:10} {row.collectors} collector(s) {row.reports_per_second:9,} reports/s,"
            f" {row.collector_us_per_report:5} us/report in collectors, {database} in the database"
        )
    print(
        f"PostgreSQL store alone, batches of {alone.batch}: {alone.fresh_per_second:,} fresh,"
        f" {alone.repeated_per_second:,} repeated, {alone.read_per_second:,} read a second"
    )


def measure(quick: bool, seconds: float | None = None, batch: int = 1000) -> list[Measured]:
    """Measure all settings, one after the other."""
    aim = seconds or (1.0 if quick else 5.0)
    return [
        measure_one(store, number, aim, batch, 1 if quick else TURNS)
        for store, number in (("sqlite", 1), ("postgresql", 1), ("postgresql", 2))
    ]


def measure_one(store: str, number: int, seconds: float, batch: int, turns: int) -> Measured:
    """Measure `turns` turns of about `seconds` each, with `number` collectors."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url, server = str(folder / "collector.sqlite"), None
        if store == "postgresql":
            url, server = stack.enter_context(postgres(folder / "postgres"))
        labels = json.dumps([str(label) for label in range(LABELS)])
        (folder / "collector.toml").write_text(CONFIG.format(store=url, labels=labels))
        collectors = [stack.enter_context(collector(folder)) for _ in range(number)]
        bench = Bench(collectors, server, batch)
        bench.wait()
        rate = bench.turn(40 * batch).rate
        reports = max(int(rate * seconds) // batch, CONNECTIONS) * batch
        done = [bench.turn(reports) for _ in range(turns)]
    return Measured(
        store,
        number,
        batch,
        reports,
        round(median(one.rate for one in done)),
        round(median(1e6 * one.collectors / reports for one in done), 2),
        None if server is None else round(median(1e6 * one.database / reports for one in done), 2),
    )


@contextmanager
def postgres(folder: Path) -> Iterator[tuple[str, int]]:
    """Start a server on disk; yield its address and the id of its first process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgserver.postgres_server import get_server
    server = get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri(), server.get_postmaster_info().pid
    finally:
        server.cleanup()


def collector(folder: Path) -> CollectorProcess:
    """A collector of the configuration in a folder, to be started."""
    secret = {"LDPSTREAM_MASTER_SECRET": MASTER.decode()}
    return CollectorProcess(folder / "collector.toml", secret)


@dataclass(frozen=True)
class StoreAlone:
    """PostgreSQL without HTTP and MACs: one process, batch after batch."""

    batch: int
    fresh_per_second: int
    """Reports whose devices have not reported before."""
    repeated_per_second: int
    """The same reports, sent again."""
    read_per_second: int
    """Reports read back, to be counted."""


def measure_store(batches: int = 50, batch: int = 10_000) -> StoreAlone:
    """What the store itself takes, on disk and fully synchronous."""
    from ldpstream.collector.reports.records import Records
    from ldpstream.collector.store.contract import NewRound
    from ldpstream.collector.store.database import Database
    from ldpstream.collector.store.postgres.store import PostgresStore

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url, _ = stack.enter_context(postgres(folder / "postgres"))
        store = stack.enter_context(
            closing(PostgresStore(Database(url), b"master secret of the benchmark"))
        )
        store.create_stream("a", {})
        lease = store.lease("a", "me", 3600)
        assert lease is not None
        held = store.under(lease)
        held.open_round("a", NewRound(1, "1-x", "x", 1, 1, (1, 1), 10, 0, 0, 0, None))
        random = np.random.default_rng(1)
        parts = [
            Records(random.integers(0, 256, (batch, 42), np.uint8)) for _ in range(batches + 1)
        ]
        for again in range(2):  # warm-up of both ways
            assert (store.accept("a", "1-x", parts[-1]) == again).all()
        took = []
        for verdict in (0, 1):
            start = time.perf_counter()
            for part in parts[:-1]:
                assert (store.accept("a", "1-x", part) == verdict).all()
            took.append(time.perf_counter() - start)
        held.close_round("a", "1-x", 1)
        start = time.perf_counter()
        assert sum(map(len, store.reports("a", "1-x"))) == (batches + 1) * batch
        took.append(time.perf_counter() - start)
    return StoreAlone(batch, *(round(batches * batch / seconds) for seconds in took))


@dataclass(frozen=True)
class Turn:
    """Reports per second, and seconds of processor time."""

    rate: float
    collectors: float
    database: float


@dataclass
class Bench:
    """A benchmark of collectors under load."""

    collectors: list[CollectorProcess]
    database: int | None
    batch: int
    first: int = field(default=1)
    """The first device that has not reported yet."""

    def wait(self) -> None:
        """Until every collector knows the round."""
        for one in self.collectors:
            url = f"{one.url}/v1/streams/standing/rounds?after=0&wait=30"
            with urllib.request.urlopen(url) as answer:
                assert json.load(answer)["rounds"]

    def turn(self, number: int) -> Turn:
        pin = pin_of(self.collectors[0].url, "standing")
        table = signed("standing", pin, "1-publication", 2, number, self.first)
        self.first += number
        requests = batches(table, self.batch).requests(f"{ROUND}/batch")
        shares = [requests[place :: len(self.collectors)] for place in range(len(self.collectors))]
        before, start = self._cpu(), time.perf_counter()
        answers = asyncio.run(self._send(shares))
        wall, after = time.perf_counter() - start, self._cpu()
        accepted = sum(json.loads(one)["accepted"] for one in answers)
        assert accepted == number, (accepted, number)
        return Turn(number / wall, after[0] - before[0], after[1] - before[1])

    async def _send(self, shares: list[list[bytes]]) -> list[bytes]:
        each = CONNECTIONS // len(shares)
        sending = [
            send_all(one.port, iter(share), each)
            for one, share in zip(self.collectors, shares, strict=True)
        ]
        return [answer for part in await asyncio.gather(*sending) for answer in part]

    def _cpu(self) -> tuple[float, float]:
        """Seconds that collectors and database have run, by the scheduler's count."""
        collectors = sum(cpu(one.process.pid) for one in self.collectors)
        database = 0.0 if self.database is None else sum(map(cpu, children(self.database)))
        return collectors, database


def cpu(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


if __name__ == "__main__":
    main()
