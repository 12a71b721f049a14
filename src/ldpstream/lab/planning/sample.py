"""Outcomes of mechanisms on a sample of the planned stream: simulated, not predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.lab.fleet import LabFleet
from ldpstream.lab.planning.outcome import AskLog, Errors, OutcomeSource, PlanOutcome, outcome
from ldpstream.lab.planning.predict import report_bytes
from ldpstream.lab.simulation import Progress, run
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.queries import DistributionQuery, Query
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import Settings
from ldpstream.numeric.range import MEAN, QUANTILES
from ldpstream.streams.stream import CountsStream, Snapshot, Stream


@dataclass(frozen=True)
class Sample:
    """A judge that simulates mechanisms; its outcomes are determined by `seed`."""

    stream: Stream
    repeats: int = 3
    seed: int = 0
    progress: Progress | None = None
    most_users: int = 10**7
    """A limit, since a simulated fleet takes memory for each user."""
    how: OutcomeSource = OutcomeSource.SIMULATION

    def __call__(self, mechanism: str, settings: Settings) -> PlanOutcome:
        stream = resized(self.stream, settings.users, self.seed)
        query = settings.query
        table, logs, absolute = [], [], []
        for sequence in np.random.SeedSequence(self.seed).spawn(self.repeats):
            rng = np.random.default_rng(sequence)
            built = build(mechanism, settings)
            fleet = LoggedFleet(LabFleet.of(built, rng))
            done = run(stream, built, rng, self.progress, fleet, query)
            errors = done.released - done.truth
            table.append((errors[:, _judged(query)] ** 2).mean(axis=1))
            absolute.append(np.abs(errors).mean(axis=0))
            logs.append(fleet.log)
        return outcome(
            mechanism,
            built.noise.oracle.value,
            Errors.of(table),
            logs,
            users=settings.users,
            window=settings.window,
            report_bytes=report_bytes(built),
            how=self.how,
            mae=_by_name(query, np.mean(absolute, axis=0)),
        )


def _judged(query: Query) -> slice:
    """Return the parts of an answer whose error mechanisms are compared by."""
    return query.quantiles if isinstance(query, DistributionQuery) else query.shares


def _by_name(query: Query, errors: Floats) -> dict[str, float]:
    """Return the errors of the quantiles and the mean, if it is a distribution that has them."""
    if not isinstance(query, DistributionQuery):
        return {}
    return dict(zip((*QUANTILES, MEAN), errors[query.bins :].tolist(), strict=True))


class LoggedFleet:
    """A fleet whose asks are logged."""

    def __init__(self, fleet: LabFleet) -> None:
        self._fleet = fleet
        self.log = AskLog()

    @property
    def reports(self) -> int:
        return self._fleet.reports

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        self.log.open()
        answer = self._fleet.at(t, snapshot)

        def noting(ask: Ask) -> Tally:
            self.log.note(ask)
            return answer(ask)

        return noting


def resized(stream: Stream, users: int, seed: int = 0) -> Stream:
    """Return a stream of the same histograms, held by another number of users."""
    if users == stream.users:
        return stream
    rng = np.random.default_rng(seed)
    table = np.stack([snapshot.counts for snapshot in stream.snapshots(rng)])
    return CountsStream(stream.name, stream.domain, table).held_by(users)
