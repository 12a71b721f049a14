"""One round with fakes in it: how far the estimate of a target is off, by oracle and attack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Reports
from ldpstream.oracles.shape import shape_of
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine.consistency import nearest_histogram
from tests.hostile.poisoning.attacks import Attack, Attacker


@dataclass(frozen=True)
class Setting:
    """A round: how many devices, over which labels, with which epsilon."""

    labels: int = 32
    users: int = 20_000
    epsilon: Epsilon = Epsilon.of(1)  # noqa: RUF009 - frozen
    target: int = 31
    """The label that the fakes want to raise: the rarest."""
    alpha: float = 1e-6
    """The false-alarm rate of the shape test, a round."""

    @property
    def truth(self) -> Floats:
        """Zipf's law."""
        weights = 1 / np.arange(1, self.labels + 1)
        frequencies: Floats = weights / weights.sum()
        return frequencies


@dataclass(frozen=True)
class RoundOutcome:
    """Means over repeats."""

    oracle: Oracle
    attack: Attack | None
    """None if everyone is honest."""
    share: float
    bias: float
    """Of the target, raw."""
    bias_normalised: float
    """After the nearest histogram (norm-sub)."""
    mse: float
    """Of all labels, raw."""
    alarms: float
    """Share of the rounds that the shape test calls odd."""


def poison(
    setting: Setting,
    oracle: Oracle,
    attack: Attack | None,
    share: float,
    repeats: int,
    seed: int,
    copies: int = 1,
) -> RoundOutcome:
    """Repeat a round in which `share` of the devices are fake and send `copies` reports each."""
    collector = oracle.collector(setting.labels, setting.epsilon)
    truth = setting.truth
    figures = []
    for rng in map(np.random.default_rng, np.random.SeedSequence(seed).spawn(repeats)):
        reports = _reports(setting, oracle, attack, share, copies, rng)
        estimate = collector.estimate(collector.support(reports))
        normalised = nearest_histogram(estimate)
        figures.append(
            (
                estimate[setting.target] - truth[setting.target],
                normalised[setting.target] - truth[setting.target],
                np.mean((estimate - truth) ** 2),
                _alarmed(setting, oracle, reports),
            )
        )
    bias, normalised_bias, mse, alarms = np.array(figures, float).mean(axis=0).tolist()
    return RoundOutcome(oracle, attack, share, bias, normalised_bias, mse, alarms)


def _reports(
    setting: Setting,
    oracle: Oracle,
    attack: Attack | None,
    share: float,
    copies: int,
    rng: np.random.Generator,
) -> Reports:
    fakes = 0 if attack is None else round(share * setting.users)
    values = rng.choice(setting.labels, size=setting.users - fakes, p=setting.truth)
    honest = oracle.lab(setting.labels, setting.epsilon).perturb(values, rng)
    if attack is None:
        return honest
    attacker = Attacker(oracle, setting.labels, setting.epsilon)
    faked = attacker.reports(attack, np.full(fakes * copies, setting.target), rng)
    return np.concatenate([honest, faked.astype(honest.dtype)])


def _alarmed(setting: Setting, oracle: Oracle, reports: Reports) -> bool:
    shape = shape_of(oracle.device(setting.labels, setting.epsilon))
    if shape is None:
        return False
    shape.see(reports)
    return shape.p_value() < setting.alpha
