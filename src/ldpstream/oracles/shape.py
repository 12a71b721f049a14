"""Tests of whether the reports of a round look like those of honest devices, whatever their values.

With some oracles, part of a report has a distribution that does not depend on the value: the number
of bits of a unary report, the seed of a hash. It is known exactly, so a round can be tested against
it. `p_value` is an upper bound, not an approximation: a round of honest devices falls
below alpha with probability at most alpha.

What it cannot detect: reports of GRR, subset and Hadamard oracles have no such part, and a device
that lies about its value but randomises honestly leaves no trace with any oracle.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.oracles.collector_half import Reports
from ldpstream.oracles.device_half import DeviceHalf, Randomiser
from ldpstream.oracles.local_hash.device import LocalHashDevice
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.oracles.unary.device import UnaryDevice

CELLS = 12
"""The most groups of bit counts that are tested: with more, each would need more evidence."""


class Shape(ABC):
    """A test of the reports of one round, which are given batch by batch."""

    @abstractmethod
    def see(self, reports: Reports) -> None:
        """Add decoded reports."""

    @abstractmethod
    def p_value(self) -> float:
        """Return an upper bound on the probability that honest reports look as odd as these."""


class BitCount(Shape):
    """A test of the number of set bits of unary reports: Bernoulli(p) + Binomial(d-1, q).

    Each group of bit counts is tested by itself, on both sides, with Chernoff's bound
    Pr[share >= s] <= exp(-n KL(s || expected)); the p-value is the smallest, times the number of
    tests (Bonferroni).

    >>> from ldpstream.oracles import Oracle
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> device = Oracle.OUE.device(64, Epsilon.of(1))
    >>> honest, padded = BitCount(device), BitCount(device)
    >>> values = np.arange(20_000) % 64
    >>> honest.see(Oracle.OUE.lab(64, Epsilon.of(1)).perturb(values, np.random.default_rng(1)))
    >>> honest.p_value() > 0.01
    True
    >>> padded.see(np.full((20_000, 1), 2**17 - 1, np.uint64))  # always 17 bits
    >>> padded.p_value() < 1e-9
    True
    """

    def __init__(self, device: DeviceHalf[int]) -> None:
        distribution = bit_count_distribution(device.labels, float(device.p), float(device.q))
        self._cell_of = _cells(distribution)
        self.expected = np.bincount(self._cell_of, distribution)
        self.seen: Counts = np.zeros(len(self.expected), np.int64)

    def see(self, reports: Reports) -> None:
        bits = np.bitwise_count(reports).sum(axis=1)
        self.seen += np.bincount(self._cell_of[bits], minlength=len(self.seen))

    def p_value(self) -> float:
        number = int(self.seen.sum())
        if number == 0:
            return 1.0
        furthest = max(
            divergence(seen / number, expected)
            for seen, expected in zip(self.seen.tolist(), self.expected.tolist(), strict=True)
        )
        return min(1.0, 2 * len(self.seen) * math.exp(-number * furthest))


class FreshSeeds(Shape):
    """A test of local-hashing reports for repeated seeds: honest ones are drawn from 2^64.

    Pr[any two of n are the same] <= n(n-1)/2 / 2^64. An attacker who searches for seeds that favour
    a label gains from it only by using them repeatedly.
    """

    def __init__(self, device: LocalHashDevice) -> None:
        self._seeds = Fraction(1, 1 << 2 * device.family.word_bits)
        self._parts: list[Reports] = []

    def see(self, reports: Reports) -> None:
        high, low = reports[:, 0].astype(np.uint64), reports[:, 1].astype(np.uint64)
        self._parts.append(high << np.uint64(32) | low)

    def p_value(self) -> float:
        seeds = np.concatenate([np.zeros(0, np.uint64), *self._parts])
        if len(np.unique(seeds)) == len(seeds):
            return 1.0
        return float(Fraction(len(seeds) * (len(seeds) - 1), 2) * self._seeds)


def shape_of(device: Randomiser[Any]) -> Shape | None:
    """Return the test of reports of this oracle, or None if there is none."""
    if isinstance(device, Tagged):
        return shape_of(device.inner)
    if isinstance(device, UnaryDevice):
        return BitCount(device)
    if isinstance(device, LocalHashDevice):
        return FreshSeeds(device)
    return None


def bit_count_distribution(labels: int, p: float, q: float) -> Floats:
    """Return Pr[k bits are set] for k in 0 .. labels: Bernoulli(p) + Binomial(labels - 1, q).

    >>> bit_count_distribution(2, 0.5, 0.25).tolist()
    [0.375, 0.5, 0.125]
    """
    others = labels - 1
    logs = [math.lgamma(others + 1)] * labels
    for bits in range(labels):
        logs[bits] -= math.lgamma(bits + 1) + math.lgamma(others - bits + 1)
        logs[bits] += bits * math.log(q) + (others - bits) * math.log1p(-q)
    binomial = np.exp(np.array(logs))
    return np.convolve(binomial, [1 - p, p])


def divergence(share: float, expected: float) -> float:
    """Return KL(share || expected) of two Bernoulli distributions, in nats.

    >>> divergence(0.5, 0.5), round(divergence(1.0, 0.5), 6)
    (0.0, 0.693147)
    """
    total = 0.0
    for seen, honest in ((share, expected), (1 - share, 1 - expected)):
        if seen > 0:
            total += seen * math.log(seen / honest) if honest > 0 else math.inf
    return max(total, 0.0)


def _cells(distribution: Floats) -> Counts:
    """Return the group of each number of bits; groups are ordered and about equally likely."""
    before = np.concatenate([[0.0], np.cumsum(distribution)[:-1]])
    wanted = np.minimum((before + distribution / 2) * CELLS, CELLS - 1).astype(np.int64)
    _, cells = np.unique(wanted, return_inverse=True)
    return cells.astype(np.int64)
