"""The device half of every randomiser of numbers, in exact arithmetic, standard library only.

A value is a level 0 .. steps. Everything below is in terms of the *unit value* u = level / steps.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from ldpstream.oracles.device_half import Randomiser, bytes_for, check_range
from ldpstream.privacy.epsilon import Epsilon


@dataclass(frozen=True)
class Scale:
    """The numbers that `outputs` consecutive outputs y = 0, 1, ... stand for: (y - zero) / unit.

    >>> Scale(outputs=2, zero=Fraction(1, 4), unit=Fraction(1, 2)).number(1)
    Fraction(3, 2)
    """

    outputs: int
    zero: Fraction
    """The mean output of a device whose unit value is 0."""
    unit: Fraction
    """The difference between the mean outputs at unit values 1 and 0."""

    def number(self, output: int) -> Fraction:
        return (output - self.zero) / self.unit


class NumericDevice(Randomiser[int]):
    """A randomiser of levels; its report, one of `outputs` numbers, has a mean linear in the level.

    So the number that a report stands for (`number`) is an unbiased estimate of u. Its variance
    given u is `base + bend * u(1-u)`: all randomisers here treat the two ends of the range alike.
    """

    base: Fraction
    """The variance of one report's number at either end of the range."""
    bend: Fraction
    """The coefficient of u(1-u), by which the variance differs inside the range."""

    def __init__(self, levels: int, epsilon: Epsilon, scales: tuple[Scale, ...]) -> None:
        super().__init__(levels, epsilon)
        self.steps = levels - 1
        self.scales = scales
        """The scales of consecutive outputs, from output 0 on."""
        self.outputs = sum(scale.outputs for scale in scales)
        self.payload_bytes = bytes_for(self.outputs)

    @property
    def worst_noise(self) -> Fraction:
        """The variance of one report's number at the worst u, which is an end or the middle."""
        return self.base + max(self.bend, Fraction(0)) / 4

    def number(self, output: int) -> Fraction:
        """Return the unbiased estimate of u that this report gives."""
        for scale in self.scales:
            if output < scale.outputs:
                return scale.number(output)
            output -= scale.outputs
        raise IndexError(output)

    @abstractmethod
    def probability(self, output: int, level: int) -> Fraction:
        """Return Pr[output | level]."""

    def _pack(self, report: int) -> int:
        return report

    def _unpack(self, packed: int) -> int:
        return check_range("output", packed, self.outputs)
