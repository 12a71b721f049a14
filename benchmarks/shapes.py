"""Measure LPF and its intervals on streams of shapes that no constant was chosen on.

    .venv/bin/python benchmarks/shapes.py [--seeds N] [--only SHAPE ...] [--epsilon E] [--window W]
        [--write]

Each shape is a function that makes weights of labels from a seed. --write puts the table into
docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.domain import Domain
from ldpstream.lab.simulation import simulate
from ldpstream.streams.stream import CountsStream
from sections import table, write_section

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
COMMAND = ".venv/bin/python benchmarks/shapes.py --write"
USERS, TIMESTAMPS, FIRST_SEED = 200_000, 600, 6000
TIMES = np.arange(TIMESTAMPS)[:, None]
DAY = 24
HEAD = ["shape", "MSE", "lpu", "lsp", "coverage", "rare", "middle", "big", "after a jump"]
HEAD += ["revised: MSE", "coverage"]
SHARES = ("coverage", "coverage_rare", "coverage_middle", "coverage_big", "coverage_after_jump")
Random = np.random.Generator


def hours(rng: Random) -> Floats:
    """20 labels with a daily cycle, each with its own hour and sharpness, and weekends."""
    weekend = TIMES // DAY % 7 >= 5
    peaks, sharp = rng.uniform(0, DAY, 20), rng.uniform(0.1, 1.2, 20)
    cycle = np.exp(sharp * np.cos(2 * np.pi * (TIMES - peaks) / DAY))
    usual = rng.dirichlet(np.full(20, 0.8)) + 0.002
    return np.where(weekend, np.exp(rng.normal(0, 0.4, 20)), 1.0) * usual * cycle


def city(rng: Random) -> Floats:
    """65 cells of a city: commuters leave some by day and fill others, half as many at weekends."""
    size = rng.permutation(np.arange(1, 66) ** -rng.uniform(0.6, 1.2))
    peaks = np.where(rng.random(65) < 0.6, 2, 13) + rng.normal(0, 1, 65)
    height = np.where(TIMES // DAY % 7 >= 5, 0.4, 1.0) * rng.uniform(0.1, 0.8, 65)
    walks = np.cumsum(rng.normal(0, 0.01, (TIMESTAMPS, 65)), axis=0)
    return size * np.exp(height * np.cos(2 * np.pi * (TIMES - peaks) / DAY) + walks)


def regimes(rng: Random) -> Floats:
    """8 labels that step, burst or cycle, and do something else after 40 to 150 timestamps."""
    levels, begin = np.tile(rng.normal(0, 1, 8), (TIMESTAMPS, 1)), 0
    while begin < TIMESTAMPS:
        end = min(begin + int(rng.integers(40, 150)), TIMESTAMPS)
        kind = rng.integers(3)
        if kind == 0:
            levels[begin:] += rng.normal(0, 0.7, 8) * (rng.random(8) < 0.5)
        elif kind == 1:
            for start in rng.integers(begin, end, 3):
                levels[start : start + rng.integers(1, 12), rng.integers(8)] += rng.uniform(0.5, 2)
        else:
            angle = 2 * np.pi * TIMES[begin:end] / rng.integers(8, 40)
            wave = np.sin(angle + rng.uniform(0, 6, 8))
            levels[begin:end] += rng.uniform(0.1, 0.6, 8) * wave
        begin = end
    return np.exp(levels)


def crowds(rng: Random) -> Floats:
    """12 labels that stand still, but for crowds that come at once and go slowly."""
    weights = np.tile(np.exp(rng.normal(0, 1, 12)), (TIMESTAMPS, 1))
    mean = weights[0].mean()
    for start in rng.integers(10, TIMESTAMPS - 5, rng.integers(5, 12)):
        since = np.arange(TIMESTAMPS - start) / rng.uniform(2, 40)
        weights[start:, rng.integers(12)] += rng.uniform(0.5, 5) * mean * np.exp(-since)
    return weights


def takeovers(rng: Random) -> Floats:
    """9 versions of a program, each of which takes over from those before it; one has an outage."""
    begins, widths = np.sort(rng.uniform(-100, TIMESTAMPS, 9)), np.exp(rng.uniform(1.4, 3.4, 9))
    taken = 0.97 / (1 + np.exp(-(TIMES - begins) / widths))
    taken[:, 0] = 1.0
    left = np.cumprod((1 - taken)[:, :0:-1], axis=1)[:, ::-1]
    weights = taken * np.hstack([left, np.ones_like(TIMES)]) + 5e-4
    out = rng.integers(100, TIMESTAMPS - 60)
    weights[out : out + rng.integers(5, 50), rng.integers(9)] *= 0.05
    return weights


def walks(rng: Random) -> Floats:
    """12 labels that wander without a memory, calm or wild."""
    steps = rng.normal(0, np.exp(rng.uniform(-6, -3)), (TIMESTAMPS, 12))
    return np.exp(rng.normal(0, 1, 12) + np.cumsum(steps, axis=0))


def reverting(rng: Random) -> Floats:
    """10 labels that wander about a mean, to which they come back within 3 to 30 timestamps."""
    kept, levels = 0.5 ** (1 / np.exp(rng.uniform(1.1, 3.4, 10))), np.zeros((TIMESTAMPS, 10))
    steps = rng.uniform(0.05, 0.4) * np.sqrt(1 - kept**2) * rng.normal(size=(TIMESTAMPS, 10))
    for t in range(1, TIMESTAMPS):
        levels[t] = kept * levels[t - 1] + steps[t]
    return np.exp(rng.normal(0, 1, 10) + levels)


def timetable(rng: Random) -> Floats:
    """6 labels that are up and down by the clock, each with a period of its own: square waves."""
    periods = rng.integers(12, 60, 6)
    up = (TIMES + rng.integers(0, 60, 6)) % periods < rng.uniform(0.1, 0.6, 6) * periods
    return np.exp(rng.normal(0, 0.7, 6) + rng.uniform(0.2, 1, 6) * up)


def still(rng: Random) -> Floats:
    """15 labels, rare to big, that never move."""
    return np.tile(rng.dirichlet(np.full(15, 0.5)) + 1e-4, (TIMESTAMPS, 1))


SHAPES: dict[str, Callable[[Random], Floats]] = {
    shape.__name__: shape
    for shape in (hours, city, regimes, crowds, takeovers, walks, reverting, timetable, still)
}


def measured(shape: str, seeds: int, epsilon: float, window: int) -> list[float]:
    """Return the figures of a row: means over streams, each run once."""
    rows = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        weights = SHAPES[shape](np.random.default_rng(seed))
        stream = CountsStream.in_proportion(
            shape, Domain.numbered(weights.shape[1]), weights, USERS
        )
        lpf, lpu, lsp = (
            simulate(stream, name, epsilon=epsilon, window=window, seed=seed).runs[0].metrics
            for name in ("lpf", "lpu", "lsp")
        )
        shares = [getattr(lpf, name) for name in SHARES]
        rows.append([lpf.mse, lpu.mse, lsp.mse, *shares, lpf.revised_mse, lpf.revised_coverage])
    return means(rows)


def means(rows: Iterable[Sequence[float]]) -> list[float]:
    """Return the mean of each column where it is known."""
    columns = (
        [figure for figure in column if np.isfinite(figure)] for column in zip(*rows, strict=True)
    )
    return [fmean(known) if known else math.nan for known in columns]


def said(seeds: int) -> str:
    return f"""## On streams of other shapes
Made by `{COMMAND}`: {seeds} streams of each shape, {TIMESTAMPS} timestamps of {USERS:,} users, one
run each at epsilon 1 and w = 20; `--only` and the docstrings of the program say what they are. No
constant was chosen on them. `lpu` and `lsp` are MSE, too, with the same oracle. Coverage is that of
90 % intervals, by the size of labels and after jumps as above. It is lowest where labels of one
size move very differently in relation to their size: cells of the city that commuters leave or
fill, since a label that moves below the noise is expected to move as its kin do.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="streams of each shape")
    parser.add_argument("--only", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--epsilon", type=float, default=1)
    parser.add_argument("--window", type=int, default=20)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    rows = {
        shape: measured(shape, options.seeds, options.epsilon, options.window)
        for shape in options.only
    }
    rows["mean"] = means(rows.values())
    figures = table(HEAD, [[name, *map(cell, row)] for name, row in rows.items()])
    print(figures)
    if options.write:
        write_section(PAGE, "shapes", said(options.seeds) + figures)


def cell(figure: float) -> str:
    if math.isnan(figure):
        return ""
    return f"{figure:.2e}" if figure < 0.01 else f"{figure:.3f}"


if __name__ == "__main__":
    main()
