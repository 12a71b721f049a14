"""A fleet with fakes in it, for any mechanism: they answer as they like, when they may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Reports
from ldpstream.oracles.device_half import DeviceHalf
from ldpstream.oracles.shape import shape_of
from ldpstream.streams.stream import Snapshot
from tests.hostile.poisoning.attacks import Attack, Attacker
from tests.hostile.poisoning.turns import MakeTurns, asked_turns


class Campaign(StrEnum):
    """What the fakes do while they attack; before and after they act like anybody."""

    NOTHING = "none"
    """All are honest."""
    RAISE = "raise a label"
    """For a while this fakes an event."""
    LOWER = "lower a label"
    """Every other label is supported, as often as it is held: this hides an event."""
    FORCE = "force publications"
    """Large dissimilarities; otherwise honest, so that the resource is wasted."""
    SWING = "swing"
    """The target and another label in turn, so that no prediction holds: what FORCE is for those
    who decide by what they publish."""
    SUPPRESS = "suppress publications"
    """Dissimilarities pulled to what was released last, so that it stays."""


@dataclass(frozen=True)
class AttackPlan:
    """A campaign, and how much of the fleet takes part."""

    campaign: Campaign
    share: float
    """Of devices that are fake."""
    target: int = 0
    first: int = 1
    """The first timestamp of the attack."""
    last: int | None = None
    """The last one, or None if there is no end."""
    attack: Attack = Attack.CAMOUFLAGED
    discard_below: float = 0.0
    """Rounds whose shape has a smaller p-value are not used (0: all are)."""

    def attacks(self, t: int) -> bool:
        return self.first <= t and (self.last is None or t <= self.last)


class PoisonedFleet:
    """Respondents, some of them fake. They know what was released last: it is public."""

    def __init__(
        self,
        mechanism: Mechanism,
        plan: AttackPlan,
        rng: np.random.Generator,
        make_turns: MakeTurns = asked_turns,
    ) -> None:
        self._mechanism, self._plan, self._rng = mechanism, plan, rng
        self._noise = mechanism.noise
        fakes = round(plan.share * self._noise.population)
        self._turns = make_turns(mechanism.division, fakes, rng)
        self.reports = 0
        self.faked = 0
        self.discarded = 0

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        counts = snapshot.counts

        def answer(ask: Ask) -> Tally:
            honest, fakes = self._turns.reporting(t, ask)
            self.reports += honest + fakes
            self.faked += fakes
            return self._answer(t, counts, ask, honest, fakes)

        return answer

    def _answer(self, t: int, counts: Counts, ask: Ask, true: int, fakes: int) -> Tally:
        rng, oracle = self._rng, Oracle(self._noise.oracle)
        truth = rng.multivariate_hypergeometric(counts, true, method="marginals")
        honest = oracle.lab(len(counts), ask.epsilon).perturb(_values(truth), rng)
        faked = self._faked(t, counts / self._noise.population, ask, fakes)
        collector = oracle.collector(len(counts), ask.epsilon)
        reports = np.concatenate([honest, faked.astype(honest.dtype)])
        if self._plan.discard_below and self._odd(collector.device, reports):
            self.discarded += 1
            return Tally.empty(len(counts))
        return self._noise.tally(ask.epsilon, collector.support(reports))

    def _odd(self, device: DeviceHalf[Any], reports: Reports) -> bool:
        shape = shape_of(device)
        if shape is None:
            return False
        shape.see(reports)
        return shape.p_value() < self._plan.discard_below

    def _faked(self, t: int, truth: Floats, ask: Ask, fakes: int) -> Reports:
        attacker = Attacker(Oracle(self._noise.oracle), len(truth), ask.epsilon)
        wanted = self._wanted(t, truth, ask) if self._plan.attacks(t) else None
        # The innocent hold a value like anybody's, honestly randomised.
        shares, attack = (truth, Attack.LIE) if wanted is None else (wanted, self._plan.attack)
        targets = self._rng.choice(len(truth), size=fakes, p=shares)
        return attacker.reports(attack, targets, self._rng)

    def _wanted(self, t: int, truth: Floats, ask: Ask) -> Floats | None:
        """Return the share of fakes that support each label; None to look innocent."""
        target, probing = self._plan.target, ask.purpose is Purpose.DISSIMILARITY
        match self._plan.campaign:
            case Campaign.RAISE:
                return _only(target, len(truth))
            case Campaign.LOWER:
                others = np.where(np.arange(len(truth)) == target, 0.0, truth)
                return _shares(others)
            case Campaign.FORCE if probing:
                return _only(target, len(truth))
            case Campaign.SWING:
                return _only(target if t % 2 else (target + 1) % len(truth), len(truth))
            case Campaign.SUPPRESS if probing:
                return _shares(np.clip(self._mechanism.state.release.values - truth, 0, None))
            case _:
                return None


def _only(label: int, labels: int) -> Floats:
    shares = np.zeros(labels)
    shares[label] = 1.0
    return shares


def _shares(weights: Floats) -> Floats:
    """Return weights as shares; equal ones if all weights are 0."""
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def _values(counts: Counts) -> Reports:
    """A device's value for each of the counts."""
    return np.repeat(np.arange(len(counts)), counts)
