"""Event, w-event, lifetime and user level on one stream: their error, and what a person pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from math import ceil

import numpy as np

from ldpstream.lab.simulation import simulate
from ldpstream.streams.stream import CountsStream
from ldpstream.streams.synthetic import sin
from tests.lab.promises.dyadic import dyadic_releases
from tests.lab.promises.memoised import lifetime, memoised_releases
from tests.lab.promises.persistent_ranking import PersistentRanking


class PrivacyUnit(StrEnum):
    """What is protected with epsilon."""

    EVENT = "event level"
    WINDOW = "w-event"
    LIFETIME = "w-event and lifetime"
    USER = "user level"


@dataclass(frozen=True)
class Case:
    """The stream, with users who keep their values, and the parameters of all promises."""

    stream: CountsStream
    epsilon: float = 1.0
    window: int = 16
    permanent: float = 4.0
    """The epsilon of a permanent answer."""

    @classmethod
    def usual(cls) -> Case:
        return cls(sin(users=100_000, timestamps=512, b=0.02))


@dataclass(frozen=True)
class PromiseCost:
    """One way to keep a promise: how far its releases are off, and what a person pays over time."""

    promise: PrivacyUnit
    how: str
    mse: float
    error: float
    """The standard error of `mse`."""
    spent: Callable[[int], float | None]
    """The epsilon of a person's reports of the first t timestamps, or None without a promise."""


def compare(case: Case, repeats: int = 5, seed: int = 0) -> Iterator[PromiseCost]:
    """Yield every promise with its error on the stream."""
    horizon, epsilon, window = case.stream.timestamps, case.epsilon, case.window
    within = partial(_within, horizon, epsilon)
    often = partial(_every, epsilon, window)
    yield _simulated(case, PrivacyUnit.EVENT, "lbu", 1, partial(_every, epsilon, 1), repeats, seed)
    for name in ("lpu", "lpf"):
        yield _simulated(case, PrivacyUnit.WINDOW, name, window, often, repeats, seed)
    rngs = [np.random.default_rng(one) for one in np.random.SeedSequence(seed).spawn(repeats)]
    fleets = [(PersistentRanking.of(case.stream, rng), rng) for rng in rngs]
    capped = partial(_capped, often, lifetime(case.permanent))
    yield _of_runs(
        case,
        PrivacyUnit.LIFETIME,
        "memoised answers",
        [memoised_releases(one, epsilon, window, case.permanent, rng) for one, rng in fleets],
        capped,
    )
    for name in ("lpu", "lpf"):
        yield _simulated(case, PrivacyUnit.USER, name, horizon, within, repeats, seed)
    changes = max(one.most_changes() for one, _ in fleets)
    yield _of_runs(
        case,
        PrivacyUnit.USER,
        f"dyadic sums, at most {changes} changes",
        [dyadic_releases(one, epsilon, changes, rng) for one, rng in fleets],
        within,
    )


def _simulated(
    case: Case,
    promise: PrivacyUnit,
    name: str,
    window: int,
    spent: Callable[[int], float | None],
    repeats: int,
    seed: int,
) -> PromiseCost:
    done = simulate(
        case.stream,
        name,
        epsilon=case.epsilon,
        window=window,
        persistence=1.0,
        repeats=repeats,
        seed=seed,
    )
    how = f"{name.upper()}, w = {window}"
    return _of_runs(case, promise, how, [run.released[:, 1] for run in done.runs], spent)


def _of_runs(
    case: Case,
    promise: PrivacyUnit,
    how: str,
    released: list[np.ndarray],
    spent: Callable[[int], float | None],
) -> PromiseCost:
    truth = case.stream.table[:, 1] / case.stream.users
    errors = [float(np.mean((one - truth) ** 2)) for one in released]
    spread = float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
    return PromiseCost(promise, how, float(np.mean(errors)), spread / len(errors) ** 0.5, spent)


def _every(epsilon: float, window: int, t: int) -> float:
    return epsilon * ceil(t / window)


def _capped(often: Callable[[int], float], cap: float, t: int) -> float:
    return min(often(t), cap)


def _within(horizon: int, epsilon: float, t: int) -> float | None:
    return epsilon if t <= horizon else None
