"""The reports of fake devices: decoded, as the collector half counts them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Reports
from ldpstream.oracles.kernels.bitmaps import randomised_bits, selected_subsets, words_for
from ldpstream.oracles.kernels.labels import drawn_columns
from ldpstream.oracles.kernels.local_hash import hashed_values
from ldpstream.oracles.lab_half import draw_seed, threshold
from ldpstream.privacy.epsilon import Epsilon

ALWAYS = threshold(1.0)
Values = NDArray[np.int64]


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
    """Fake devices of one oracle."""

    def __init__(self, oracle: Oracle, labels: int, epsilon: Epsilon) -> None:
        self.oracle, self.labels = oracle, labels
        self._lab = oracle.lab(labels, epsilon)
        self._device: Any = oracle.device(labels, epsilon)

    def reports(self, attack: Attack, targets: Values, rng: np.random.Generator) -> Reports:
        """A report for each of `targets`."""
        match attack:
            case Attack.RANDOM_VALUE:
                return self._lab.perturb(rng.integers(self.labels, size=len(targets)), rng)
            case Attack.LIE:
                return self._lab.perturb(targets, rng)
            case Attack.RANDOM_REPORT:
                return self._random(len(targets), rng)
            case Attack.CAMOUFLAGED:
                return self._supporting(targets, rng)
            case Attack.MAXIMAL_GAIN:
                return self._crafted(targets, rng)

    def _supporting(self, targets: Values, rng: np.random.Generator) -> Reports:
        """What an honest device sends whose coin for its own value always comes up heads."""
        values, seed = targets.astype(np.uint16), draw_seed(rng)
        match self.oracle:
            case Oracle.GRR:
                return values.astype(np.uint32)
            case Oracle.SUE | Oracle.OUE:
                return randomised_bits(values, self.labels, ALWAYS, threshold(self._lab.q), seed)
            case Oracle.SUBSET:
                return selected_subsets(values, self.labels, self._device.size, ALWAYS, seed)
            case Oracle.HADAMARD:
                return drawn_columns(values, self._device.columns, ALWAYS, seed)
            case _:
                return hashed_values(values, self.labels, self._device.buckets, ALWAYS, seed)

    def _crafted(self, targets: Values, rng: np.random.Generator) -> Reports:
        match self.oracle:
            case Oracle.SUE | Oracle.OUE:
                usual = self._lab.p + (self.labels - 1) * self._lab.q
                size = max(int(usual), 1)
                values = targets.astype(np.uint16)
                return selected_subsets(values, self.labels, size, ALWAYS, draw_seed(rng))
            case Oracle.BLH | Oracle.OLH:
                return self._best_seeds(targets, rng)
            case _:
                return self._supporting(targets, rng)

    def _best_seeds(self, targets: Values, rng: np.random.Generator) -> Reports:
        """For each target the report, of a thousand, that supports the fewest other labels."""
        out = np.empty((len(targets), 3), np.uint32)
        collector = self.oracle.collector(self.labels, self._device.epsilon)
        for target in np.unique(targets).tolist():
            tried = self._supporting(np.full(1000, target), rng)
            sizes = [int(collector.support(one[None]).counts.sum()) for one in tried]
            out[targets == target] = tried[int(np.argmin(sizes))]
        return out

    def _random(self, number: int, rng: np.random.Generator) -> Reports:
        match self.oracle:
            case Oracle.GRR:
                return rng.integers(self.labels, size=number).astype(np.uint32)
            case Oracle.SUE | Oracle.OUE:
                bits = rng.integers(1 << 64, size=(number, words_for(self.labels)), dtype=np.uint64)
                spare = 64 * words_for(self.labels) - self.labels
                bits[:, -1] &= np.uint64((1 << 64) - 1) >> np.uint64(spare)
                return bits
            case Oracle.SUBSET:
                values = rng.integers(self.labels, size=number).astype(np.uint16)
                even = threshold(self._device.size / self.labels)
                size = self._device.size
                return selected_subsets(values, self.labels, size, even, draw_seed(rng))
            case Oracle.HADAMARD:
                return rng.integers(self._device.columns, size=number).astype(np.uint32)
            case _:
                values = rng.integers(self.labels, size=number).astype(np.uint16)
                seed = draw_seed(rng)
                return hashed_values(
                    values, self.labels, self._device.buckets, threshold(0.0), seed
                )
