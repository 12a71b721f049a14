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
from ldpstream.protocol.terms import Selection
from ldpstream.streams.stream import Snapshot
from tests.hostile.poisoning.attacks import Attack, Attacker
from tests.hostile.poisoning.turns import turns_of


class Campaign(StrEnum):
    """What the fakes are after, over time."""

    NOTHING = "none"
    """All are honest."""
    RAISE = "raise a label"
    ONE_TIMESTAMP = "raise it at one timestamp"
    FORCE = "force publications"
    """Large dissimilarities; otherwise honest, so that the resource is wasted."""
    SUPPRESS = "suppress publications"
    """Dissimilarities pulled to what was released last, so that it stays."""


@dataclass(frozen=True)
class Plan:
    """A campaign, and how much of the fleet takes part."""

    campaign: Campaign
    share: float
    """Of devices that are fake."""
    target: int = 0
    at: int = 1
    """The timestamp of ONE_TIMESTAMP."""
    attack: Attack = Attack.CAMOUFLAGED
    discard_below: float = 0.0
    """Rounds whose shape has a smaller p-value are not used (0: all are)."""
    selection: Selection = Selection.ROSTER
    greedy: bool = False
    """Whether fakes ignore their coins and ledgers, and report in every round that lets them."""


class PoisonedFleet:
    """Respondents, some of them fake. They know what was released last: it is public."""

    def __init__(self, mechanism: Mechanism, plan: Plan, rng: np.random.Generator) -> None:
        self._mechanism, self._plan, self._rng = mechanism, plan, rng
        self._noise = mechanism.noise
        self._fakes = round(plan.share * self._noise.population)
        self._turns = turns_of(
            plan.selection, mechanism.division, self._fakes, rng, greedy=plan.greedy
        )
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
        plan, labels = self._plan, len(truth)
        attacker = Attacker(Oracle(self._noise.oracle), labels, ask.epsilon)
        targets = np.full(fakes, plan.target)
        attack = plan.attack
        probing = ask.purpose is Purpose.DISSIMILARITY
        match plan.campaign:
            case Campaign.RAISE:
                pass
            case Campaign.ONE_TIMESTAMP if t == plan.at:
                pass
            case Campaign.FORCE if probing:
                pass
            case Campaign.SUPPRESS if probing:
                missing = np.clip(self._mechanism.state.release.values - truth, 0, None)
                even = np.full(labels, 1 / labels)
                pull = missing / missing.sum() if missing.sum() > 0 else even
                targets = self._rng.choice(labels, size=fakes, p=pull)
            case _:
                targets = self._rng.choice(labels, size=fakes, p=truth)
                attack = Attack.LIE  # a value like anybody's, honestly randomised
        return attacker.reports(attack, targets, self._rng)


def _values(counts: Counts) -> Reports:
    """A device's value for each of the counts."""
    return np.repeat(np.arange(len(counts)), counts)
