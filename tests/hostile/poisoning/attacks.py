"""The reports of fake devices: decoded, as the collector half counts them."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from ldpstream.arrays import Counts
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Reports
from ldpstream.privacy.epsilon import Epsilon


class Attack(StrEnum):
    """What a fake device sends. `targets` are the labels it wants to raise."""

    RANDOM_VALUE = "random value"
    """A random value, honestly randomised."""
    RANDOM_REPORT = "random report"
    """Any report of the oracle, all alike."""
    LIE = "lie"
    """The target as its value, honestly randomised: no statistic can tell it from a true one."""
    MAXIMAL_GAIN = "maximal gain"
    """A crafted report that supports the target; a unary one has as many bits as is usual (Cao, Jia
    and Gong 2021), a hashed one uses the same good seed as all others."""
    CAMOUFLAGED = "camouflaged"
    """Supports the target always, and is drawn honestly in all other respects."""


class Attacker:
    """Fake devices of one oracle; its laboratory half knows what they can send."""

    def __init__(self, oracle: Oracle, labels: int, epsilon: Epsilon) -> None:
        self.labels = labels
        self._lab = oracle.lab(labels, epsilon)

    def reports(self, attack: Attack, targets: Counts, rng: np.random.Generator) -> Reports:
        """A report for each of `targets`."""
        match attack:
            case Attack.RANDOM_VALUE:
                return self._lab.perturb(rng.integers(self.labels, size=len(targets)), rng)
            case Attack.LIE:
                return self._lab.perturb(targets, rng)
            case Attack.RANDOM_REPORT:
                return self._lab.arbitrary(len(targets), rng)
            case Attack.CAMOUFLAGED:
                return self._lab.supporting(targets, rng)
            case Attack.MAXIMAL_GAIN:
                return self._lab.crafted(targets, rng)
