"""The streams, mechanisms and parameters that each figure of the paper is made of.

The text gives the defaults (epsilon 1, w 20, 30 or 50) and some of the values on the axes; where
it gives none, ours span the same range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ldpstream.lab.figures.charts import Axis, Chart, Panel, Row
from ldpstream.mechanisms.registry import CLASSIC
from ldpstream.streams.stream import CountsStream, Stream
from ldpstream.streams.synthetic import TIMESTAMPS, USERS, lns, log, sin

Make = Callable[..., CountsStream]
SEVEN = ("lbu", "lbd", "lba", "lsp", "lpu", "lpd", "lpa")
TRUSTED = ("central-uniform", "central-sampling", "central-bd", "central-ba")
CLASSIC_BUDGET = tuple(f"{name}-budget" for name in CLASSIC)
MONITORS = ("lba", "lsp", "lpu", "lpd", "lpa")
"""The five whose ROC the paper shows."""

EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5)
WINDOWS = (10, 20, 30, 40, 50)
POPULATION_FACTORS = (0.25, 0.5, 1, 2, 4)
WALK_STEPS = (0.001, 0.002, 0.004, 0.008, 0.016)
SINE_SPEEDS = (0.005, 0.01, 0.02, 0.05, 0.1)

MOST_TIMESTAMPS = 1000
"""Longer real streams are cut: the paper's longest has 886."""

EPSILON = Axis("epsilon", "privacy budget ε of a window")
WINDOW = Axis("window", "window w, timestamps")
POPULATION = Axis("users", "population N, users", log=True)
STEP = Axis("sd", "√Q, standard deviation of a step", log=True)
SPEED = Axis("b", "b, radians per timestamp", log=True)

MRE = Axis("mre", "mean relative error (MRE)", log=True)
CFPU = Axis("cfpu", "reports per user and timestamp (CFPU)", log=True)
HITS = Axis("tpr", "true-positive rate")

BARS = "Error bars: one standard deviation over the repeats."
DASHED = "Dashed grey: the same task with a trusted server (Laplace noise, Kellaris et al.)."


@dataclass(frozen=True)
class Sweep:
    """One panel: streams, epsilons and windows of which one varies along the x axis."""

    title: str
    axis: Axis
    streams: tuple[Stream, ...]
    epsilons: tuple[float, ...] = (1.0,)
    windows: tuple[int, ...] = (20,)
    places: Mapping[str, float] = field(default_factory=dict)
    """Where each stream, by fingerprint, stands on the x axis, if that is a parameter of it."""

    def rows(self, runs: Sequence[Row]) -> list[Row]:
        """Return those of many runs that belong to this panel, with the column of its axis."""
        streams = {stream.fingerprint for stream in self.streams}
        return [
            {**row, self.axis.name: self.places.get(row["fingerprint"], row.get(self.axis.name))}
            for row in runs
            if row["fingerprint"] in streams
            and row["epsilon"] in self.epsilons
            and row["window"] in self.windows
        ]


@dataclass(frozen=True)
class Study:
    """A figure of the paper: what to run, and what to show of it."""

    name: str
    shows: str
    title: str
    caption: str
    y: Axis
    mechanisms: tuple[str, ...]
    sweeps: tuple[Sweep, ...]

    def chart(self, runs: Sequence[Row]) -> Chart:
        own = [row for row in runs if row["mechanism"] in self.mechanisms]
        panels = tuple(self._panel(sweep, sweep.rows(own)) for sweep in self.sweeps)
        return Chart(self.name, f"{self.shows}: {self.title}", self.caption, self.y, panels)

    def _panel(self, sweep: Sweep, rows: Sequence[Row]) -> Panel:
        if self.y is HITS:
            return Panel.of_roc(sweep.title, rows)
        return Panel.of(sweep.title, sweep.axis, self.y.name, rows)


@dataclass(frozen=True)
class StudyStreams:
    """The streams of all studies: real ones, and the synthetic ones in the paper's size."""

    real: tuple[Stream, ...] = ()
    users: int = USERS
    timestamps: int = TIMESTAMPS

    @property
    def streams(self) -> tuple[Stream, ...]:
        return (self.make(lns), self.make(sin), self.make(log), *self.real)

    def make(self, make: Make, **parameters: float) -> Stream:
        return make(**{"users": self.users, "timestamps": self.timestamps, **parameters})

    def populations(self, make: Make) -> tuple[Stream, ...]:
        sizes = (int(self.users * factor) for factor in POPULATION_FACTORS)
        return tuple(self.make(make, users=users) for users in sizes)

    def varied(
        self, make: Make, axis: Axis, values: Sequence[float]
    ) -> tuple[tuple[Stream, ...], dict[str, float]]:
        """Return a stream for each value of its parameter, and where each stands on that axis."""
        streams = tuple(self.make(make, **{axis.name: value}) for value in values)
        return streams, {s.fingerprint: value for s, value in zip(streams, values, strict=True)}


def error_by_epsilon(scope: StudyStreams) -> Study:
    sweeps = [
        Sweep(f"{_shown(s)}, w = 20", EPSILON, (s,), epsilons=EPSILONS) for s in scope.streams
    ]
    return Study(
        "fig-epsilon",
        "Figure 4",
        "error against the privacy budget",
        f"w = 20. {BARS} {DASHED}",
        MRE,
        SEVEN + TRUSTED,
        tuple(sweeps),
    )


def error_by_window(scope: StudyStreams) -> Study:
    sweeps = [Sweep(f"{_shown(s)}, ε = 1", WINDOW, (s,), windows=WINDOWS) for s in scope.streams]
    return Study(
        "fig-window",
        "Figure 5",
        "error against the window",
        f"ε = 1. {BARS} {DASHED}",
        MRE,
        SEVEN + TRUSTED,
        tuple(sweeps),
    )


def error_by_population(scope: StudyStreams) -> Study:
    walks, sines = scope.populations(lns), scope.populations(sin)
    return Study(
        "fig-population",
        "Figure 6 (a, b)",
        "error against the population",
        f"ε = 1, w = 30, the same frequencies for every N. {BARS}",
        MRE,
        SEVEN,
        (
            Sweep("LNS", POPULATION, walks, windows=(30,)),
            Sweep("Sin", POPULATION, sines, windows=(30,)),
        ),
    )


def error_by_fluctuation(scope: StudyStreams) -> Study:
    walks, steps = scope.varied(lns, STEP, WALK_STEPS)
    sines, speeds = scope.varied(sin, SPEED, SINE_SPEEDS)
    return Study(
        "fig-fluctuation",
        "Figure 6 (c, d)",
        "error against the fluctuation of the stream",
        f"ε = 1, w = 30. {BARS}",
        MRE,
        SEVEN,
        (
            Sweep("LNS", STEP, walks, windows=(30,), places=steps),
            Sweep("Sin", SPEED, sines, windows=(30,), places=speeds),
        ),
    )


def event_monitoring(scope: StudyStreams) -> Study:
    sweeps = [Sweep(_shown(stream), WINDOW, (stream,), windows=(50,)) for stream in scope.streams]
    return Study(
        "fig-roc",
        "Figure 7",
        "finding the timestamps at which a frequency is high",
        "ε = 1, w = 50. An event: a label's frequency is above 0.75 (max - min) + min of its own; "
        "all labels pooled. Curves are means over the repeats; AUC is the area under them.",
        HITS,
        MONITORS,
        tuple(sweeps),
    )


def communication(scope: StudyStreams) -> Study:
    walk = scope.make(lns)
    walks, steps = scope.varied(lns, STEP, WALK_STEPS)
    return Study(
        "fig-communication",
        "Figure 8",
        "communication on LNS",
        f"ε = 1 and w = 20, except along their own axes. LSP lies under LPU. {BARS}",
        CFPU,
        SEVEN,
        (
            Sweep("population", POPULATION, scope.populations(lns)),
            Sweep("fluctuation", STEP, walks, places=steps),
            Sweep("privacy budget", EPSILON, (walk,), epsilons=EPSILONS),
            Sweep("window", WINDOW, (walk,), windows=WINDOWS),
        ),
    )


def remark_3(scope: StudyStreams) -> Study:
    sweeps = [
        Sweep(f"{_shown(s)}, w = 20", EPSILON, (s,), epsilons=EPSILONS) for s in scope.streams
    ]
    return Study(
        "fig-remark3",
        "Remark 3",
        "mechanisms of others, under budget and population division",
        f"w = 20. {BARS} What was assumed to carry each of them over to local reports is said in "
        "docs/mechanisms.md.",
        MRE,
        CLASSIC + CLASSIC_BUDGET,
        tuple(sweeps),
    )


FIGURES: Mapping[str, Callable[[StudyStreams], Study]] = {
    "fig-epsilon": error_by_epsilon,
    "fig-window": error_by_window,
    "fig-population": error_by_population,
    "fig-fluctuation": error_by_fluctuation,
    "fig-roc": event_monitoring,
    "fig-communication": communication,
    "fig-remark3": remark_3,
}


def _shown(stream: Stream) -> str:
    return {"lns": "LNS", "sin": "Sin", "log": "Log"}.get(stream.name, stream.name)
