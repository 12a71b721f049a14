"""How long a page waits for its revised line, and for its releases alone.

.venv/bin/python benchmarks/revised_page.py [--timestamps N] [--labels N] [--levels N]
        [--folder DIR] [--profile]

A store is filled with tallies of a stream that moves, one round for each level of privacy at each
timestamp. Then a new reader asks for all timestamps with revised figures as JSON, and for the same
without. Timed is the whole answer: releases are read, revised and written.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import StreamConfig, parse
from ldpstream.collector.releases.formats import write
from ldpstream.collector.rounds.loading import terms_of
from ldpstream.collector.rounds.revised import RevisedHistory
from ldpstream.collector.store.contract import NewRound, StoredRelease
from ldpstream.collector.store.names import ReleasedNames
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.oracles import Oracle
from ldpstream.protocol.strata import round_name

START_MS = 1_700_000_000_000
POPULATION = 40_000
TALLY = """
UPDATE round SET state = 'tallied', closed_ms = ?, counts = ?, reports = ?
WHERE stream = (SELECT id FROM stream) AND name = ?
"""


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock and of the processor."""

    wall: float
    processor: float


def config_of(folder: Path, labels: int, levels: int) -> StreamConfig:
    names = ", ".join(f'"{number}"' for number in range(labels))
    more = "".join(
        f'[[stream.level]]\nname = "level{n}"\nepsilon = 0.5\nwindow = 40\noracle = "grr"\n'
        for n in range(1, levels)
    )
    text = f"""
[[stream]]
name = "a"
labels = [{names}]
epsilon = 1
window = 20
interval = "10s"
mechanism = "lpf"
oracle = "grr"
population = {POPULATION}
{more}"""
    return parse(text, folder / "collector.toml").streams[0]


def shares_of(timestamps: int, labels: int) -> Floats:
    """Shares with a daily course and one step."""
    rng = np.random.default_rng(0)
    size, days = rng.normal(0, 1, labels), np.arange(timestamps)[:, None] / 96
    levels = size + 0.3 * np.sin(2 * np.pi * days + size) + 0.2 * (days > 50) * (size > 1)
    weights = np.exp(levels)
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares


def fill(store: SqliteStore, config: StreamConfig, timestamps: int) -> None:
    """Write the rounds and releases of a stream, as a leader would have."""
    _, history, _ = terms_of(config, store, ManualClock(START_MS))
    terms, rng = history.latest, np.random.default_rng(1)
    shares = shares_of(timestamps, len(config.labels))
    rounds, tallies, releases = [], [], []
    halves = [Oracle.GRR.collector(len(config.labels), one.epsilon) for one in terms.strata]
    for t in range(1, timestamps + 1):
        for stratum, half in zip(terms.strata, halves, strict=True):
            name = round_name(t) + stratum.suffix
            reports = int(rng.poisson(POPULATION / len(terms.strata) / stratum.window))
            rounds.append(
                NewRound(
                    t=t,
                    name=name,
                    purpose="publication",
                    epsilon_nano=stratum.epsilon.nano,
                    users=reports,
                    rate=(1, stratum.window),
                    report_bytes=2,
                    opened_ms=START_MS,
                    deadline_ms=START_MS,
                    roster_size=0,
                    asked=None,
                )
            )
            supported = half.q + (half.p - half.q) * shares[t - 1]
            counts = rng.multinomial(reports, supported / supported.sum()).astype("<i8")
            tallies.append((START_MS, counts.tobytes(), reports, name))
        values = shares[t - 1].tolist()
        content = {
            "t": t,
            "values": values,
            "variance": [1e-4] * len(values),
            "fresh": True,
            "low": [max(x - 0.02, 0) for x in values],
            "high": [min(x + 0.02, 1) for x in values],
        }
        releases.append(StoredRelease(t, START_MS + 10_000 * t, content, 2000, 2000, missed=False))
    store.open_round("a", *rounds)
    store._writer.do(lambda connection: connection.executemany(TALLY, tallies))  # all at once
    store.release("a", releases, {"t": timestamps}, 0)


def timed(work: Callable[[], object]) -> Spent:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - wall, time.process_time() - processor)


def measure(folder: Path, timestamps: int, labels: int, levels: int, *, profile: bool) -> None:
    config = config_of(folder, labels, levels)
    with closing(SqliteStore(folder / f"{levels}.sqlite", b"master secret")) as store:
        fill(store, config, timestamps)
        rows = store.releases("a", 1, timestamps)
        names = ReleasedNames((config.labels,))

        def plain() -> None:
            write("json", "a", names, store.releases("a", 1, timestamps))

        def revised() -> None:
            read = store.releases("a", 1, timestamps)
            write("json", "a", names, RevisedHistory(config, store).of(read))

        RevisedHistory(config, store).of(rows[:200])  # compiled code is loaded once
        base = min((timed(plain) for _ in range(5)), key=lambda one: one.wall)
        if profile:
            profiler = cProfile.Profile()
            profiler.runcall(revised)
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(35)
        spent = min((timed(revised) for _ in range(5)), key=lambda one: one.wall)
    print(
        f"{timestamps:,} timestamps, {labels} labels, {levels} level(s): read, revised and written"
        f" in {spent.wall:.2f} s by the clock, {spent.processor:.2f} s of processor time;"
        f" without revised figures in {base.wall:.2f} s, {base.processor:.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timestamps", type=int, default=10_000)
    parser.add_argument("--labels", type=int, default=12)
    parser.add_argument("--levels", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--folder", type=Path, default=None, help="where the stores are made")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    for levels in options.levels:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            measure(
                Path(folder), options.timestamps, options.labels, levels, profile=options.profile
            )


if __name__ == "__main__":
    main()
