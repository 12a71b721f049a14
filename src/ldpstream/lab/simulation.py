"""Run a mechanism over a stream with a simulated fleet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ldpstream.arguments import checked, one_of
from ldpstream.arrays import Flags, Floats
from ldpstream.errors import Mistake, Problem
from ldpstream.lab.fleet import LabFleet, Respondents
from ldpstream.lab.frames import Columns, pandas_frame, polars_frame
from ldpstream.lab.levelled import LevelledFleet, strata_of
from ldpstream.lab.metrics import Metrics, measure_answers, or_none
from ldpstream.lab.personal import PERSONAL, PersonalFleet, PersonalNoise, build_personal
from ldpstream.lab.transcripts import TranscribingFleet, Transcript, with_values
from ldpstream.mechanisms.filtered import Filtered
from ldpstream.mechanisms.levels import FleetLevels
from ldpstream.mechanisms.mechanism import Mechanism, drive
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.noise import VarianceRule
from ldpstream.mechanisms.queries import HISTOGRAM, Query
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.revision import Record, RecordedTally, revision
from ldpstream.mechanisms.settings import RunOptions, Settings
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import SelectionMethod
from ldpstream.refine.consistency import Consistency
from ldpstream.refine.intervals import Interval
from ldpstream.streams.correlated import correlated
from ldpstream.streams.persistent import persistent
from ldpstream.streams.stream import Stream

if TYPE_CHECKING:
    import pandas
    import polars

Progress = Callable[[int], None]
"""Called with the number of timestamps done since the last call."""


@dataclass(frozen=True, repr=False)
class Run:
    """The releases of one run, beside the truth."""

    truth: Floats
    """True frequencies, T x d; for another query, its true answers in their own unit."""
    released: Floats
    variance: Floats
    low: Floats
    """Lower ends of the intervals."""
    high: Floats
    fresh: Flags
    metrics: Metrics
    transcript: Transcript | None = None
    """What each user has sent, if it was asked for."""

    def __repr__(self) -> str:
        timestamps, bins = self.truth.shape
        metrics = self.metrics
        said = f"mre {metrics.mre:.4g}, mse {metrics.mse:.4g}, coverage {metrics.coverage:.3f}"
        return f"Run({timestamps:,} timestamps, {bins:,} bins: {said})"


def run(
    stream: Stream,
    mechanism: Mechanism,
    rng: np.random.Generator,
    progress: Progress | None = None,
    fleet: Respondents | None = None,
    query: Query = HISTOGRAM,
    lag: int | None = None,
) -> Run:
    """Drive `mechanism`, which answers `query`, from where it stands over the whole stream.

    For a filtered mechanism the history is also revised, with tallies up to `lag` timestamps later.
    """
    length, timestamps = query.length(len(stream.domain)), stream.timestamps
    fleet = fleet or LabFleet.of(mechanism, rng)
    truth, released, variance, low, high = (np.empty((timestamps, length)) for _ in range(5))
    fresh = np.empty(timestamps, np.bool_)
    record = Record(mechanism.noise) if isinstance(mechanism, Filtered) else None
    for row, snapshot in enumerate(stream.snapshots(rng)):
        t = row + 1
        heard: list[RecordedTally] = []
        raw = drive(mechanism.step(t), _overheard(fleet.at(t, snapshot), heard))
        if record is not None:
            record.add(raw.values, heard)
        release = query.shown(raw, mechanism.noise)
        truth[row] = query.truth(snapshot.counts)
        released[row], variance[row], fresh[row] = release.values, release.variance, release.fresh
        low[row], high[row] = release.interval
        if progress is not None:
            progress(1)
    counted = {"users": stream.users, "reports": fleet.reports, "publications": int(fresh.sum())}
    metrics = measure_answers(query, truth, released, (low, high), **counted)
    if isinstance(mechanism, Filtered) and record is not None:
        values, ends = _revised(record, mechanism, query, lag)
        revised = measure_answers(query, truth, values, ends, **counted)
        metrics = replace(metrics, revised_mse=revised.mse, revised_coverage=revised.coverage)
    return Run(truth, released, variance, low, high, fresh, metrics)


def _overheard(
    answer: Callable[[Ask], Tally], heard: list[RecordedTally]
) -> Callable[[Ask], Tally]:
    """Return a function that answers asks, and appends to `heard` what came of them."""

    def overheard(ask: Ask) -> Tally:
        tally = answer(ask)
        heard.append(RecordedTally(ask.epsilon, tally))
        return tally

    return overheard


def _revised(
    record: Record, mechanism: Filtered, query: Query, lag: int | None
) -> tuple[Floats, Interval]:
    """Return the revised history, and the ends of its intervals."""
    revised = revision(record, mechanism.fleet, mechanism.consistency, lag)
    values, low, high = revised.answers(query, mechanism.noise, slice(None))
    return values, (low, high)


@dataclass(frozen=True, repr=False)
class Simulation:
    """One mechanism on one stream: its repeats, and their mean figures.

    >>> from ldpstream import simulate, sin
    >>> simulate(sin(users=2_000, timestamps=20), "lpu", epsilon=1, window=5).mean("cfpu")
    0.2
    """

    stream: str
    mechanism: str
    oracle: str
    """The oracle of the reports; with levels, the oracles of all of them."""
    settings: Settings
    timestamps: int
    runs: tuple[Run, ...]
    seconds: float
    """Wall time of all repeats."""
    seed: int
    bins: tuple[str, ...]
    """The names of what is released at each timestamp: the labels, for a histogram."""

    def __repr__(self) -> str:
        settings = self.settings
        return (
            f"Simulation({self.mechanism} on {self.stream}: {settings.users:,} users, "
            f"{len(self.bins):,} bins, {self.timestamps:,} timestamps, epsilon {settings.epsilon}, "
            f"window {settings.window}, {len(self.runs)} repeat(s): mre {self.mean('mre'):.4g}, "
            f"cfpu {self.mean('cfpu'):.4g})"
        )

    def mean(self, metric: str) -> float:
        """Return the mean over the repeats of a figure of `Metrics`, by its name."""
        one_of("metric", metric, Metrics.__dataclass_fields__)
        return float(np.mean([getattr(run.metrics, metric) for run in self.runs]))

    def row(self) -> dict[str, object]:
        """Return the figures and all settings, as `ldpstream simulate --json` prints them."""
        return {
            "stream": self.stream,
            "mechanism": self.mechanism,
            "oracle": self.oracle,
            "epsilon": float(self.settings.epsilon),
            "window": self.settings.window,
            "users": self.settings.users,
            "timestamps": self.timestamps,
            "labels": self.settings.labels,
            "repeats": len(self.runs),
            "seed": self.seed,
            **{name: given for name, given in self.settings.columns().items() if name != "oracle"},
            **{name: or_none(self.mean(name)) for name in Metrics.__dataclass_fields__},
            "seconds": self.seconds,
        }

    def columns(self) -> Columns:
        """Return the releases as a tidy table: a row for each repeat, timestamp and label."""
        shape = (len(self.runs), self.timestamps, len(self.bins))
        repeat, row, label = (index.ravel() for index in np.indices(shape))
        tables = ("truth", "released", "variance", "low", "high")
        return {
            "stream": np.full(len(row), self.stream, object),
            "mechanism": np.full(len(row), self.mechanism, object),
            "repeat": repeat,
            "t": row + 1,
            "label": np.array(self.bins, object)[label],
            **{
                name: np.concatenate([getattr(run, name).ravel() for run in self.runs])
                for name in tables
            },
            "fresh": np.concatenate([run.fresh for run in self.runs]).repeat(len(self.bins)),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """Return the tidy table of `columns` as a pandas frame."""
        return pandas_frame(self.columns())

    def to_polars(self) -> polars.DataFrame:
        """Return the tidy table of `columns` as a Polars frame."""
        return polars_frame(self.columns())


def settings_of(
    stream: Stream,
    epsilon: Epsilon | float | str | None,
    window: int | None,
    options: RunOptions,
) -> Settings:
    """Return the settings of a run on this stream, checked.

    Without an epsilon or a window, they are those of the strictest level.
    """
    if not callable(getattr(stream, "snapshots", None)):  # a name or a frame of somebody's data
        given = repr(stream) if isinstance(stream, str) else f"of type {type(stream).__name__}"
        expected = "one that sin(), read_counts(file), from_frame(frame) or the like return"
        raise Mistake(Problem.OPTION, option="stream", given=given, expected=expected)
    for name, missing in (("epsilon", epsilon), ("window", window)):
        if missing is None and options.levels is None:
            raise Mistake(Problem.OPTION, option=name, given="missing", expected="it, or levels")
    if options.levels is not None:
        epsilon = options.levels.epsilon if epsilon is None else epsilon
        window = options.levels.window if window is None else window
    assert epsilon is not None
    assert window is not None
    settings = options.at(len(stream.domain), stream.users, Epsilon.of(epsilon), window)
    population_of(stream, settings)
    return settings


def population_of(stream: Stream, settings: Settings) -> Stream:
    """Return the stream with users who persist, or whose level goes with their value."""
    levels = settings.levels
    if levels is None or not levels.correlation:
        return persistent(stream, settings.persistence)
    sizes = tuple(levels.sizes(stream.users).tolist())
    return correlated(stream, sizes, levels.correlation)


def built(mechanism: str, settings: Settings) -> Mechanism:
    """Return the mechanism of that name, or the comparator of levels, at t = 0."""
    name = mechanism.lower()
    return build_personal(name, settings) if name in PERSONAL else build(name, settings)


def fleet_of(
    mechanism: Mechanism,
    settings: Settings,
    rng: np.random.Generator,
    *,
    transcribed: bool = False,
) -> Respondents:
    """Return the fleet that this mechanism was built for, with all that the settings say of it."""
    if transcribed:
        return TranscribingFleet.of(mechanism, rng, settings.selection)
    if settings.levels is None:
        return LabFleet.of(mechanism, rng, settings.selection)
    if isinstance(mechanism.noise, PersonalNoise):
        return PersonalFleet(mechanism.noise, mechanism.window, settings.levels, rng)
    return LevelledFleet(settings, settings.levels, rng)


def oracle_of(mechanism: Mechanism, settings: Settings) -> str:
    """Return the oracle of a run's reports; those of several levels are joined by a +."""
    if settings.levels is None or isinstance(mechanism.noise, PersonalNoise):
        return mechanism.noise.oracle.value
    oracles = [one.noise.oracle.value for one in strata_of(settings, settings.levels)]
    return "+".join(dict.fromkeys(oracles))


def check_repeats(repeats: int, seed: int) -> None:
    """Refuse numbers of repeats and seeds that cannot be used."""
    for name, given, least in (("repeats", repeats, 1), ("seed", seed, 0)):
        if given < least:
            raise Mistake(Problem.OPTION, option=name, given=given, expected=f"{least} or more")


@checked
def simulate(
    stream: Stream,
    mechanism: str,
    *,
    epsilon: Epsilon | float | str | None = None,
    window: int | None = None,
    oracle: Oracle | Numeric | str = "auto",
    variance: VarianceRule | str = VarianceRule.CORRECTED,
    pool: bool = False,
    consistency: Consistency | str | None = None,
    intervals: bool = False,
    query: Query = HISTOGRAM,
    persistence: float = 0.0,
    selection: SelectionMethod | str | None = None,
    levels: FleetLevels | str | None = None,
    lag: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    transcripts: bool = False,
    progress: Progress | None = None,
) -> Simulation:
    """Simulate a named mechanism on a stream; the result is determined by `seed`.

    >>> from ldpstream.streams.synthetic import sin
    >>> result = simulate(sin(users=20_000, timestamps=100), "lpa", epsilon=1, window=10)
    >>> result.mean("cfpu") <= 1 / 10
    True

    Args:
        stream: who holds what when: `sin()`, `read_counts()`, `read_events()`, `from_frame()` ...
        mechanism: a name, with parameters if it has any: "lpf", "fast(theta=5)".
        epsilon: the privacy budget of any window, from 1e-9 to 32.
        window: the length w of the window, in timestamps.
        oracle: the randomiser of the reports: "grr", "oue", "olh" ...; "auto" is the best one.
        variance: the formula that mechanisms decide by: "corrected", or "paper", as printed.
        pool: publish from the dissimilarity reports as well.
        consistency: post-processing: "none", "clip", "norm-sub" or "base-cut"; None means the
            mechanism's own.
        intervals: compute errors and intervals that hold for carried-over releases, too.
        query: what is asked: a histogram, `MeanQuery(low, high)` or `DistributionQuery(...)`.
        persistence: the share of the users who keep their values as far as the counts allow.
        selection: how users come to report: "roster", "open" or "slots"; None means "roster", and
            "slots" with levels.
        levels: levels of privacy, as in "0.5:40:0.3,1:20:0.7", in place of epsilon and window.
        lag: the timestamps after t whose tallies a revised figure may rest on; None means all.
        repeats: the number of runs.
        seed: the seed of all random choices.
        transcripts: let a device draw each report, and keep what each user has sent
            (`Run.transcript`). It is slow: for small fleets, and for histograms without levels.
        progress: called with the number of timestamps done since its last call.
    """
    options = RunOptions.read(
        oracle=oracle,
        variance=variance,
        pool=pool,
        consistency=consistency,
        intervals=intervals,
        query=query,
        persistence=persistence,
        selection=selection,
        levels=levels,
        lag=lag,
    )
    settings = settings_of(stream, epsilon, window, options)
    return simulate_at(
        settings,
        stream,
        mechanism,
        repeats=repeats,
        seed=seed,
        transcripts=transcripts,
        progress=progress,
    )


def simulate_at(
    settings: Settings,
    stream: Stream,
    mechanism: str,
    *,
    repeats: int = 1,
    seed: int = 0,
    transcripts: bool = False,
    progress: Progress | None = None,
) -> Simulation:
    """Simulate a named mechanism with settings that are checked already (`settings_of`)."""
    check_repeats(repeats, seed)
    started = time.perf_counter()
    source, runs = population_of(stream, settings), []
    if transcripts:
        source = with_values(source, settings)
    for sequence in np.random.SeedSequence(seed).spawn(repeats):
        one = built(mechanism, settings)
        rng = np.random.default_rng(sequence)
        fleet = fleet_of(one, settings, rng, transcribed=transcripts)
        done = run(source, one, rng, progress, fleet, settings.query, settings.lag)
        if isinstance(fleet, TranscribingFleet):
            done = replace(done, transcript=fleet.transcript())
        runs.append(done)
    return Simulation(
        stream.name,
        mechanism,
        oracle_of(one, settings),
        settings,
        stream.timestamps,
        tuple(runs),
        time.perf_counter() - started,
        seed,
        settings.query.names(stream.domain.labels),
    )
