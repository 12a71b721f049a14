"""Measure how fast simulation is, what the accountant costs, and what ten million users need.

    .venv/bin/python benchmarks/simulation.py [--quick] [--json] [--write]

Times are the best of several runs, after imports and one warm-up run. The accountant's share is
measured in this one process: runs with it and runs without it, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ldpstream.lab.simulation import simulate
from ldpstream.mechanisms.registry import PAPER
from ldpstream.privacy.accountant import Accountant
from ldpstream.streams.stream import ShuffledUsers, Stream
from ldpstream.streams.synthetic import sin

COMMAND = ".venv/bin/python benchmarks/simulation.py --write"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-simulation.md"

GOAL_SECONDS = 2.0
GOAL_SHARE = 0.10
GOAL_GIGABYTES = 4.0


@dataclass(frozen=True)
class Speed:
    """The time of one mechanism on Sin, and the accountant's share of it."""

    mechanism: str
    milliseconds: float
    without_accountant: float

    @property
    def share(self) -> float:
        return 1 - self.without_accountant / self.milliseconds


@dataclass(frozen=True)
class Size:
    """The time and memory of a large fleet, in a process of its own."""

    users: int
    timestamps: int
    seconds: float
    gigabytes: float


@dataclass(frozen=True)
class Result:
    """Everything that was measured."""

    users: int
    timestamps: int
    runs: int
    speeds: list[Speed]
    large: Size

    @property
    def seconds(self) -> float:
        return sum(speed.milliseconds for speed in self.speeds) / 1000

    @property
    def share(self) -> float:
        return 1 - sum(s.without_accountant for s in self.speeds) / 1000 / self.seconds

    @property
    def goals(self) -> dict[str, bool]:
        """Return each goal, and whether it is reached."""
        return {
            f"together under {GOAL_SECONDS:.0f} s": self.seconds < GOAL_SECONDS,
            f"the accountant under {GOAL_SHARE:.0%}": self.share < GOAL_SHARE,
            f"the large fleet inside {GOAL_GIGABYTES:.0f} GB": self.large.gigabytes
            < GOAL_GIGABYTES,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes, to see that it runs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--large", nargs=2, type=int, metavar=("N", "T"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.large:
        print(json.dumps(asdict(run_large(*options.large))))
        return

    result = measure(quick=options.quick)
    if options.json:
        total = {"seconds": result.seconds, "accountant": result.share, "goals": result.goals}
        print(json.dumps(asdict(result) | total))
    else:
        print(page(result))
    if options.write:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(result))


def measure(*, quick: bool) -> Result:
    stream = sin(users=20_000, timestamps=100) if quick else sin()
    large = (1_000_000, 40) if quick else (10_000_000, 100)
    runs = 3 if quick else 9
    speeds = [speed_of(name, stream, runs) for name in PAPER]
    return Result(stream.users, stream.timestamps, runs, speeds, in_a_process(*large))


def speed_of(name: str, stream: Stream, runs: int) -> Speed:
    def once() -> float:
        return seconds(
            lambda: simulate(stream, name, epsilon=1, window=20, oracle="grr", variance="paper")
        )

    once()
    best = best_without = float("inf")
    for _ in range(runs):
        best = min(best, once())
        with no_accountant():
            best_without = min(best_without, once())
    return Speed(name, best * 1000, best_without * 1000)


@contextmanager
def no_accountant() -> Iterator[None]:
    """Turn the accountant off in this block: nothing is charged or checked."""
    charge = Accountant.charge
    Accountant.charge = lambda *_: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        Accountant.charge = charge  # type: ignore[method-assign]


def in_a_process(users: int, timestamps: int) -> Size:
    """Call `run_large` in a fresh process, where nothing else has used memory before."""
    program = [sys.executable, __file__, "--large", str(users), str(timestamps)]
    run = subprocess.run(program, check=True, capture_output=True, text=True)
    return Size(**json.loads(run.stdout))


def run_large(users: int, timestamps: int) -> Size:
    stream = ShuffledUsers(sin(users=users, timestamps=timestamps))
    spent = seconds(lambda: simulate(stream, "lpa", epsilon=1, window=20, oracle="grr"))
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Size(users, timestamps, spent, kilobytes * 1024 / 1e9)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def page(result: Result) -> str:
    large = result.large
    rows = "\n".join(
        f"| {s.mechanism} | {s.milliseconds:.0f} | {s.without_accountant:.0f} | {s.share:.1%} |"
        for s in result.speeds
    )
    goals = "; ".join(f"{goal}: {'yes' if yes else 'NO'}" for goal, yes in result.goals.items())
    return f"""# Simulation: speed and size

Made by `{COMMAND}` on {os.cpu_count()} cores ({platform.machine()}, Python \
{platform.python_version()}).

The seven mechanisms on Sin, N={result.users:,}, T={result.timestamps}, epsilon 1, w=20, GRR: one
run of each after imports and a warm-up, best of {result.runs}, with the accountant and, in turns
with that, without it.

| mechanism | ms | without accountant | its share |
|---|---|---|---|
{rows}
| together | {result.seconds * 1000:.0f} | \
{result.seconds * 1000 * (1 - result.share):.0f} | {result.share:.1%} |

LPA on per-user data, N={large.users:,}, T={large.timestamps}, w=20, everyone's value dealt anew at
each timestamp: {large.seconds:.0f} s, peak {large.gigabytes:.2f} GB.

Goals: {goals}.
"""


if __name__ == "__main__":
    main()
