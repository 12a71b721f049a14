"""Reports per second that collectors accept durably, on SQLite, PostgreSQL and JetStream.

The first two are measured by benchmarks/scale_ingest.py, the third in the same way.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from tests.jetstream import NatsServer, running_nats

import scale_ingest
from ingest import CONFIG
from ldpstream.collector.store.database import Database
from scaling.load import BATCH, LABELS, pin_of, send_all, signed, singles
from scaling.servers import cpu_seconds

TURNS = 3
SINGLES = 3000
SINGLE_CONNECTIONS = 64


def measure(*, quick: bool) -> list[dict[str, Any]]:
    seconds = 1.0 if quick else 5.0
    stores = [asdict(row) for row in scale_ingest.measure(quick, seconds)]
    for row in stores:
        row |= {"log_us_per_report": None, "single_us_per_report": None}
    logs = [_jetstream(number, seconds, 1 if quick else TURNS) for number in (1, 2)]
    return [*stores, *logs]


def _jetstream(number: int, seconds: float, turns: int) -> dict[str, Any]:
    """Measure collectors on JetStream, without an engine, which is measured by itself."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url, server = stack.enter_context(scale_ingest.postgres(folder / "postgres"))
        nats = stack.enter_context(running_nats(in_memory=False))
        assert nats.process is not None
        write_config(folder, Database(url), nats)
        collectors = [stack.enter_context(scale_ingest.collector(folder)) for _ in range(number)]
        bench = scale_ingest.Bench(collectors, server, BATCH)
        bench.wait()
        rate = bench.turn(40 * BATCH).rate
        reports = max(int(rate * seconds) // BATCH, scale_ingest.CONNECTIONS) * BATCH
        before = cpu_seconds([nats.process.pid])
        done = [bench.turn(reports) for _ in range(turns)]
        log = cpu_seconds([nats.process.pid]) - before
        single = _single(bench, SINGLES * turns)
    row = scale_ingest.Measured(
        "jetstream",
        number,
        BATCH,
        reports,
        round(median(one.rate for one in done)),
        round(median(1e6 * one.collectors / reports for one in done), 2),
        round(median(1e6 * one.database / reports for one in done), 2),
    )
    return asdict(row) | {
        "log_us_per_report": round(1e6 * log / reports / turns, 2),
        "single_us_per_report": round(1e6 * single, 1),
    }


def _single(bench: scale_ingest.Bench, number: int) -> float:
    """Return the collectors' processor seconds for a report in a request of its own."""
    pin = pin_of(bench.collectors[0].url, "standing")
    table = signed("standing", pin, "1-publication", 2, number, bench.first)
    bench.first += number
    requests = singles(table).requests(f"{scale_ingest.ROUND}/reports")
    pids = [one.process.pid for one in bench.collectors]
    before = sum(map(scale_ingest.cpu, pids))
    for place, collector in enumerate(bench.collectors):
        share = iter(requests[place :: len(pids)])
        assert asyncio.run(send_all(collector.port, share, SINGLE_CONNECTIONS))
    return (sum(map(scale_ingest.cpu, pids)) - before) / number


def write_config(folder: Path, database: Database, nats: NatsServer) -> None:
    """Write the configuration of scale_ingest.py, with a log."""
    labels = json.dumps([str(label) for label in range(LABELS)])
    text = CONFIG.format(store=database.url, labels=labels)
    store, line, rest = text.partition("\n\n[[stream]]")
    (folder / "collector.toml").write_text(f'{store}\ningest = "{nats.settings.url}"{line}{rest}')
