"""Run a mechanism over a stream with a simulated fleet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.errors import Mistake, Problem
from ldpstream.lab.metrics import Metrics, measure
from ldpstream.lab.roster import Roster
from ldpstream.mechanisms.mechanism import Mechanism, drive
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.noise import VarianceRule
from ldpstream.mechanisms.registry import Settings, build
from ldpstream.oracles import Oracle
from ldpstream.privacy.accountant import Accountant, Users
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import Snapshot, Stream

Progress = Callable[[int], None]
"""Called with the number of timestamps done since the last call."""


class Fleet:
    """N simulated devices: answers asks, under the eyes of an accountant."""

    def __init__(
        self,
        oracle: Oracle,
        labels: int,
        accountant: Accountant,
        roster: Roster,
        users: int,
        rng: np.random.Generator,
    ) -> None:
        self._oracle = oracle
        self._labels = labels
        self._accountant = accountant
        self._roster = roster
        self._users = users
        self._rng = rng
        self.reports = 0

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        """How the fleet answers asks while it is as in `snapshot`."""

        def answer(ask: Ask) -> Tally:
            asked = self._select(t, ask.users)
            self._accountant.charge(t, asked, ask.epsilon)
            self.reports += ask.users
            truth = snapshot.counts if asked is None else snapshot.counts_of(asked, self._rng)
            lab = self._oracle.lab(self._labels, ask.epsilon)
            collector = self._oracle.collector(self._labels, ask.epsilon)
            return Tally.of(collector, lab.sample_support(truth, self._rng), self._users)

        return answer

    def _select(self, t: int, size: int) -> Users | None:
        """Everyone (None), or a sample of those who have not reported in this window."""
        return None if size == self._users else self._roster.sample(t, size)


@dataclass(frozen=True)
class Run:
    """What one run released, beside the truth."""

    truth: NDArray[np.float64]
    """T x d true frequencies."""
    released: NDArray[np.float64]
    variance: NDArray[np.float64]
    fresh: NDArray[np.bool_]
    metrics: Metrics


def run(
    stream: Stream, mechanism: Mechanism, rng: np.random.Generator, progress: Progress | None = None
) -> Run:
    """Drive `mechanism`, from where it stands, over the whole stream."""
    labels, users, timestamps = len(stream.domain), stream.users, stream.timestamps
    division = mechanism.division
    accountant = Accountant(users, division.epsilon, division.window)
    roster = Roster(users, division.window, rng)
    fleet = Fleet(mechanism.noise.oracle, labels, accountant, roster, users, rng)
    truth, released, variance = (np.empty((timestamps, labels)) for _ in range(3))
    fresh = np.empty(timestamps, np.bool_)
    for row, snapshot in enumerate(stream.snapshots(rng)):
        t = row + 1
        release = drive(mechanism.step(t), fleet.at(t, snapshot))
        truth[row] = snapshot.counts / users
        released[row], variance[row], fresh[row] = release.values, release.variance, release.fresh
        if progress is not None:
            progress(1)
    metrics = measure(
        truth, released, users=users, reports=fleet.reports, publications=int(fresh.sum())
    )
    return Run(truth, released, variance, fresh, metrics)


@dataclass(frozen=True)
class Simulation:
    """One mechanism on one stream: its repeats, and their mean figures."""

    stream: str
    mechanism: str
    oracle: Oracle
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
            "oracle": self.oracle.value,
            "epsilon": float(self.settings.epsilon),
            "window": self.settings.window,
            "users": self.settings.users,
            "timestamps": self.timestamps,
            "labels": self.settings.labels,
            "repeats": len(self.runs),
            **{name: self.mean(name) for name in Metrics.__dataclass_fields__},
            "seconds": self.seconds,
        }


def simulate(
    stream: Stream,
    mechanism: str,
    *,
    epsilon: Epsilon | float | str,
    window: int,
    oracle: Oracle | str = "auto",
    variance: VarianceRule | str = VarianceRule.CORRECTED,
    pool: bool = False,
    repeats: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Simulation:
    """Simulate a named mechanism; everything follows from `seed`.

    >>> from ldpstream.streams.synthetic import sin
    >>> result = simulate(sin(users=20_000, timestamps=100), "lpa", epsilon=1, window=10)
    >>> result.mean("cfpu") <= 1 / 10
    True
    """
    settings = Settings(
        labels=len(stream.domain),
        users=stream.users,
        epsilon=Epsilon.of(epsilon),
        window=window,
        oracle=None if oracle == "auto" else Oracle.named(oracle),
        variance=VarianceRule(variance),
        pool=pool,
    )
    for name, given, least in (("repeats", repeats, 1), ("seed", seed, 0)):
        if given < least:
            raise Mistake(Problem.OPTION, option=name, given=given, expected=f"{least} or more")
    started = time.perf_counter()
    runs = []
    for sequence in np.random.SeedSequence(seed).spawn(repeats):
        built = build(mechanism, settings)
        runs.append(run(stream, built, np.random.default_rng(sequence), progress))
    return Simulation(
        stream.name,
        mechanism,
        built.noise.oracle,
        settings,
        stream.timestamps,
        tuple(runs),
        time.perf_counter() - started,
    )
