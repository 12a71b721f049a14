"""The device half of every oracle: how one device randomises its value and encodes the report.

`Randomiser` is the base of all of them, also of those for numbers (`numeric/`); `DeviceHalf` adds
what is particular to labels. Standard library only. Every probability is a ratio of integers taken
from `Odds`, so the worst likelihood ratio between any two values is known as a fraction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Generic, TypeVar

from ldpstream.domain import MOST_LABELS, check_labels
from ldpstream.errors import MalformedReport, Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon, log_ceiling
from ldpstream.privacy.randomness import Source

WIRE_VERSION = 1

Report = TypeVar("Report")


class Randomiser(ABC, Generic[Report]):
    """A randomiser over `labels` values that is epsilon-LDP, and the wire format of its reports."""

    worst_ratio: Fraction
    """The maximum over values v, v' and reports y of Pr[y | v] / Pr[y | v'], exactly."""
    payload_bytes: int
    """The length of an encoded report without its version byte."""
    most_labels: ClassVar[int] = MOST_LABELS
    """The largest domain that it can serve."""

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        self.labels = check_labels(labels, self.most_labels)
        self.epsilon = epsilon

    @property
    def true_epsilon(self) -> Decimal:
        """The epsilon it really has: ln(worst_ratio), rounded up; never more than `epsilon`."""
        return log_ceiling(self.worst_ratio)

    @property
    def report_bytes(self) -> int:
        return 1 + self.payload_bytes

    def perturb(self, value: int, source: Source) -> Report:
        """Randomise `value`, the index of a label."""
        if not 0 <= value < self.labels:
            raise Mistake(
                Problem.VALUE_RANGE, given=value, labels=self.labels, last=self.labels - 1
            )
        return self._perturb(value, source)

    def encode(self, report: Report) -> bytes:
        """Return the report as a version byte and a payload of fixed length, little-endian."""
        return bytes([WIRE_VERSION]) + self._pack(report).to_bytes(self.payload_bytes, "little")

    def decode(self, wire: bytes) -> Report:
        """Decode what `encode` wrote; refuse anything that it could not have written."""
        if len(wire) != self.report_bytes:
            raise MalformedReport(
                Problem.REPORT_LENGTH, given=len(wire), expected=self.report_bytes
            )
        if wire[0] != WIRE_VERSION:
            raise MalformedReport(Problem.REPORT_VERSION, given=wire[0], expected=WIRE_VERSION)
        return self._unpack(int.from_bytes(wire[1:], "little"))

    @abstractmethod
    def _perturb(self, value: int, source: Source) -> Report: ...

    @abstractmethod
    def _pack(self, report: Report) -> int:
        """Return the report as one integer of `payload_bytes` bytes."""

    @abstractmethod
    def _unpack(self, packed: int) -> Report: ...


class DeviceHalf(Randomiser[Report]):
    """A randomiser of labels.

    All oracles here are *pure*: a report supports some labels, the true one with probability `p`
    and each other one with probability `q` (Wang et al., USENIX Security 2017).
    """

    p: Fraction
    """Pr[a report supports the true label]."""
    q: Fraction
    """Pr[a report supports a given other label]."""
    supports_equally_many: ClassVar[bool] = False
    """Whether all reports support equally many labels, so that estimates always sum to 1."""

    @abstractmethod
    def supports(self, report: Report, label: int) -> bool:
        """Return whether the collector counts this report for `label`."""


def check_range(field: str, given: int, bound: int) -> int:
    """Refuse a decoded number that is not one of 0 .. bound-1."""
    if given >= bound:
        raise MalformedReport(
            Problem.REPORT_RANGE, field=field, given=given, expected=f"below {bound}"
        )
    return given


def bytes_for(choices: int) -> int:
    """Return the least number of bytes that hold 0 .. choices-1."""
    return ((choices - 1).bit_length() + 7) // 8
