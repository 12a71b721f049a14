"""How accurate LPF is, against the seven mechanisms of the paper and against hindsight.

    .venv/bin/python benchmarks/accuracy.py [--quick | --cost] [--json] [--write]

Nothing is set differently between rows. The seven use GRR, the paper's oracle; LPF chooses its own.
Figures are means over repeats; finished runs are kept in the result cache, so that a stopped run
goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.lab.cache import ResultCache
from ldpstream.lab.experiment import Experiment
from ldpstream.lab.simulation import Fleet, run, settings_for
from ldpstream.mechanisms.filtered import Filtered
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.registry import PAPER, Settings, build
from ldpstream.refine.consistency import Consistency
from ldpstream.refine.filter import Filter
from ldpstream.refine.levels import LevelBank
from ldpstream.refine.linear import LinearBank, trend
from ldpstream.streams.datasets.registry import DATA_SETS
from ldpstream.streams.stream import Stream
from ldpstream.streams.synthetic import constant, lns, log, sin, step, zipf

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
COMMAND = ".venv/bin/python benchmarks/accuracy.py --write"
GRID = ((1, 20), (1, 50), (2, 40))
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Named:
    """A stream under the name it has in the tables."""

    name: str
    stream: Stream


SMOOTH = (Named("sin", sin()), Named("log", log()), Named("lns", lns()))
MOVING = (
    Named("constant", constant()),
    Named("step every 100", step()),
    Named("sin b=0.1", sin(b=0.1)),
    Named("lns sd=0.01", lns(p0=0.3, sd=0.01)),
)
WIDE = Named("zipf", zipf())


class Bench:
    """Runs experiments with one number of repeats and one cache."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self._cache = ResultCache()

    def figures(
        self, stream: Stream, mechanism: str, epsilon: float, window: int, **options: Any
    ) -> dict[str, Any]:
        """The mean figures of one mechanism on one stream."""
        experiment = Experiment(
            [stream], [mechanism], [epsilon], [window], repeats=self.repeats, **options
        )
        return experiment.run(cache=self._cache).summary()[0]


def against_the_paper(bench: Bench, streams: Iterator[Named]) -> Iterator[dict[str, Any]]:
    """LPF against the best of the seven, by MSE and by MRE."""
    for named in streams:
        for epsilon, window in GRID:
            seven = {
                name: bench.figures(named.stream, name, epsilon, window, oracle="grr")
                for name in PAPER
            }
            ours = bench.figures(named.stream, "lpf", epsilon, window)
            best = min(seven, key=lambda name: seven[name]["mse"])
            closest = min(seven, key=lambda name: seven[name]["mre"])
            yield {
                "stream": named.name,
                "epsilon": epsilon,
                "window": window,
                "lpf_mse": ours["mse"],
                "lpa_mse": seven["lpa"]["mse"],
                "best_of_seven": best,
                "best_mse": seven[best]["mse"],
                "times_better": seven[best]["mse"] / ours["mse"],
                "times_better_than_lpa": seven["lpa"]["mse"] / ours["mse"],
                "lpf_mre": ours["mre"],
                "best_mre": seven[closest]["mre"],
                "first": ours["mse"] < seven[best]["mse"] and ours["mre"] < seven[closest]["mre"],
                "covered": ours["covered"],
                "lpf_cfpu": ours["cfpu"],
            }


def never_worse_than_lpu(bench: Bench) -> Iterator[dict[str, Any]]:
    """Same oracle, same consistency: what the filter alone is worth, beside the plain bank."""
    for named in (*SMOOTH, *MOVING, WIDE):
        for epsilon, window in GRID:
            options = {"consistency": Consistency.NORM_SUB}
            plain = bench.figures(named.stream, "lpu", epsilon, window, **options)
            ours = bench.figures(named.stream, "lpf", epsilon, window, **options)
            row = {
                "stream": named.name,
                "epsilon": epsilon,
                "window": window,
                "lpf_mse": ours["mse"],
                "lpu_mse": plain["mse"],
                "times_better": plain["mse"] / ours["mse"],
            }
            if named is not WIDE:
                row["plain_bank_mse"] = bank_mse(bench, named.stream, epsilon, window)
            yield row


class PlainFilter(Filter):
    """The bank without jumps and without seasons."""

    def _begin(self, scale: float) -> None:
        super()._begin(scale)
        self._levels = LevelBank(self.estimate, self._start_variance, hazard=1e-300)

    def _follow(self, period: float | None) -> None:
        pass


def bank_mse(bench: Bench, stream: Stream, epsilon: float, window: int) -> float:
    """MSE of LPF with the plain bank."""
    settings = settings_for(stream, epsilon=epsilon, window=window)
    errors = []
    for repeat in range(bench.repeats):
        mechanism = build("lpf", settings)
        assert isinstance(mechanism, Filtered)
        mechanism.filter = PlainFilter(settings.labels)
        errors.append(run(stream, mechanism, _generator(repeat)).metrics.mse)
    return float(np.mean(errors))


def against_hindsight(bench: Bench) -> Iterator[dict[str, Any]]:
    """LPF against the one Kalman filter that the truth shows to be best for the stream."""
    for named in (SMOOTH[0], SMOOTH[2]):
        for epsilon, window in GRID:
            settings = settings_for(named.stream, epsilon=epsilon, window=window)
            records = [_tallies(named.stream, settings, seed) for seed in range(bench.repeats)]
            best, which = min(
                (float(np.mean([_kalman_mse(make, record) for record in records])), name)
                for name, make in _fixed_filters()
            )
            ours = float(np.mean([_filter_mse(record) for record in records]))
            yield {
                "stream": named.name,
                "epsilon": epsilon,
                "window": window,
                "lpf_mse": ours,
                "hindsight_mse": best,
                "hindsight": which,
                "ratio": ours / best,
            }


@dataclass(frozen=True)
class Record:
    """What LPU heard of a stream, and the truth."""

    truth: Floats
    estimates: Floats
    variance: Floats


def _tallies(stream: Stream, settings: Settings, seed: int) -> Record:
    rng = _generator(seed)
    mechanism: Mechanism = build("lpu", settings)
    released = run(stream, mechanism, rng, fleet=Fleet.of(mechanism, rng))
    variance = np.broadcast_to(released.variance.mean(axis=0), released.variance.shape)
    return Record(released.truth, released.released, variance)


def _fixed_filters() -> Iterator[tuple[str, Any]]:
    def level(noise: float) -> Any:
        return lambda start, _: _OneLevel(start, noise)

    def slope(noise: float) -> Any:
        return lambda start, scale: LinearBank([trend(noise)], start, 0.25, scale)

    for noise in np.logspace(-6, 1, 22):
        yield f"level, noise {noise:.1e}", level(float(noise))
    for noise in np.logspace(-10, -1, 28):
        yield f"trend, noise {noise:.1e}", slope(float(noise))


class _OneLevel(LevelBank):
    def __init__(self, start: Floats, noise: float) -> None:
        super().__init__(start, 0.25, hazard=1e-300)
        self.means, self.variances = self.means[:1], self.variances[:1]
        self._noises = np.array([[noise]])


def _kalman_mse(make: Any, record: Record) -> float:
    scale = float(record.variance.mean())
    bank = make(np.full(record.truth.shape[1], 1 / record.truth.shape[1]), scale)
    errors = []
    for truth, estimate, variance in zip(
        record.truth, record.estimates, record.variance, strict=True
    ):
        bank.predict(scale)
        bank.update(estimate, variance)
        errors.append(np.mean((bank.means[0] - truth) ** 2))
    return float(np.mean(errors))


def _filter_mse(record: Record) -> float:
    smooth = Filter(record.truth.shape[1])
    errors = []
    for truth, estimate, variance in zip(
        record.truth, record.estimates, record.variance, strict=True
    ):
        smooth.update(estimate, variance)
        errors.append(np.mean((smooth.estimate - truth) ** 2))
    return float(np.mean(errors))


def coverage(bench: Bench, streams: Iterator[Named]) -> Iterator[dict[str, Any]]:
    """Share of true frequencies inside their 90 % intervals, for the seven and for LPF."""
    for named in streams:
        row: dict[str, Any] = {"stream": named.name}
        for name in (*PAPER, "lpf"):
            options = {"intervals": True, "oracle": "grr" if name in PAPER else "auto"}
            row[name] = bench.figures(named.stream, name, 1, 20, **options)["covered"]
        yield row


def cost() -> dict[str, float]:
    """Milliseconds that filtering and an interval take at 1,000 labels, after 300 timestamps."""
    labels, rng = 1000, _generator(0)
    smooth = Filter(labels)
    wave = np.sin(2 * np.pi * np.arange(400) / 24)
    spent = []
    for height in wave:
        tally = rng.normal(1 / labels * (1 + 0.5 * height), 0.005, labels)
        started = time.perf_counter()
        smooth.update(tally, np.full(labels, 2.5e-5))
        smooth.interval()
        spent.append(time.perf_counter() - started)
    late = 1e3 * np.array(spent[300:])
    return {"labels": labels, "median_ms": float(np.median(late)), "worst_ms": float(late.max())}


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed))


def real_sets() -> Iterator[Named]:
    for name, known in DATA_SETS.items():
        stream = known.open()
        if stream is not None:
            yield Named(name, stream)


def measure(repeats: int, *, quick: bool) -> dict[str, Any]:
    bench = Bench(repeats)
    if quick:
        streams = [Named("sin", sin(users=50_000, timestamps=200))]
        return {"paper": list(against_the_paper(bench, iter(streams))), "cost": cost()}
    return {
        "repeats": repeats,
        "paper": list(against_the_paper(bench, iter(SMOOTH + MOVING + (WIDE,)))),
        "real": list(against_the_paper(bench, real_sets())),
        "lpu": list(never_worse_than_lpu(bench)),
        "hindsight": list(against_hindsight(bench)),
        "coverage": list(coverage(bench, iter(SMOOTH + MOVING[:2] + (WIDE,)))),
        "coverage_real": list(coverage(bench, real_sets())),
        "cost": cost(),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as Markdown."""
    if not rows:
        return "(no set is prepared)"
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_cell(row.get(name, "")) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def page(found: dict[str, Any]) -> str:
    cost = found["cost"]
    return f"""# How accurate LPF is

Made by `{COMMAND}`, {found["repeats"]} repeats. Nothing differs between rows but
the stream, epsilon and the window. MSE and MRE are means over timestamps and labels; the seven use
GRR, LPF the oracle of `choose`.

## Against the paper's seven
{table(found["paper"])}

## On real sets
{table(found["real"])}

## Against LPU with the same oracle and consistency, and against the plain bank
The plain bank has no jumps and no seasons.

{table(found["lpu"])}

## Against the best fixed Kalman filter in hindsight
The best of 22 local levels and 28 local trends, chosen with the truth at hand. Raw filters, no
consistency.

{table(found["hindsight"])}

## Do the 90 % intervals hold?
Share of true frequencies inside, at epsilon 1 and w = 20. For the seven, the intervals are those
of `simulate --intervals`.

{table(found["coverage"])}

{table(found["coverage_real"])}

## Cost
At {cost["labels"]} labels a release, with its interval, takes {cost["median_ms"]:.1f} ms in the
median and {cost["worst_ms"]:.1f} ms at the worst (when it looks for a period).
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small stream")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cost", action="store_true", help="only what a release costs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    if options.cost:
        print(json.dumps(cost(), indent=1))
        return
    found = measure(options.repeats, quick=options.quick)
    if options.json:
        print(json.dumps(found, indent=1))
    elif options.quick:
        print(table(found["paper"]), found["cost"], sep="\n")
    else:
        print(page(found))
    if options.write:
        PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
