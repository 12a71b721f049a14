"""The error of a mechanism on a stream that does not change.

There are three ways, of which the cheapest that applies is used:

- **formula**: if an allocation asks the same whatever the tallies say, a release has the variance
  of the tally it rests on, which the oracle states.
- **rehearsal of copies**: a filter over such an allocation; hundreds of filters run as one.
- **rehearsal**: any other mechanism publishes at random times. The mechanism itself is driven,
  again and again, until its mean squared error is known well enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.lab.planning.copies import Copies
from ldpstream.lab.planning.outcome import AskLog, Errors, OutcomeSource, PlanOutcome, outcome
from ldpstream.lab.planning.still_stream import StillStream
from ldpstream.mechanisms.filtered import Filtered
from ldpstream.mechanisms.mechanism import Mechanism, drive
from ldpstream.mechanisms.messages import Ask, Release, Tally
from ldpstream.mechanisms.registry import recipe
from ldpstream.mechanisms.sampling import Sampling
from ldpstream.mechanisms.settings import Settings
from ldpstream.mechanisms.uniform import Uniform

HORIZON = 5
"""Windows that a prediction is made for, from the first timestamp on."""
COLUMNS = 400
"""Labels of all copies of a filter together."""
PRECISE = 0.06
"""Rehearsals end when the mean squared error has this relative standard error (its root: half)."""
LEAST_RUNS = 12
MOST_STEPS = 40_000
"""Timestamps of all rehearsals of one mechanism together: some seconds."""


@dataclass(frozen=True)
class Prediction:
    """A judge that predicts outcomes over a number of timestamps, from a seed."""

    timestamps: int
    seed: int = 0
    most_users: int = 10**9

    def __call__(self, mechanism: str, settings: Settings) -> PlanOutcome:
        """Return the outcome of a named mechanism.

        >>> from ldpstream.privacy.epsilon import Epsilon
        >>> settings = Settings(labels=2, users=200_000, epsilon=Epsilon.of(1), window=20)
        >>> round(Prediction(timestamps=100)("lpu", settings).rmse, 4)
        0.0106
        """
        way = _way(mechanism)
        built = recipe(mechanism).build(settings)
        still = StillStream.under(built.noise)
        errors, logs = way(partial(recipe(mechanism).build, settings), still, self)
        return outcome(
            mechanism,
            built.noise.oracle.value,
            errors,
            logs,
            users=settings.users,
            window=settings.window,
            report_bytes=report_bytes(built),
            how=OutcomeSource.FORMULA if way is by_formula else OutcomeSource.REHEARSAL,
            unit=settings.query.unit,
        )


Build = Callable[[], Mechanism]
Way = Callable[[Build, StillStream, Prediction], tuple[Errors, list[AskLog]]]


def _way(mechanism: str) -> Way:
    made_of = recipe(mechanism)
    if not made_of.filtered and made_of.allocation in (Uniform, Sampling):
        return by_formula
    if made_of.filtered and made_of.allocation is Uniform:
        return by_copies
    return by_rehearsal


def report_bytes(mechanism: Mechanism) -> int:
    """Return the bytes of a report; all reports of a stream have the same length."""
    oracle: Any = mechanism.noise.oracle
    labels = getattr(mechanism.noise, "levels", mechanism.noise.labels)
    size: int = oracle.device(labels, mechanism.division.epsilon).report_bytes
    return size


def by_formula(build: Build, still: StillStream, plan: Prediction) -> tuple[Errors, list[AskLog]]:
    """Predict from tallies that equal the truth: a release's variance is its expected error."""
    mechanism, log = build(), AskLog()
    # The asks are the same in every window.
    timestamps = range(1, min(plan.timestamps, mechanism.window) + 1)
    variances = [_step(mechanism, t, log, still.exact).variance.mean() for t in timestamps]
    return Errors.of([np.array(variances)]), [log]


def by_copies(build: Build, still: StillStream, plan: Prediction) -> tuple[Errors, list[AskLog]]:
    mechanism, log = build(), AskLog()
    assert isinstance(mechanism, Filtered)
    rng = np.random.default_rng(plan.seed)
    bins = len(still.truth)
    copies = Copies(bins, max(2, COLUMNS // bins))
    table = []
    for t in range(1, plan.timestamps + 1):
        ask = _only_ask(mechanism.inner, t, log, still)
        estimates = still.draw_many(ask, copies.copies, rng)
        variances = _reweighed(mechanism, still.exact(ask), ask, copies)
        copies.update(estimates.ravel(), variances)
        table.append(_squared(copies.shown(mechanism.consistency), still))
    return Errors.of(list(np.array(table).T)), [log]


def _only_ask(mechanism: Mechanism, t: int, log: AskLog, still: StillStream) -> Ask:
    asks: list[Ask] = []

    def answer(ask: Ask) -> Tally:
        asks.append(ask)
        return still.exact(ask)

    _step(mechanism, t, log, answer)
    (ask,) = asks
    return ask


def _reweighed(mechanism: Mechanism, tally: Tally, ask: Ask, copies: Copies) -> Floats:
    """Return the variance at the frequencies known so far, as `Observed` does."""
    variance = mechanism.noise.bin_variance(ask.epsilon, tally, copies.estimate)
    return np.broadcast_to(variance, copies.estimate.shape)


def by_rehearsal(build: Build, still: StillStream, plan: Prediction) -> tuple[Errors, list[AskLog]]:
    seeds = np.random.SeedSequence(plan.seed)
    table: list[Floats] = []
    logs: list[AskLog] = []
    # A check after every run would stop at the first few that happen to agree: check, then double.
    more = LEAST_RUNS
    while True:
        for sequence in seeds.spawn(more):
            errors, log = _run(build(), still, plan.timestamps, np.random.default_rng(sequence))
            table.append(errors)
            logs.append(log)
        found, more = Errors.of(table), len(table)
        if found.relative_doubt < PRECISE or 2 * more * plan.timestamps > MOST_STEPS:
            return found, logs


def _run(
    mechanism: Mechanism, still: StillStream, timestamps: int, rng: np.random.Generator
) -> tuple[Floats, AskLog]:
    log = AskLog()
    answer = partial(still.draw, rng=rng)
    errors = [
        _squared(_step(mechanism, t, log, answer).values, still) for t in range(1, timestamps + 1)
    ]
    return np.array(errors), log


def _step(mechanism: Mechanism, t: int, log: AskLog, answer: Callable[[Ask], Tally]) -> Release:
    """Run one timestamp, and log what is asked."""
    log.open()

    def noting(ask: Ask) -> Tally:
        log.note(ask)
        return answer(ask)

    return drive(mechanism.step(t), noting)


def _squared(values: Floats, still: StillStream) -> Floats:
    """Return the squared error, averaged over the bins."""
    return np.asarray(np.mean((values - still.truth) ** 2, axis=-1))
