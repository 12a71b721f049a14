"""The exact epsilon of every randomiser, found by running its code under every possible draw.

Where there are too many draws to follow, it is derived from the integer ratios that the code draws
with, by the structure of the oracle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cache, partial
from typing import Any

from ldpstream.numeric import Numeric
from ldpstream.numeric.device_half import NumericDevice
from ldpstream.oracles import Oracle
from ldpstream.oracles.device_half import Randomiser
from ldpstream.oracles.grr.device import Device as GrrDevice
from ldpstream.oracles.hadamard.device import Device as HadamardDevice
from ldpstream.oracles.local_hash.device import LocalHashDevice
from ldpstream.oracles.subset.device import Device as SubsetDevice
from ldpstream.oracles.tagged.device import MOST_TAGS, Tagged
from ldpstream.oracles.unary.device import UnaryDevice
from ldpstream.privacy.enumeration import distribution
from ldpstream.privacy.epsilon import NANO, Epsilon, log_ceiling
from ldpstream.privacy.randomness import Source

MOST_PATHS = 40_000
"""The most draws to follow for one randomiser, over all of its values."""
DIGITS = 60
"""The digits of exact epsilons: at 32, the odds are off by 1e-33."""
SEEDS = ((1, 0), (0x9E3779B1, 0x7F4A7C15), (0xFFFFFFFF, 0x12345678), (0x85EBCA6B, 0xC2B2AE35))
"""Hash seeds of local hashing, under each of which the bucket is enumerated."""

TAGGED = "tagged hadamard"
"""The name of the randomiser of texts, whose reports end with the group of their device."""
TAGS = (0, MOST_TAGS - 1)

Distribution = Mapping[bytes, Fraction]
"""The probability of each report, as bytes on the wire, given a value."""


class Method(StrEnum):
    """How an exact epsilon was found."""

    EVERY_DRAW = "every draw"
    EVERY_DRAW_GIVEN_SEED = "every draw, given the hash seed"
    RATIOS = "integer ratios"


@dataclass(frozen=True)
class Exact:
    """The worst likelihood ratio of one randomiser, as a fraction."""

    oracle: str
    labels: int
    epsilon: Epsilon
    ratio: Fraction | None
    """None if some report is possible under one value and impossible under another."""
    method: Method
    stated: Fraction
    """The ratio that the randomiser states itself."""

    @property
    def exact_epsilon(self) -> float:
        return float(self.digits(DIGITS))

    def digits(self, number: int) -> Decimal:
        """Return the exact epsilon to this many digits, rounded up."""
        return Decimal("Infinity") if self.ratio is None else log_ceiling(self.ratio, number)

    @property
    def margin(self) -> float:
        """The unused part of epsilon: epsilon minus the exact one."""
        if self.ratio is None:
            return -math.inf
        return float(Fraction(self.epsilon.nano, NANO) - Fraction(self.digits(DIGITS)))

    @property
    def holds(self) -> bool:
        """Whether ratio <= e^epsilon, in exact arithmetic, and as the randomiser states it."""
        return self.ratio == self.stated and self.stated <= exp_below(self.epsilon)


@cache
def exp_below(epsilon: Epsilon) -> Fraction:
    """Return a partial sum of e^epsilon, below it by less than 2^-100: the audit's own series."""
    exponent = Fraction(epsilon.nano, NANO)
    term = total = Fraction(1)
    for step in range(1, 240):
        term = term * exponent / step
        total += term
    return total


@dataclass(frozen=True)
class CheckGrid:
    """The grid of exact checks: each oracle at each number of labels and each epsilon.

    Reports of texts are those of Hadamard response with a tag, of as many labels, or more: they
    are checked as devices of the first and of the last tag send them.
    """

    labels: tuple[int, ...]
    levels: tuple[int, ...]
    epsilons: tuple[str, ...]

    def __len__(self) -> int:
        sizes = len(Oracle) * len(self.labels) + len(Numeric) * len(self.levels)
        sizes += len(TAGS) * len(self.labels)
        return sizes * len(self.epsilons)

    def check(self) -> Iterator[Exact]:
        for asked in self.epsilons:
            epsilon = Epsilon.of(asked)
            for oracle in Oracle:
                for labels in self.labels:
                    yield check(oracle.value, oracle.device(labels, epsilon))
            for labels in self.labels:
                inner = Oracle.HADAMARD.device(labels, epsilon)
                for tag in TAGS:
                    yield check(TAGGED, Tagged(inner, MOST_TAGS, tag))
            for numeric in Numeric:
                for levels in self.levels:
                    yield check(numeric.value, numeric.device(levels, epsilon))


QUICK = CheckGrid(labels=(2, 4, 1000), levels=(3, 1025), epsilons=("0.1", "1", "4"))
FULL = CheckGrid(
    labels=(2, 3, 4, 5, 8, 64, 1000, 65536),
    levels=(2, 3, 5, 9, 256, 1025),
    epsilons=("0.000000001", "0.01", "0.1", "0.5", "1", "2", "4", "8", "32"),
)


def check(name: str, device: Randomiser[Any]) -> Exact:
    """Return the exact epsilon of one randomiser."""
    method, ratio = _worst(device)
    return Exact(name, device.labels, device.epsilon, ratio, method, device.worst_ratio)


def _worst(device: Randomiser[Any]) -> tuple[Method, Fraction | None]:
    inner = device.inner if isinstance(device, Tagged) else device
    if isinstance(inner, LocalHashDevice):
        values = range(min(inner.labels, 2 * inner.buckets))
        if _paths(device, seeded=True) * len(values) * len(SEEDS) <= MOST_PATHS:
            # The seed is drawn independently of the value, so it cancels from every ratio.
            ratios = [worst_ratio(outputs(device, values, seed)) for seed in SEEDS]
            worst = None if None in ratios else max(one for one in ratios if one is not None)
            return Method.EVERY_DRAW_GIVEN_SEED, worst
    elif _paths(device) * device.labels <= MOST_PATHS:
        return Method.EVERY_DRAW, worst_ratio(outputs(device, range(device.labels)))
    return Method.RATIOS, _from_ratios(device)


def outputs(
    device: Randomiser[Any], values: Sequence[int], seed: tuple[int, int] | None = None
) -> list[Distribution]:
    """Return Pr[bytes on the wire | value] for each value, by the code that devices run."""

    def draw(value: int, source: Source) -> bytes:
        return device.encode(
            device.perturb(value, source if seed is None else Seeded(source, seed))
        )

    return [distribution(partial(draw, value)) for value in values]


def worst_ratio(given: Sequence[Distribution]) -> Fraction | None:
    """Return the largest Pr[y | v] / Pr[y | v'], or None if it is infinite."""
    reports = set().union(*given)
    if any(reports != set(one) for one in given):
        return None
    return max(max(one[y] for one in given) / min(one[y] for one in given) for y in reports)


class Seeded:
    """A source whose first draws are a given hash seed."""

    def __init__(self, source: Source, seed: tuple[int, int]) -> None:
        self._source = source
        self._seed = list(seed)

    def coin(self, favour: int, total: int) -> bool:
        return self._source.coin(favour, total)

    def below(self, bound: int) -> int:
        return self._seed.pop(0) if self._seed else self._source.below(bound)


class _Counting:
    """A source that counts the possible results of all its draws."""

    def __init__(self) -> None:
        self.ways = 1

    def coin(self, favour: int, total: int) -> bool:
        self.ways *= 1 if favour in (0, total) else 2
        return False

    def below(self, bound: int) -> int:
        self.ways *= bound
        return 0


def _paths(device: Randomiser[Any], *, seeded: bool = False) -> int:
    """Count the possible draws in one run: their number does not depend on their results."""
    counting = _Counting()
    device.perturb(0, Seeded(counting, SEEDS[0]) if seeded else counting)
    return counting.ways


def _from_ratios(device: Randomiser[Any]) -> Fraction | None:
    """Return the worst ratio by structure: two values change the odds of at most two labels.

    None if it is infinite.
    """
    if isinstance(device, Tagged):  # the tag is no part of the value
        return _from_ratios(device.inner)
    if isinstance(device, NumericDevice):
        return _of_levels(device)
    match device:
        case GrrDevice():
            return _ratio(device.p, device.q)
        case UnaryDevice():
            # The bit of one value is set and that of the other is not.
            return _ratio(device.p * (1 - device.q), device.q * (1 - device.p))
        case HadamardDevice():
            return _ratio(device.p, 1 - device.p)
        case SubsetDevice():
            # A set with the value, one of C(d-1, k-1), against one without it, one of C(d-1, k).
            others = device.labels - device.size
            return _ratio(device.p * others, (1 - device.p) * device.size)
        case LocalHashDevice():
            # The bucket of the value against any one of the other g-1.
            return _ratio(device.p * (device.buckets - 1), 1 - device.p)
    raise TypeError(f"the structure of {type(device).__name__} is not known to the audit")


def _of_levels(device: NumericDevice) -> Fraction | None:
    """Return the worst ratio over all outputs, for levels near both ends and in the middle."""
    last = device.labels - 1
    levels = sorted({0, 1, last // 2, last - 1, last})
    worst = Fraction(1)
    for output in range(device.outputs):
        chances = [device.probability(output, level) for level in levels]
        if max(chances) > 0:  # hybrid at small epsilon never uses its band
            ratio = _ratio(max(chances), min(chances))
            if ratio is None:
                return None
            worst = max(worst, ratio)
    return worst


def _ratio(likely: Fraction, unlikely: Fraction) -> Fraction | None:
    """Return the likelihood ratio of a report, or None if one value makes it impossible."""
    return likely / unlikely if unlikely > 0 else None
