"""The laboratory half of every oracle: simulates a million devices, or only their support counts.

It is not for devices: it draws from a seeded generator, with probabilities rounded to 64 bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes, Counts
from ldpstream.errors import Mistake, Problem
from ldpstream.oracles.collector_half import Reports, Support
from ldpstream.oracles.device_half import WIRE_VERSION, DeviceHalf, Randomiser


class LabHalf(ABC):
    """Simulated devices, whose reports have the format that the collector half decodes to."""

    def __init__(self, device: DeviceHalf[Any]) -> None:
        self.device = device
        self.labels = device.labels
        self.p = float(device.p)
        self.q = float(device.q)
        self._index = np.uint16 if device.labels <= 1 << 16 else np.uint32
        """Of values: buckets of texts are more than labels may be."""

    def perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        """Return one report for each of `values` (label indexes)."""
        if len(values):
            check_values(values, self.labels)
        return self._perturb(np.ascontiguousarray(values, self._index), rng)

    def sample_support(self, truth: Counts, rng: np.random.Generator) -> Support:
        """Draw the support counts of sum(truth) devices without making their reports.

        The draw has exactly the distribution of `support(perturb(values))` for values with this
        histogram. It costs O(labels) here, where labels are supported independently of each other;
        oracles for which they are not override it.
        """
        others = truth.sum() - truth
        return Support(rng.binomial(truth, self.p) + rng.binomial(others, self.q), int(truth.sum()))

    def supporting(self, targets: NDArray[Any], rng: np.random.Generator) -> Reports:
        """Return reports of devices that hold these values and always support them."""
        return self._supporting(targets.astype(self._index), draw_seed(rng))

    def crafted(self, targets: NDArray[Any], rng: np.random.Generator) -> Reports:
        """Return fake reports that raise each target as far as possible (maximal gain attack).

        Cao, Jia and Gong, USENIX Security 2021. Oracles whose reports leave freedom besides the
        target override it.
        """
        return self.supporting(targets, rng)

    @abstractmethod
    def arbitrary(self, number: int, rng: np.random.Generator) -> Reports:
        """Return reports drawn uniformly from those that the collector accepts."""

    @abstractmethod
    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports: ...

    @abstractmethod
    def _supporting(self, values: NDArray[Any], seed: np.uint64) -> Reports: ...


def encode_table(reports: Reports, device: Randomiser[Any]) -> Bytes:
    """Return reports of a laboratory half in the wire format of its device half, one in each row.

    >>> from ldpstream.oracles import Oracle
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> encode_table(np.array([2, 300]), Oracle.GRR.device(400, Epsilon.of(1))).tolist()
    [[1, 2, 0], [1, 44, 1]]
    """
    # Every report is a row of numbers, whose little-endian bytes are its payload, and zeros.
    little = np.ascontiguousarray(reports, reports.dtype.newbyteorder("<"))
    table = np.empty((len(reports), device.report_bytes), np.uint8)
    table[:, 0] = WIRE_VERSION
    table[:, 1:] = little.view(np.uint8).reshape(len(reports), -1)[:, : device.payload_bytes]
    return table


def check_values(values: NDArray[Any], labels: int) -> None:
    """Refuse values outside the domain: kernels do not check array bounds."""
    for given in (int(values.min()), int(values.max())):
        if not 0 <= given < labels:
            raise Mistake(Problem.VALUE_RANGE, given=given, labels=labels, last=labels - 1)


def draw_seed(rng: np.random.Generator) -> np.uint64:
    """Return a fresh seed for a kernel's own counter-based generator."""
    return np.uint64(rng.integers(1 << 64, dtype=np.uint64))


def threshold(probability: float) -> np.uint64:
    """Return the 64-bit number below which a uniform draw falls with this probability."""
    return np.uint64(min(int(probability * 2.0**64), 2**64 - 1))


NEVER, ALWAYS = threshold(0.0), threshold(1.0)
