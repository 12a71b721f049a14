"""Whether intervals hold where it matters: rare labels, jumps, populations that persist."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from accuracy_streams import MOVING, SMOOTH, WIDE, Named, Row, real_sets
from ldpstream.lab.metrics import Metrics
from ldpstream.lab.simulation import simulate
from ldpstream.streams.generated import generated
from ldpstream.streams.stream import CountsStream
from ldpstream.streams.synthetic import constant, sin, zipf

CHOSEN, SHOWN = range(100), range(1000, 1100)
"""Seeds of the generated streams that constants were chosen on, and of those that are shown."""
TIMESTAMPS = 600
FIGURES = ("coverage", "coverage_rare", "coverage_middle", "coverage_big", "coverage_after_jump")
WITHIN = {"coverage": (0.87, 0.93), "coverage_after_jump": (0.8, 1.0)}
"""What is asked for of one stream; of a size class, 0.85 to 0.95."""
PERSISTENCES = (0.0, 0.5, 1.0)


def by_size(repeats: int) -> Iterator[Row]:
    """Measure the coverage of LPF by label size and after jumps, on built-in and real streams."""
    for named in (*SMOOTH, *MOVING, WIDE, *real_sets()):
        wide = len(named.stream.domain) * named.stream.timestamps > 100_000
        yield {"stream": named.name} | _figures(named, 1 if wide else repeats)


def _figures(named: Named, repeats: int, **options: Any) -> Row:
    epsilon = options.pop("epsilon", 1)
    done = simulate(named.stream, "lpf", epsilon=epsilon, window=20, repeats=repeats, **options)
    return {name: _mean([run.metrics for run in done.runs], name) for name in FIGURES}


def _mean(runs: Iterable[Metrics], name: str) -> float:
    found = np.array([getattr(one, name) for one in runs])
    return float(np.nanmean(found)) if np.isfinite(found).any() else math.nan


def on_generated(seeds: Iterable[int], mechanism: str = "lpf") -> list[Row]:
    """Summarise one run on each generated stream: means, extremes, and how many are within."""
    runs = [
        simulate(
            generated(timestamps=TIMESTAMPS, seed=seed),
            mechanism,
            epsilon=1,
            window=20,
            seed=seed,
            intervals=True,
        )
        .runs[0]
        .metrics
        for seed in seeds
    ]
    rows = []
    for name in FIGURES:
        found = np.array([getattr(one, name) for one in runs])
        found = found[np.isfinite(found)]
        low, high = WITHIN.get(name, (0.85, 0.95))
        rows.append(
            {
                "figure": name,
                "streams": len(found),
                "mean": float(found.mean()),
                "least": float(found.min()),
                "10 %": float(np.quantile(found, 0.1)),
                "median": float(np.median(found)),
                "90 %": float(np.quantile(found, 0.9)),
                "greatest": float(found.max()),
                "asked": f"{low} to {high}",
                "within": float(np.mean((found >= low) & (found <= high))),
            }
        )
    return rows


def by_persistence(repeats: int) -> Iterator[Row]:
    """Measure LPF on populations whose users keep their values, more or less."""
    small = {"users": 20_000, "timestamps": 400}
    streams: tuple[CountsStream, ...] = (
        constant(p=0.3, **small),
        sin(**small),
        zipf(200_000, 400, labels=40),
    )
    for stream in streams:
        for epsilon in (1, 3):
            for persistence in PERSISTENCES:
                done = simulate(
                    stream,
                    "lpf",
                    epsilon=epsilon,
                    window=20,
                    repeats=repeats,
                    persistence=persistence,
                )
                yield {
                    "stream": f"{stream.name}, N = {stream.users:,}",
                    "epsilon": epsilon,
                    "persistence": persistence,
                    "lpf_mse": done.mean("mse"),
                    "coverage": done.mean("coverage"),
                    "revised_mse": done.mean("revised_mse"),
                    "revised_coverage": done.mean("revised_coverage"),
                }
