"""How good the revised history is, and how soon change points are found.

.venv/bin/python benchmarks/revised.py [--repeats N] [--trials N] [--streams N]
        [--only SECTION ...] [--write] [--chosen]

--chosen prints what the share of a trend's variance that counts as error (`hindsight.SMOOTH`) was
chosen by: coverage on generated streams of the seeds 0 to 99. --write puts the tables into
docs/accuracy.md. Streams are those of `ldpstream simulate`; steps, and the tallies of --chosen, are
drawn here with normal errors.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from accuracy_honest import CHOSEN, SHOWN, TIMESTAMPS
from ldpstream.arrays import Floats
from ldpstream.lab.simulation import simulate
from ldpstream.refine import hindsight
from ldpstream.refine.smoother import History, revise
from ldpstream.streams.generated import generated
from ldpstream.streams.synthetic import named
from sections import table, write_section

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
COMMAND = ".venv/bin/python benchmarks/revised.py --write"
STREAMS = ("sin", "log", "sin:b=0.1", "lns", "step")
LAG = 60
ERROR = 0.01
"""The standard error of a drawn tally."""
BEFORE = 300
SIZES = (1.5, 2, 3, 4, 6, 10)
DELAYS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100)
"""Timestamps after a step at which the tallies so far are searched."""
WITHIN = 12
"""A change that is found so close to a step is that step."""
SHARES = (0.5, 0.625, 0.75, 0.875, 1.0)
TALLY_ERROR = 0.018
"""The standard error of a tally of many labels at epsilon 1, w = 20 and 200,000 users."""
REVISED = ("revised_mse", "times", "coverage")
CALM = 1000
"""Timestamps of a stream without steps."""


def by_stream(repeats: int) -> Iterator[list[object]]:
    """Measure LPF's releases and their revision on built-in streams, whole and with a lag."""
    for name in STREAMS:
        row: list[object] = [name]
        for lag in (None, LAG):
            done = simulate(named(name), "lpf", epsilon=1, window=20, repeats=repeats, lag=lag)
            mse, revised = done.mean("mse"), done.mean("revised_mse")
            row += [] if lag else [f"{mse:.2e}"]
            row += [
                f"{revised:.2e}",
                f"{mse / revised:.2f}",
                f"{done.mean('revised_coverage'):.3f}",
            ]
        yield row


def on_generated(streams: int) -> list[list[object]]:
    """Summarise one run on each of the generated streams that nothing was chosen on."""
    ratios, coverages = [], []
    for seed in SHOWN[:streams]:
        stream = generated(timestamps=TIMESTAMPS, seed=seed)
        done = simulate(stream, "lpf", epsilon=1, window=20, seed=seed)
        ratios.append(done.mean("mse") / done.mean("revised_mse"))
        coverages.append(done.mean("revised_coverage"))
    return [_spread("mse / revised_mse", ratios), _spread("revised_coverage", coverages)]


def by_share(streams: int) -> Iterator[list[object]]:
    """Measure coverage with other shares of a trend's variance, on streams to choose by."""
    usual = hindsight.SMOOTH
    drawn = [_tallied(seed) for seed in CHOSEN[:streams]]
    for share in SHARES:
        hindsight.SMOOTH = share
        found = [revise(history) for _, history in drawn]
        hindsight.SMOOTH = usual
        inside = [
            float(np.mean((one.low <= truth) & (truth <= one.high)))
            for one, (truth, _) in zip(found, drawn, strict=True)
        ]
        yield _spread(f"{share:g}", inside)


def _tallied(seed: int) -> tuple[Floats, History]:
    """Return the shares of a generated stream, and tallies of them with normal errors."""
    stream = generated(timestamps=TIMESTAMPS, seed=seed)
    truth = stream.table / stream.users
    measured = truth + np.random.default_rng(seed).normal(0, TALLY_ERROR, truth.shape)
    return truth, History(measured, np.full_like(truth, TALLY_ERROR**2), np.zeros(TIMESTAMPS))


def _spread(name: str, figures: list[float]) -> list[object]:
    low, middle, high = np.quantile(figures, (0.1, 0.5, 0.9))
    return [name, len(figures), *(f"{x:.3f}" for x in (np.mean(figures), low, middle, high))]


def by_size(trials: int) -> Iterator[list[object]]:
    """Measure how soon steps are found, by their size in standard errors of a tally."""
    for size in SIZES:
        delays, sizes, places = [], [], []
        for trial in range(trials):
            rng = np.random.default_rng((trial, int(10 * size)))
            share = np.full(BEFORE + DELAYS[-1], 0.2)
            share[BEFORE:] += size * ERROR * rng.choice([-1, 1])
            drawn = _drawn(share, rng)
            for delay in DELAYS:
                found = [
                    change
                    for change in revise(drawn.part(0, BEFORE + delay)).changes
                    if change.label == 1 and abs(change.place - BEFORE) <= WITHIN
                ]
                if found:
                    delays.append(delay)
                    sizes.append(found[0].low <= share[-1] - share[0] <= found[0].high)
                    places.append(found[0].first <= BEFORE <= found[0].last)
                    break
        late = sorted(delays + [np.inf] * (trials - len(delays)))
        middle = late[len(late) // 2]
        yield [
            f"{size:g}",
            f"{len(delays) / trials:.2f}",
            f"{middle:.0f}" if np.isfinite(middle) else f"over {DELAYS[-1]}",
            *(f"{np.mean(x):.2f}" if x else "" for x in (places, sizes)),
        ]


def false_alarms(trials: int) -> Iterator[list[object]]:
    """Count changes found where there is none, per 10,000 timestamps of one share."""
    times = np.arange(CALM)
    for name in (
        "constant",
        "sine, period 628",
        "sine, period 63",
        "walk, a quarter of an error",
    ):
        alarms = 0
        for trial in range(trials):
            rng = np.random.default_rng((trial, len(name)))
            share = {
                "constant": np.full(CALM, 0.2),
                "sine, period 628": 0.2 + 0.05 * np.sin(times / 100),
                "sine, period 63": 0.2 + 0.05 * np.sin(times / 10),
            }.get(name, 0.5 + np.cumsum(rng.normal(0, ERROR / 4, CALM)))
            alarms += sum(change.label == 1 for change in revise(_drawn(share, rng)).changes)
        yield [name, trials * CALM, f"{1e4 * alarms / (trials * CALM):.2f}"]


def _drawn(share: Floats, rng: np.random.Generator) -> History:
    tallies = share + rng.normal(0, ERROR, len(share))
    measured = np.column_stack([1 - tallies, tallies])
    return History(measured, np.full_like(measured, ERROR**2), np.zeros(len(share)))


def cost(timestamps: int = 10_000, labels: int = 12) -> str:
    rng = np.random.default_rng(0)
    size, days = rng.normal(0, 1, labels), np.arange(timestamps)[:, None] / 96
    levels = size + 0.3 * np.sin(2 * np.pi * days + size) + 0.2 * (days > 50) * (size > 1)
    weights = np.exp(levels)
    measured = weights / weights.sum(axis=1, keepdims=True) + rng.normal(0, 0.015, levels.shape)
    drawn = History(measured, np.full_like(measured, 0.015**2), np.zeros(timestamps))
    revise(drawn.part(0, 200))
    spent, began = time.process_time(), time.perf_counter()
    revise(drawn)
    return (
        f"{timestamps:,} timestamps of {labels} labels took {time.process_time() - spent:.2f} s of "
        f"processor time, {time.perf_counter() - began:.2f} s by the clock."
    )


def streams_page(options: argparse.Namespace) -> str:
    streams = table(
        ("stream", "mse", *REVISED, f"lag {LAG}: {REVISED[0]}", *REVISED[1:]),
        by_stream(options.repeats),
    )
    return f"""## Revised history
Made by `{COMMAND}`: {options.repeats} repeats at epsilon 1 and w = 20, the streams of `ldpstream
simulate --mechanism lpf`. *Times* is `mse / revised_mse`; with a lag, a figure rests on the tallies
up to {LAG} timestamps later. Coverage is that of the revised 90 % intervals.

{streams}"""


def generated_page(options: argparse.Namespace) -> str:
    head = ("figure", "streams", "mean", "10 %", "median", "90 %")
    return f"""On `generated:seed={SHOWN[0]}` and the streams after it, {TIMESTAMPS} timestamps, on
which nothing was chosen:

{table(head, on_generated(options.streams))}"""


def changes_page(options: argparse.Namespace) -> str:
    head = ("size", "found", "median delay", "place in its interval", "size in its interval")
    calm = table(("stream", "timestamps", "false alarms in 10,000"), false_alarms(options.trials))
    return f"""**Change points.** One step after {BEFORE} timestamps of a share that stands still,
{options.trials} trials for each size, which is in standard errors of a tally. The delay is that
after which a search in the tallies so far first finds it, of {", ".join(map(str, DELAYS))}
timestamps; *found* is the share that is found at all. Intervals are those of that moment.

{table(head, by_size(options.trials))}

{calm}

**Cost.** {cost()}"""


SECTIONS = {"changes": changes_page, "generated": generated_page, "streams": streams_page}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=list(SECTIONS))
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    parser.add_argument("--chosen", action="store_true", help="streams that it was chosen on")
    options = parser.parse_args()
    if options.chosen:
        head = ("share", "streams", "mean coverage", "10 %", "median", "90 %")
        print(table(head, by_share(options.streams)))
        return
    for name in options.only:
        text = SECTIONS[name](options)
        print(text, flush=True)
        if options.write:
            write_section(PAGE, f"revised-{name}", text)


if __name__ == "__main__":
    main()
