"""A whole stream with fakes in it: what a campaign does to a mechanism's releases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpstream.domain import Domain
from ldpstream.lab.simulation import run
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import Settings
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import CountsStream
from tests.hostile.poisoning.fleet import AttackPlan, PoisonedFleet
from tests.hostile.poisoning.turns import MakeTurns, asked_turns

LABELS = 16
JUMP_EVERY = 15


def jumping(users: int, timestamps: int) -> CountsStream:
    """Zipf's law over 16 labels; the second one takes a fifth of all, and gives it back again."""
    weights = 1 / np.arange(1, LABELS + 1)
    rows = []
    for t in range(timestamps):
        shares = weights / weights.sum()
        if t // JUMP_EVERY % 2:
            shares = 0.8 * shares
            shares[1] += 0.2
        counts = np.floor(shares * users).astype(np.int64)
        counts[0] += users - counts.sum()
        rows.append(counts)
    labels = [f"l{number}" for number in range(LABELS)]
    return CountsStream("jumping", Domain.of(labels), np.array(rows))


@dataclass(frozen=True)
class StreamOutcome:
    """Means over repeats."""

    mechanism: str
    plan: AttackPlan
    bias: float
    """Of the target: while the attack lasts; if it has no end, over the second half."""
    mse: float
    publications: float
    discarded: float
    """Rounds that were not used."""
    faked: float
    """Share of all reports that were fake."""
    error: float
    """The standard error of `bias`."""


def poison_stream(
    mechanism: str,
    plan: AttackPlan,
    *,
    source: CountsStream | None = None,
    users: int = 20_000,
    timestamps: int = 60,
    window: int = 10,
    oracle: Oracle | None = None,
    repeats: int = 2,
    seed: int = 0,
    make_turns: MakeTurns = asked_turns,
) -> StreamOutcome:
    """Simulate a mechanism with a poisoned fleet, on `jumping` or another stream; epsilon is 1."""
    stream = source or jumping(users, timestamps)
    labels = len(stream.domain)
    settings = Settings(labels, stream.users, Epsilon.of(1), window, oracle=oracle)
    figures = []
    for rng in map(np.random.default_rng, np.random.SeedSequence(seed).spawn(repeats)):
        built = build(mechanism, settings)
        fleet = PoisonedFleet(built, plan, rng, make_turns)
        result = run(stream, built, rng, fleet=fleet)
        off = result.released[:, plan.target] - result.truth[:, plan.target]
        first = stream.timestamps // 2 if plan.last is None else plan.first - 1
        figures.append(
            (
                off[first : plan.last].mean(),
                result.metrics.mse,
                result.fresh.sum(),
                float(fleet.discarded),
                fleet.faked / max(fleet.reports, 1),
            )
        )
    error = float(np.std([bias for bias, *_ in figures], ddof=1 if repeats > 1 else 0))
    means = [*np.mean(figures, axis=0).tolist(), error / repeats**0.5]
    return StreamOutcome(mechanism, plan, *means)
