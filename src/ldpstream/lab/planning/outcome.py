"""The outcome to expect of one mechanism with one oracle: error and effort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import sqrt

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.messages import Ask


class OutcomeSource(StrEnum):
    """The source of an outcome's numbers."""

    FORMULA = "formula"
    """The variance that the oracle states; nothing is random."""
    REHEARSAL = "rehearsal"
    """The mechanism itself, driven over a stream that does not change."""
    SIMULATION = "simulation"
    """The mechanism with a simulated fleet, on the sample stream."""
    REFERENCE = "reference"
    """The same on the stream that quantiles are planned on (`reference.py`)."""


@dataclass
class AskLog:
    """A log of what a mechanism asked for, timestamp by timestamp."""

    reports: list[int] = field(default_factory=list)
    """Reports asked for at each timestamp."""

    def open(self) -> None:
        """Begin a new timestamp."""
        self.reports.append(0)

    def note(self, ask: Ask) -> None:
        self.reports[-1] += ask.users


@dataclass(frozen=True)
class PlanOutcome:
    """One row of a plan. Errors are root mean squared errors of a bin, in the unit of the query.

    Those of a distribution are of its quantiles, in the unit of the number.
    """

    mechanism: str
    oracle: str
    rmse: float
    """Over all timestamps, from the first on."""
    standard_error: float | None
    """The standard error of `rmse`: 0 if nothing was random, None if a single run cannot tell."""
    settled: float
    """The root mean squared error over the last window only."""
    reports: float
    """Reports a device sends, per timestamp."""
    busiest: int
    """Reports at the busiest timestamp."""
    looks: float
    """Share of the timestamps at which anybody is asked: at the others a change goes unseen."""
    report_bytes: int
    how: OutcomeSource
    mae: Mapping[str, float] = field(default_factory=dict)
    """Of a distribution: the mean absolute errors of its quantiles and mean, by their names."""

    @property
    def blind(self) -> bool:
        return self.looks < 1


@dataclass(frozen=True)
class Errors:
    """Mean squared errors: of each run over its timestamps, and of each timestamp over the runs."""

    of_runs: Floats
    of_timestamps: Floats

    @classmethod
    def of(cls, table: Sequence[Floats]) -> Errors:
        """Make them from a table with a row for each run and a column for each timestamp."""
        stacked = np.stack(table)
        return cls(stacked.mean(axis=1), stacked.mean(axis=0))

    @property
    def rmse(self) -> float:
        return sqrt(float(self.of_runs.mean()))

    @property
    def standard_error(self) -> float | None:
        """The standard error of `rmse`: a square root halves a relative error."""
        return self.rmse * self.relative_doubt / 2 if len(self.of_runs) > 1 else None

    @property
    def relative_doubt(self) -> float:
        """Relative standard error of the mean squared error, from two runs or more."""
        mean = float(self.of_runs.mean())
        spread = float(self.of_runs.std(ddof=1)) / sqrt(len(self.of_runs))
        return spread / mean if mean else 0.0

    def settled(self, window: int) -> float:
        return sqrt(float(self.of_timestamps[-window:].mean()))


def outcome(
    mechanism: str,
    oracle: str,
    errors: Errors,
    logs: Sequence[AskLog],
    *,
    users: int,
    window: int,
    report_bytes: int,
    how: OutcomeSource,
    unit: float = 1.0,
    mae: Mapping[str, float] | None = None,
) -> PlanOutcome:
    """Return the outcome of some runs."""
    asked = np.array([log.reports for log in logs])
    return PlanOutcome(
        mechanism,
        oracle,
        rmse=unit * errors.rmse,
        standard_error=0.0
        if how is OutcomeSource.FORMULA
        else errors.standard_error and unit * errors.standard_error,
        settled=unit * errors.settled(window),
        reports=float(asked.mean()) / users,
        busiest=int(asked.max()),
        looks=float((asked > 0).mean()),
        report_bytes=report_bytes,
        how=how,
        mae=mae or {},
    )
