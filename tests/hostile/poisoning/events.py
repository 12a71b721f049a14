"""Attacks over time: a coalition fakes an event, hides one, or wastes the budget before one.

One label has a usual share and, while an event lasts, a high one. Whoever watches the releases sees
an event where the released share is above the middle of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ldpstream.domain import Domain
from ldpstream.lab.simulation import run
from ldpstream.mechanisms.adaptive import Adaptive
from ldpstream.mechanisms.classic.pegasus import Pegasus
from ldpstream.mechanisms.classic.sampler import AdaptiveSampler
from ldpstream.mechanisms.registry import build, recipe
from ldpstream.mechanisms.settings import Settings
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import CountsStream
from tests.hostile.poisoning.fleet import AttackPlan, Campaign, PoisonedFleet

LABEL = 1


@dataclass(frozen=True)
class WatchedStream:
    """A stream of two labels, of which one is watched for an event."""

    users: int = 200_000
    timestamps: int = 140
    first: int = 101
    """The first timestamp of the event."""
    last: int = 120
    usual: float = 0.1
    high: float = 0.25
    epsilon: Epsilon = Epsilon.of(1)  # noqa: RUF009 - frozen
    window: int = 20

    @property
    def middle(self) -> float:
        return (self.usual + self.high) / 2

    @property
    def span(self) -> slice:
        """The rows of the event."""
        return slice(self.first - 1, self.last)

    def stream(self, *, happens: bool) -> CountsStream:
        """Return the stream; without the event if it does not happen."""
        shares = np.full(self.timestamps, self.usual)
        if happens:
            shares[self.span] = self.high
        held = np.rint(shares * self.users).astype(np.int64)
        return CountsStream(
            "watched", Domain.numbered(2), np.column_stack([self.users - held, held])
        )


class Scheme(StrEnum):
    """What the coalition is after."""

    FAKE = "fake an event"
    HIDE = "hide an event"
    WASTE = "waste the budget before an event"
    FREEZE = "keep an event from being published"


@dataclass(frozen=True)
class EventOutcome:
    """Means over repeats."""

    mechanism: str
    scheme: Scheme
    share: float
    """Of devices that are fake; 0 for the honest fleet."""
    seen: float
    """Share of the event's timestamps at which the released share is above the middle."""
    mse: float
    """Of the label's share, from the first timestamp of the attack to the last of the event."""
    publications: float
    """Until the event ends."""


def plan_of(
    mechanism: str, scheme: Scheme, share: float, watched: WatchedStream
) -> AttackPlan | None:
    """Return what fakes do to this mechanism; None where it decides nothing they could bend.

    >>> plan_of("lpu", Scheme.WASTE, 0.1, WatchedStream()) is None
    True
    >>> str(plan_of("fast", Scheme.WASTE, 0.1, WatchedStream()).campaign)
    'swing'
    """
    allocation = recipe(mechanism).allocation
    probes = issubclass(allocation, Adaptive | Pegasus)
    during = watched.first, watched.last
    before = watched.first - watched.window, watched.first - 1
    match scheme:
        case Scheme.FAKE:
            return AttackPlan(Campaign.RAISE, share, LABEL, *during)
        case Scheme.HIDE:
            return AttackPlan(Campaign.LOWER, share, LABEL, *during)
        case Scheme.WASTE if probes:
            return AttackPlan(Campaign.FORCE, share, LABEL, *before)
        case Scheme.WASTE if issubclass(allocation, AdaptiveSampler):
            return AttackPlan(Campaign.SWING, share, LABEL, *before)
        case Scheme.FREEZE if probes:
            return AttackPlan(Campaign.SUPPRESS, share, LABEL, *during)
        case _:
            return None


def attack_event(
    mechanism: str,
    scheme: Scheme,
    share: float,
    *,
    watched: WatchedStream | None = None,
    repeats: int = 3,
    seed: int = 0,
) -> EventOutcome | None:
    """Simulate a mechanism while this share of the devices attacks; None if nothing can be bent."""
    watched = watched or WatchedStream()
    plan = plan_of(mechanism, scheme, share, watched)
    if plan is None:
        return None
    stream = watched.stream(happens=scheme is not Scheme.FAKE)
    settings = Settings(2, watched.users, watched.epsilon, watched.window)
    figures = []
    for rng in map(np.random.default_rng, np.random.SeedSequence(seed).spawn(repeats)):
        built = build(mechanism, settings)
        done = run(stream, built, rng, fleet=PoisonedFleet(built, plan, rng))
        off = (
            done.released[plan.first - 1 : watched.last] - done.truth[plan.first - 1 : watched.last]
        )
        figures.append(
            (
                (done.released[watched.span, LABEL] > watched.middle).mean(),
                (off[:, LABEL] ** 2).mean(),
                done.fresh[: watched.last].sum(),
            )
        )
    return EventOutcome(mechanism, scheme, share, *np.mean(figures, axis=0).tolist())
