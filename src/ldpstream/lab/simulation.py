"""Run a mechanism over a stream with a simulated fleet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Unpack

import numpy as np

from ldpstream.arrays import Flags, Floats
from ldpstream.errors import Mistake, Problem
from ldpstream.lab.levelled import LevelledFleet, strata_of
from ldpstream.lab.metrics import Metrics, covered, measure, or_none
from ldpstream.lab.personal import PERSONAL, PersonalFleet, PersonalNoise, build_personal
from ldpstream.lab.selection import SELECTORS, Selector
from ldpstream.mechanisms.filtered import Filtered
from ldpstream.mechanisms.mechanism import Mechanism, drive
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.noise import Noise
from ldpstream.mechanisms.queries import HISTOGRAM, Query
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.revision import Heard, Record, revision
from ldpstream.mechanisms.settings import RunOptions, Settings, WrittenOptions
from ldpstream.privacy.accountant import Accountant
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Selection
from ldpstream.streams.correlated import correlated
from ldpstream.streams.persistent import persistent
from ldpstream.streams.stream import Snapshot, Stream

Progress = Callable[[int], None]
"""Called with the number of timestamps done since the last call."""


class Respondents(Protocol):
    """The fleet that answers the asks of a mechanism in a run."""

    @property
    def reports(self) -> int:
        """The number of reports sent so far."""
        ...

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        """Return the function that answers the asks of t, when the fleet holds `snapshot`."""
        ...


class Fleet:
    """N simulated devices: each randomises its own report, and an accountant checks the budget."""

    def __init__(
        self,
        noise: Noise,
        accountant: Accountant,
        selector: Selector,
        rng: np.random.Generator,
    ) -> None:
        self._noise = noise
        self._accountant = accountant
        self._selector = selector
        self._rng = rng
        self.reports = 0

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        rng: np.random.Generator,
        selection: Selection = Selection.ROSTER,
    ) -> Fleet:
        """Return the fleet that this mechanism was built for."""
        division = mechanism.division
        users = division.population
        accountant = Accountant(users, division.epsilon, division.window)
        selector = SELECTORS[selection](users, division.window, rng)
        return cls(mechanism.noise, accountant, selector, rng)

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        def answer(ask: Ask) -> Tally:
            users = self._selector.select(t, ask)
            self._accountant.charge(t, users, ask.epsilon)
            truth = snapshot.counts if users is None else snapshot.counts_of(users, self._rng)
            self.reports += ask.users if users is None else len(users)
            lab, inputs = self._noise.lab(ask.epsilon), self._noise.inputs(truth)
            return self._noise.tally(ask.epsilon, lab.sample_support(inputs, self._rng))

        return answer


@dataclass(frozen=True)
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

    Of a filtered one the history is revised, too, with tallies up to `lag` timestamps later.
    """
    length, timestamps = query.length(len(stream.domain)), stream.timestamps
    fleet = fleet or Fleet.of(mechanism, rng)
    truth, released, variance, low, high = (np.empty((timestamps, length)) for _ in range(5))
    fresh = np.empty(timestamps, np.bool_)
    record = Record(mechanism.noise) if isinstance(mechanism, Filtered) else None
    for row, snapshot in enumerate(stream.snapshots(rng)):
        t = row + 1
        heard: list[Heard] = []
        raw = drive(mechanism.step(t), _overheard(fleet.at(t, snapshot), heard))
        if record is not None:
            record.add(raw.values, heard)
        release = query.shown(raw, mechanism.noise)
        truth[row] = query.truth(snapshot.counts)
        released[row], variance[row], fresh[row] = release.values, release.variance, release.fresh
        low[row], high[row] = release.interval
        if progress is not None:
            progress(1)
    metrics = measure(
        truth,
        released,
        (low, high),
        users=stream.users,
        reports=fleet.reports,
        publications=int(fresh.sum()),
        unit=query.unit,
    )
    if isinstance(mechanism, Filtered) and record is not None:
        mse, coverage = _revised(record, mechanism, query, truth, lag)
        metrics = replace(metrics, revised_mse=mse, revised_coverage=coverage)
    return Run(truth, released, variance, low, high, fresh, metrics)


def _overheard(answer: Callable[[Ask], Tally], heard: list[Heard]) -> Callable[[Ask], Tally]:
    """Return a function that answers asks, and appends to `heard` what came of them."""

    def overheard(ask: Ask) -> Tally:
        tally = answer(ask)
        heard.append(Heard(ask.epsilon, tally))
        return tally

    return overheard


def _revised(
    record: Record, mechanism: Filtered, query: Query, truth: Floats, lag: int | None
) -> tuple[float, float]:
    """Return the error of the revised history, and the coverage of its intervals."""
    revised = revision(record, mechanism.fleet, mechanism.consistency, lag)
    shown = [query.shown(release, mechanism.noise) for release in revised.releases]
    values = np.array([release.values for release in shown])
    low, high = (np.array(ends) for ends in zip(*(one.interval for one in shown), strict=True))
    return float(np.mean((values - truth) ** 2)), covered(truth, (low, high))


@dataclass(frozen=True)
class Simulation:
    """One mechanism on one stream: its repeats, and their mean figures."""

    stream: str
    mechanism: str
    oracle: str
    """The oracle of the reports; with levels, the oracles of all of them."""
    settings: Settings
    timestamps: int
    runs: tuple[Run, ...]
    seconds: float
    """Wall time of all repeats."""

    def mean(self, metric: str) -> float:
        return float(np.mean([getattr(run.metrics, metric) for run in self.runs]))

    def row(self) -> dict[str, object]:
        """The figures as `ldpstream simulate --json` prints them."""
        return {
            "stream": self.stream,
            "mechanism": self.mechanism,
            "oracle": self.oracle,
            "epsilon": float(self.settings.epsilon),
            "window": self.settings.window,
            **({"levels": str(self.settings.levels)} if self.settings.levels else {}),
            "users": self.settings.users,
            "timestamps": self.timestamps,
            "labels": self.settings.labels,
            "repeats": len(self.runs),
            **{name: or_none(self.mean(name)) for name in Metrics.__dataclass_fields__},
            "seconds": self.seconds,
        }


def settings_of(
    stream: Stream,
    epsilon: Epsilon | float | str | None,
    window: int | None,
    options: RunOptions,
) -> Settings:
    """Return the settings of a run on this stream, checked.

    Without an epsilon or a window, they are those of the strictest level.
    """
    for name, given in (("epsilon", epsilon), ("window", window)):
        if given is None and options.levels is None:
            raise Mistake(Problem.OPTION, option=name, given=None, expected="one, or levels")
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


def fleet_of(mechanism: Mechanism, settings: Settings, rng: np.random.Generator) -> Respondents:
    """Return the fleet that this mechanism was built for, with all that the settings say of it."""
    if settings.levels is None:
        return Fleet.of(mechanism, rng, settings.selection)
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


def simulate(
    stream: Stream,
    mechanism: str,
    *,
    epsilon: Epsilon | float | str | None = None,
    window: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Unpack[WrittenOptions],
) -> Simulation:
    """Simulate a named mechanism; the result is determined by `seed`.

    >>> from ldpstream.streams.synthetic import sin
    >>> result = simulate(sin(users=20_000, timestamps=100), "lpa", epsilon=1, window=10)
    >>> result.mean("cfpu") <= 1 / 10
    True
    """
    settings = settings_of(stream, epsilon, window, RunOptions.read(**options))
    check_repeats(repeats, seed)
    started = time.perf_counter()
    source, runs = population_of(stream, settings), []
    for sequence in np.random.SeedSequence(seed).spawn(repeats):
        one = built(mechanism, settings)
        rng = np.random.default_rng(sequence)
        fleet = fleet_of(one, settings, rng)
        runs.append(run(source, one, rng, progress, fleet, settings.query, settings.lag))
    return Simulation(
        stream.name,
        mechanism,
        oracle_of(one, settings),
        settings,
        stream.timestamps,
        tuple(runs),
        time.perf_counter() - started,
    )
