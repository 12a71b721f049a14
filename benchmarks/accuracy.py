"""Measure how accurate LPF is, against the paper's seven mechanisms and against hindsight.

    .venv/bin/python benchmarks/accuracy.py [--quick | --cost | --chosen | --only SECTION ...]
        [--ours] [--json] [--write] [--resume FILE]

Nothing is set differently between rows. The seven use GRR, the paper's oracle; LPF chooses its own.
Figures are means over repeats; finished runs are kept in the result cache, so that an interrupted
benchmark resumes. `--ours` runs only what depends on the filter: MSE and MRE of the seven, which do
not, are read from the page as it stands. So are the rows of real sets if none is prepared
(`ldpstream data prepare`).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from accuracy_hindsight import against_hindsight, generator
from accuracy_honest import CHOSEN, SHOWN, by_persistence, by_size, on_generated
from accuracy_page import (
    FEWEST_REPEATS,
    KEPT,
    MOST_REPEATS,
    PAGE,
    PLENTY,
    PRECISE,
    SOME,
    cell,
    number,
    page,
    rows_of,
    table,
)
from accuracy_streams import GRID, MOVING, NUMBER, SMOOTH, UNSEEN, WIDE, Named, Row, real_sets
from ldpstream.lab.cache import ResultCache
from ldpstream.lab.experiment import Experiment
from ldpstream.lab.simulation import run, settings_of
from ldpstream.mechanisms.filtered import Filtered
from ldpstream.mechanisms.queries import HISTOGRAM
from ldpstream.mechanisms.registry import PAPER, build
from ldpstream.mechanisms.settings import RunOptions
from ldpstream.refine.cohorts import ReportingFleet
from ldpstream.refine.consistency import Consistency
from ldpstream.refine.filter import Filter
from ldpstream.refine.levels import LevelBank
from ldpstream.streams.datasets.registry import DATA_SETS
from ldpstream.streams.stream import Stream
from ldpstream.streams.synthetic import sin
from sections import sections_of

WATCHED = ("lpu", "lsp", "lpa")
"""Of the seven, one that always publishes, one that samples, and one that adapts."""


class Bench:
    """Experiments with one cache, and the rows of the page; with `ours`, they are not run again."""

    def __init__(self, repeats: int, *, ours: bool = False) -> None:
        self.repeats = repeats
        self.page = rows_of(PAGE.read_text())
        self._known = self.page if ours else []
        self._cache = ResultCache()

    def known(self, row: Row, names: tuple[str, ...]) -> Row | None:
        """Return these figures from the page's row for the same case as `row`."""
        for old in self._known:
            same = all(old.get(name) == cell(value) for name, value in row.items())
            if same and all(name in old for name in names):
                return {name: number(old[name]) for name in names}
        return None

    def kept(self, column: str, streams: Container[str] = DATA_SETS) -> list[Row]:
        """Return the page's rows of streams, of the table that has this column, marked as kept."""
        return [
            {name: number(text) for name, text in row.items()} | {"stream": row["stream"] + KEPT}
            for row in self.page
            if row.get("stream") in streams and column in row
        ]

    def repeats_of(self, stream: Stream) -> int:
        return 1 if stream.timestamps * len(stream.domain) > PLENTY else self.repeats

    def figures(
        self, stream: Stream, mechanism: str, epsilon: float, window: int, **options: Any
    ) -> Row:
        """Return the mean figures of one mechanism on one stream."""
        repeats = options.pop("repeats", self.repeats_of(stream))
        how = RunOptions.read(**options)
        experiment = Experiment([stream], [mechanism], [epsilon], [window], repeats, how)
        return experiment.run(cache=self._cache).summary()[0]


def against_the_paper(bench: Bench, streams: Iterator[Named]) -> Iterator[Row]:
    """Compare LPF with the best of the seven, by MSE and by MRE."""
    for named in streams:
        for epsilon, window in GRID:
            row: Row = {"stream": named.name, "epsilon": epsilon, "window": window}
            names = ("lpa_mse", "best_of_seven", "best_mse", "best_mre")
            seven = bench.known(row, names) or _seven(bench, named.stream, epsilon, window)
            ours = bench.figures(named.stream, "lpf", epsilon, window)
            yield row | {
                "lpf_mse": ours["mse"],
                "lpa_mse": seven["lpa_mse"],
                "best_of_seven": seven["best_of_seven"],
                "best_mse": seven["best_mse"],
                "times_better": seven["best_mse"] / ours["mse"],
                "times_better_than_lpa": seven["lpa_mse"] / ours["mse"],
                "lpf_mre": ours["mre"],
                "best_mre": seven["best_mre"],
                "first": ours["mse"] < seven["best_mse"] and ours["mre"] < seven["best_mre"],
                "lpf_cfpu": ours["cfpu"],
                "repeats": bench.repeats_of(named.stream),
            }


def _seven(bench: Bench, stream: Stream, epsilon: float, window: int) -> Row:
    seven = {name: bench.figures(stream, name, epsilon, window, oracle="grr") for name in PAPER}
    best = min(seven, key=lambda name: seven[name]["mse"])
    return {
        "lpa_mse": seven["lpa"]["mse"],
        "best_of_seven": best,
        "best_mse": seven[best]["mse"],
        "best_mre": min(figures["mre"] for figures in seven.values()),
    }


def never_worse_than_lpu(bench: Bench) -> Iterator[Row]:
    """Compare LPF with LPU under the same oracle and consistency, and with the plain bank."""
    for named in (*SMOOTH, *MOVING, WIDE):
        for epsilon, window in GRID:
            row: Row = {"stream": named.name, "epsilon": epsilon, "window": window}
            row |= beside_lpu(bench, named, epsilon, window, bench.known(row, ("lpu_mse",)) or {})
            if named is not WIDE:
                row["plain_bank_mse"] = bank_mse(bench, named.stream, epsilon, window)
            yield row


def beside_lpu(bench: Bench, named: Named, epsilon: float, window: int, known: Row) -> Row:
    """Return the MSE of LPF, and of LPU with the same oracle and consistency unless it is known."""
    lpf = bench.figures(named.stream, "lpf", epsilon, window, query=named.query)
    if "lpu_mse" not in known:
        options = {"consistency": Consistency.NORM_SUB, "query": named.query}
        known = {"lpu_mse": bench.figures(named.stream, "lpu", epsilon, window, **options)["mse"]}
    lpf_mse, lpu_mse = lpf["mse"], known["lpu_mse"]
    return {"lpf_mse": lpf_mse, "lpu_mse": lpu_mse, "times_better": lpu_mse / lpf_mse}


def on_unseen_streams(bench: Bench) -> Iterator[Row]:
    """Measure the filter and its intervals on streams that no constant was chosen on."""
    for named in UNSEEN:
        row = {"stream": named.name, **beside_lpu(bench, named, 1, 20, {})}
        shares = {f"{name}_covered": covered(bench, named, name, 1, 20) for name in ("lpf", "lsp")}
        yield row | shares


class PlainFilter(Filter):
    """The bank without jumps and without seasons."""

    def _begin(self, scale: float) -> float:
        super()._begin(scale)
        self._levels = LevelBank(self.estimate, self._start_variance, hazard=1e-300)
        return scale

    def _follow(self, first: float | None) -> None:
        pass


def bank_mse(bench: Bench, stream: Stream, epsilon: float, window: int) -> float:
    """Return the MSE of LPF with the plain bank."""
    settings = settings_of(stream, epsilon, window, RunOptions())
    errors = []
    for repeat in range(bench.repeats):
        mechanism = build("lpf", settings)
        assert isinstance(mechanism, Filtered)
        mechanism.filter = PlainFilter(settings.labels)
        errors.append(run(stream, mechanism, generator(repeat)).metrics.mse)
    return float(np.mean(errors))


def coverage(bench: Bench, streams: Iterator[Named]) -> Iterator[Row]:
    """Measure the share of true frequencies inside the intervals of LPF and some of the seven."""
    for named in streams:
        row: Row = {"stream": named.name}
        for name in (*WATCHED, "lpf"):
            row[name] = covered(bench, named, name, *GRID[0])
        for epsilon, window in GRID[1:]:
            row[f"lpf ({epsilon}, {window})"] = covered(bench, named, "lpf", epsilon, window)
        yield row


def covered(bench: Bench, named: Named, mechanism: str, epsilon: float, window: int) -> float:
    """Return the share for one mechanism, with runs added until its standard error is small."""
    by_paper = mechanism in PAPER and named.query is HISTOGRAM
    options = {"intervals": True, "oracle": "grr" if by_paper else "auto", "query": named.query}
    intervals = named.stream.timestamps * named.query.length(len(named.stream.domain))
    repeats = FEWEST_REPEATS if intervals < SOME else bench.repeats_of(named.stream)
    while True:
        figures = bench.figures(
            named.stream, mechanism, epsilon, window, repeats=repeats, **options
        )
        needed = min(math.ceil((figures["covered_sd"] / PRECISE) ** 2), MOST_REPEATS)
        if needed <= repeats:
            return float(figures["covered"])
        repeats = needed


def cost() -> dict[str, float]:
    """Return processor milliseconds for filtering, an interval and the state as JSON at 1,000
    labels, after 300 timestamps. This is not wall-clock time: other work on the machine must not
    count.
    """
    labels, rng = 1000, generator(0)
    smooth = Filter(labels, ReportingFleet(1_000_000, window=20))
    wave = np.sin(2 * np.pi * np.arange(400) / 24)
    spent = []
    for height in wave:
        tally = rng.normal(1 / labels * (1 + 0.5 * height), 0.005, labels)
        started = time.process_time()
        smooth.update(tally, np.full(labels, 2.5e-5), 2e-5)
        smooth.interval()
        state = json.dumps(smooth.save())
        spent.append(time.process_time() - started)
    late = 1e3 * np.array(spent[300:])
    return {
        "labels": labels,
        "median_ms": float(np.median(late)),
        "worst_ms": float(late.max()),
        "state_bytes": len(state),
    }


def sections(bench: Bench) -> dict[str, Callable[[], Any]]:
    """Return what measures each section of the page."""
    repeats = bench.repeats
    return {
        "generated": lambda: on_generated(SHOWN),
        "persistence": lambda: list(by_persistence(2 * repeats)),
        "sizes": lambda: list(by_size(repeats)),
        "paper": lambda: list(against_the_paper(bench, iter((*SMOOTH, *MOVING, WIDE)))),
        "real": lambda: list(against_the_paper(bench, real_sets())) or bench.kept("best_of_seven"),
        "hindsight": lambda: list(against_hindsight()),
        "unseen": lambda: list(on_unseen_streams(bench)),
        "lpu": lambda: list(never_worse_than_lpu(bench)),
        "coverage": lambda: list(coverage(bench, iter((*SMOOTH, *MOVING, WIDE, NUMBER)))),
        "coverage_real": lambda: list(coverage(bench, real_sets())) or bench.kept("lpf (1, 50)"),
        "cost": cost,
    }


def measure(
    repeats: int, *, quick: bool, ours: bool = False, resume: Path | None = None
) -> dict[str, Any]:
    """Measure all sections of the page; those that `resume` has already are not run again."""
    bench = Bench(repeats, ours=ours)
    if quick:
        streams = [Named("sin", sin(users=50_000, timestamps=200))]
        return {"paper": list(against_the_paper(bench, iter(streams))), "cost": cost()}
    found = json.loads(resume.read_text()) if resume and resume.exists() else {}
    found |= {"repeats": repeats, "ours": ours}
    for name, run_section in sections(bench).items():
        if name not in found:
            found[name] = run_section()
        if resume:
            resume.write_text(json.dumps(found))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small stream")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cost", action="store_true", help="only what a release costs")
    parser.add_argument(
        "--chosen", action="store_true", help="streams that constants are chosen on"
    )
    tables = [name for name in sections(Bench(0)) if name != "cost"]
    parser.add_argument("--only", nargs="+", choices=tables, help="print these tables")
    parser.add_argument("--ours", action="store_true", help="only what rests on the filter")
    parser.add_argument("--resume", type=Path, help="a file that keeps finished sections")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    if options.cost:
        print(json.dumps(cost(), indent=1))
        return
    if options.chosen:
        print(table(on_generated(CHOSEN)))
        return
    if options.only:
        known = sections(Bench(options.repeats))
        for name in options.only:
            print(table(known[name]()), flush=True)
        return
    how = {"quick": options.quick, "ours": options.ours, "resume": options.resume}
    found = measure(options.repeats, **how)
    if options.json:
        print(json.dumps(found, indent=1))
    elif options.quick:
        print(table(found["paper"]), found["cost"], sep="\n")
    else:
        print(page(found))
    if options.write:
        kept = sections_of(PAGE, "shapes|revised")
        PAGE.write_text(f"{page(found)}\n{kept}\n")


if __name__ == "__main__":
    main()
