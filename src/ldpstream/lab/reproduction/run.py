"""The run of several studies on one engine; runs that they share are made once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ldpstream.errors import Mistake, Problem
from ldpstream.lab.cache import ResultCache
from ldpstream.lab.engines import Engine
from ldpstream.lab.experiment import Experiment
from ldpstream.lab.figures.charts import Chart, Row
from ldpstream.lab.reproduction.analysis.exhibit import analyse
from ldpstream.lab.reproduction.analysis.exhibit import size as analysis_size
from ldpstream.lab.reproduction.claims import Exhibit, JudgedClaim, judge
from ldpstream.lab.reproduction.studies import FIGURES, SEVEN, Study, StudyStreams
from ldpstream.lab.reproduction.table2 import SETTINGS, Table2
from ldpstream.mechanisms.noise import VarianceRule
from ldpstream.mechanisms.settings import RunOptions
from ldpstream.oracles import Oracle
from ldpstream.streams.stream import Stream

TABLE2 = "table2"
ANALYSIS = "analysis"
NAMES = (TABLE2, *FIGURES, ANALYSIS)
ALL = "all"
AS_PRINTED = RunOptions(oracle=Oracle.GRR, variance=VarianceRule.PAPER)
"""The options of the paper's own evaluation."""


@dataclass(frozen=True)
class Timing:
    """The time that a study took."""

    name: str
    runs: int
    wall: float
    """Seconds by the clock, without the runs that were cached."""
    computing: float
    """Seconds that all its runs took when they were made, added up."""


@dataclass(frozen=True)
class Reproduction:
    """The exhibits that were made, from which streams, and how long it took."""

    exhibits: Mapping[str, Exhibit]
    timings: tuple[Timing, ...]
    streams: tuple[Stream, ...]
    repeats: int

    def judged(self) -> list[JudgedClaim]:
        return judge(self.exhibits)


@dataclass(frozen=True)
class ReproductionPlan:
    """The studies of one command, with the literal algorithms, GRR and the printed variance."""

    names: tuple[str, ...]
    scope: StudyStreams = field(default_factory=StudyStreams)
    repeats: int = 3
    seed: int = 0
    own: tuple[str, ...] = ()
    """Mechanisms of the user's, which are drawn beside the paper's."""

    def size(self) -> int:
        """Return the number of runs; shared ones are counted wherever they are used."""
        grids = [grid for name in self.names if name != ANALYSIS for grid in self._grids(name)]
        runs = sum(
            len(g.streams) * len(g.mechanisms) * len(g.epsilons) * len(g.windows) * g.repeats
            for g in grids
        )
        return runs + (analysis_size(self.repeats) if ANALYSIS in self.names else 0)

    def run(
        self,
        engine: Engine | None = None,
        cache: ResultCache | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Reproduction:
        exhibits: dict[str, Exhibit] = {}
        timings = []
        for name in self.names:
            started = time.perf_counter()
            if name == ANALYSIS:
                exhibits[name] = analyse(self.scope, self.repeats, self.seed, progress)
                wall = time.perf_counter() - started
                timings.append(Timing(name, analysis_size(self.repeats), wall, wall))
                continue
            runs = [
                row
                for grid in self._grids(name)
                for row in grid.run(engine=engine, cache=cache, progress=progress).rows
            ]
            rows = _each_once(runs)
            exhibits[name] = self._exhibit(name, rows)
            wall = time.perf_counter() - started
            timings.append(Timing(name, len(rows), wall, sum(row["seconds"] for row in rows)))
        return Reproduction(exhibits, tuple(timings), self.scope.streams, self.repeats)

    def _study(self, name: str) -> Study:
        return FIGURES[name](self.scope)

    def _exhibit(self, name: str, rows: Sequence[Row]) -> Chart | Table2:
        return Table2.of(rows) if name == TABLE2 else self._study(name).chart(rows)

    def _grids(self, name: str) -> Iterator[Experiment]:
        if name == TABLE2:
            for epsilon, window in SETTINGS:
                yield self._grid(self.scope.streams, SEVEN, (epsilon,), (window,))
            return
        study = self._study(name)
        for sweep in study.sweeps:
            mechanisms = (*study.mechanisms, *self.own)
            yield self._grid(sweep.streams, mechanisms, sweep.epsilons, sweep.windows)

    def _grid(
        self,
        streams: Sequence[Stream],
        mechanisms: Sequence[str],
        epsilons: Sequence[float],
        windows: Sequence[int],
    ) -> Experiment:
        return Experiment(
            streams,
            mechanisms,
            epsilons,
            windows,
            repeats=self.repeats,
            options=AS_PRINTED,
            seed=self.seed,
        )


def chosen(name: str) -> tuple[str, ...]:
    """Return the names of one study, or of `all` of them.

    >>> chosen("fig-roc")
    ('fig-roc',)
    """
    if name == ALL:
        return NAMES
    if name not in NAMES:
        known = f"one of: {', '.join((ALL, *NAMES))}"
        raise Mistake(Problem.OPTION, option="the experiment", given=repr(name), expected=known)
    return (name,)


def _each_once(runs: Sequence[Row]) -> list[Row]:
    """Drop duplicates: a run that two panels share must not count as two repeats."""
    parameters = ("fingerprint", "mechanism", "epsilon", "window", "repeat")
    return list({tuple(run[name] for name in parameters): run for run in runs}.values())
