from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts
from ldpstream.oracles.collector_half import Reports, Support
from ldpstream.oracles.kernels.bitmaps import selected_subsets
from ldpstream.oracles.lab_half import ALWAYS, LabHalf, draw_seed, threshold
from ldpstream.oracles.subset.device import Device


class Lab(LabHalf):
    """Simulated subset selection: subsets by Floyd's method, support counts label by label."""

    device: Device

    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        size, include = self.device.size, threshold(self.p)
        return selected_subsets(values, self.labels, size, include, draw_seed(rng))

    def sample_support(self, truth: Counts, rng: np.random.Generator) -> Support:
        """Draw exactly, in O(labels * k), for fewer than 10^9 devices.

        It goes through the labels in order. The state of a device is how many other labels it has
        still to choose, whether it includes its value, and whether its value has passed: so devices
        are only counted by state. Those whose value is the current label are drawn from all whose
        value is still ahead, since no choice so far depended on which of these it is.
        """
        devices = int(truth.sum())
        including = int(rng.binomial(devices, self.p))
        walk = _Walk(self.device.size, including, devices - including, rng)
        counts = [walk.step(self.labels - label, int(here)) for label, here in enumerate(truth)]
        return Support(np.array(counts, np.int64), devices)

    def _supporting(self, values: NDArray[Any], seed: np.uint64) -> Reports:
        return selected_subsets(values, self.labels, self.device.size, ALWAYS, seed)

    def arbitrary(self, number: int, rng: np.random.Generator) -> Reports:
        values = rng.integers(self.labels, size=number).astype(np.uint16)
        even = threshold(self.device.size / self.labels)
        return selected_subsets(values, self.labels, self.device.size, even, draw_seed(rng))


class _Walk:
    """The numbers of devices by how many other labels they have still to choose, 0 .. k.

    Devices in `ahead[0]` include their value, those in `ahead[1]` do not; in `passed` it is past.
    """

    def __init__(self, size: int, including: int, excluding: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._wanted = np.arange(size + 1)
        self._ahead = np.zeros((2, size + 1), np.int64)
        self._ahead[0, size - 1] = including
        self._ahead[1, size] = excluding
        self._passed = np.zeros(size + 1, np.int64)

    def step(self, remaining: int, here: int) -> int:
        """Pass a label that is the value of `here` devices; return how many devices choose it.

        `remaining` counts the labels from this one on.
        """
        arrived = self._rng.multivariate_hypergeometric(
            self._ahead.ravel(), here, method="marginals"
        ).reshape(self._ahead.shape)
        self._ahead -= arrived
        choosing = self._choose(self._passed, remaining) + self._choose(self._ahead, remaining - 1)
        self._passed += arrived.sum(axis=0)
        return choosing + int(arrived[0].sum())

    def _choose(self, group: NDArray[np.int64], others: int) -> int:
        """Let each device of `group`, which has `others` to choose from, take this label or not."""
        chance = np.minimum(self._wanted / max(others, 1), 1)
        choosing = self._rng.binomial(group, chance)
        group -= choosing
        group[..., :-1] += choosing[..., 1:]
        return int(choosing.sum())
