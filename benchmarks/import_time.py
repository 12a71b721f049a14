"""Measure how long an import takes in a fresh interpreter, beyond the interpreter's own start.

    .venv/bin/python benchmarks/import_time.py [--runs N] [--json] [MODULE ...]

The best of N runs, taken in turns so that a busy moment of the machine hits all modules alike.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

MODULES = ("ldpstream", "ldpstream.device", "ldpstream.oracles.collector_half", "ldpstream.cli")
HEAVY = ("numpy", "numba", "matplotlib")


@dataclass(frozen=True)
class Row:
    """One module: its import time, and which heavy packages it loads."""

    module: str
    milliseconds: float
    loads: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=MODULES, metavar="MODULE")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    rows = measure(options.modules, options.runs)
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(f"{'module':36} {'import, ms':>10}  loads")
    for row in rows:
        print(f"{row.module:36} {row.milliseconds:10.1f}  {' '.join(row.loads) or '-'}")


def measure(modules: Sequence[str], runs: int) -> list[Row]:
    best = dict.fromkeys(("", *modules), float("inf"))
    for _ in range(runs):
        for module in best:
            best[module] = min(best[module], seconds(module))
    return [
        Row(module, round((best[module] - best[""]) * 1000, 1), heavy_parts(module))
        for module in modules
    ]


def seconds(module: str) -> float:
    """Return the run time of an interpreter that imports `module`, or nothing."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module or 'sys'}"], check=True)
    return time.perf_counter() - start


def heavy_parts(module: str) -> list[str]:
    program = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return [part for part in HEAVY if part in run.stdout.split()]


if __name__ == "__main__":
    main()
