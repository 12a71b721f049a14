"""Measure how fast a file of events becomes a stream, and how much memory that takes.

    .venv/bin/python benchmarks/datafile.py [--rows N] [--users N] [--kind csv|parquet] [--json]

Writes a file of N rows (a user, an ISO time, a place) into a temporary folder and reads it as
`--data` does, each in its own process. Shows the peak memory of the reading process: the total and
its private part. The rest is pages of the file, which the system can reclaim at any time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROWS_A_USER = 20
BLOCK = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, help=f"by default one in {ROWS_A_USER} rows")
    parser.add_argument("--kind", choices=("csv", "parquet"), default="csv")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--step", choices=("write", "read"), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    users = options.users or max(2, options.rows // ROWS_A_USER)
    if options.step == "write":
        write(options.file, options.rows, users)
    elif options.step == "read":
        print(json.dumps(read(options.file)))
    else:
        show(measure(options.rows, users, options.kind), as_json=options.json)


def measure(rows: int, users: int, kind: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"events.{kind}"
        run("write", file, "--rows", str(rows), "--users", str(users))
        row = json.loads(run("read", file, LDPSTREAM_HOME=folder))
        megabytes = file.stat().st_size / 1e6
    speed = {"rows_per_second": round(rows / row["seconds"]), "file_mb": round(megabytes)}
    return {"kind": kind, "rows": rows, **row, **speed}


def run(step: str, file: Path, *options: str, **environment: str) -> str:
    command = [sys.executable, __file__, "--step", step, "--file", str(file), *options]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    return done.stdout


def write(file: Path, rows: int, users: int) -> None:
    """Write rows in order of time, like a log: a day of places, the first ones more frequent."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(1)

    def block(first: int) -> pl.DataFrame:
        size = min(BLOCK, rows - first)
        seconds = np.sort(rng.integers(0, 86_400_000_000 * size // rows + 1, size))
        start = 1_700_000_000_000_000 + 86_400_000_000 * first // rows
        return pl.DataFrame(
            {
                "device": rng.integers(0, users, size),
                "when": pl.Series(start + seconds).cast(pl.Datetime("us")),
                "place": rng.zipf(1.3, size) % 500,
            }
        ).with_columns(pl.format("place-{}", "place").alias("place"))

    if file.suffix == ".csv":
        with file.open("wb") as out:
            for first in range(0, rows, BLOCK):
                block(first).write_csv(out, include_header=not first)
    else:
        pl.concat(block(first) for first in range(0, rows, BLOCK)).write_parquet(file)


def read(file: Path) -> dict[str, object]:
    from ldpstream.streams.longform import read_events

    own = OwnMemory()
    own.start()
    start, busy = time.perf_counter(), time.process_time()
    stream = read_events(
        file, user="device", time="when", value="place", every="10min", labels="top:20"
    )
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "users": stream.users,
        "timestamps": stream.timestamps,
        "labels": len(stream.domain),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(busy, 2),
        "peak_mb": round(peak),
        "own_peak_mb": own.stop(),
    }


class OwnMemory(threading.Thread):
    """A thread that watches the process's private memory, without files (Linux; 0 elsewhere)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._done = threading.Event()
        self._peak = 0

    def run(self) -> None:
        status = Path("/proc/self/status")
        while status.exists() and not self._done.wait(0.02):
            line = next(row for row in status.read_text().splitlines() if row[:7] == "RssAnon")
            self._peak = max(self._peak, int(line.split()[1]))

    def stop(self) -> int:
        self._done.set()
        self.join()
        return round(self._peak / 1024)


def show(row: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(row))
        return
    for name, figure in row.items():
        print(f"{name:16} {figure}")


if __name__ == "__main__":
    main()
