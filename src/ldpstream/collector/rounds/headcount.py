"""An estimate of how many devices there are, from the reports that came.

In a round each device that has the budget left reports with a known probability, the rate. So n
reports at a rate r come from about n / r devices, besides those that have spent theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, sqrt

from ldpstream.collector.rounds.group import RoundGroup
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.slots import begins_epoch
from ldpstream.protocol.strata import level_in

WINDOWS = 2
"""The windows that are looked back at: a fleet that grows or shrinks is followed within them."""
REACH = WINDOWS + 1
"""The windows whose rounds matter: who had spent in the first is known from the one before."""
SURENESS = 1.645
"""Standard errors to each side of an interval that holds with probability 0.9."""


@dataclass(frozen=True)
class Estimate:
    """A number of devices, and an interval for it (0.9)."""

    devices: int
    low: int
    high: int

    @classmethod
    def exactly(cls, devices: int) -> Estimate:
        return cls(devices, devices, devices)

    @classmethod
    def read(cls, told: Mapping[str, int]) -> Estimate | None:
        """Return what `to_json` has told; None if a release says no more than one number."""
        if "expected_low" not in told:
            return None
        return cls(told["expected"], told["expected_low"], told["expected_high"])

    def at_least(self, heard: int) -> Estimate:
        """Return the estimate where so many were certainly heard.

        >>> Estimate(52, 51, 53).at_least(60)
        Estimate(devices=60, low=60, high=60)
        """
        return Estimate(*(max(heard, one) for one in (self.devices, self.low, self.high)))

    def to_json(self) -> dict[str, int]:
        return {"expected": self.devices, "expected_low": self.low, "expected_high": self.high}


@dataclass(frozen=True)
class _Answered:
    """The reports of one level to one ask."""

    t: int
    level: str
    window: int
    rate: float
    reports: int
    spent: int
    """Devices that could not report, since they have spent all of epsilon in the window."""
    nano: int


class Headcount:
    """An estimate of the fleet from the rounds of the last windows.

    >>> Headcount(Epsilon.of(1), window=4, slots=True).estimate(9) is None
    True
    """

    def __init__(
        self, epsilon: Epsilon, window: int, *, slots: bool, is_begun: bool = False
    ) -> None:
        self._epsilon = epsilon
        self._window = window
        self._slots = slots
        self._answers: dict[tuple[str, str], _Answered] = {}
        self._is_begun = is_begun
        """Whether anybody was heard: before that there is no fleet to be counted."""

    def follow(self, epsilon: Epsilon, window: int) -> None:
        """Go on under new terms."""
        self._epsilon, self._window = epsilon, window

    def add(self, group: RoundGroup) -> None:
        """Count the reports of an ask; after a crash it may be counted again."""
        first = group.first
        self._is_begun |= group.reports > 0
        if not (first.rate[0] and self._is_begun):
            return
        for level in {level_in(one.name) for one in group.rounds}:
            rounds = [one for one in group.rounds if level_in(one.name) == level]
            window = rounds[0].rate[1] if self._slots else self._window
            if self._slots and begins_epoch(group.t, window):
                continue  # many have no turn then: see protocol/slots.py
            self._answers[first.name, level] = _Answered(
                group.t,
                level,
                window,
                rounds[0].rate[0] / rounds[0].rate[1],
                sum(one.support.reports for one in rounds if one.support is not None),
                0 if self._slots else self._spent(group.t, first.name, first.epsilon_nano),
                first.epsilon_nano,
            )

    def _spent(self, t: int, name: str, nano: int) -> int:
        """Return how many have no budget left, by what was answered in the window before."""
        recent = [
            one
            for (asked, _), one in self._answers.items()
            if t - self._window < one.t <= t and asked != name
        ]
        if sum(one.nano for one in recent) + nano <= self._epsilon.nano:
            return 0
        return sum(one.reports for one in recent)

    def estimate(self, t: int) -> Estimate | None:
        """Return how many devices there are at t; None if nobody was heard in the last windows."""
        parts = self._levels(t).values()
        if not any(devices for devices, _ in parts):
            return None
        devices, variance = sum(one for one, _ in parts), sum(one for _, one in parts)
        off = SURENESS * sqrt(variance)
        return Estimate(round(devices), max(0, int(devices - off)), ceil(devices + off))

    def shares(self, t: int) -> dict[str, float]:
        """Return the share of the fleet at each level; none if nobody was heard."""
        sizes = {level: devices for level, (devices, _) in self._levels(t).items()}
        total = sum(sizes.values())
        return {level: size / total for level, size in sizes.items()} if total else {}

    def _levels(self, t: int) -> dict[str, tuple[float, float]]:
        """Return the devices of each level at t, and the variance of that number."""
        self._answers = {
            key: one for key, one in self._answers.items() if one.t > t - WINDOWS * one.window
        }
        answers = self._answers.values()
        return {
            level: _of_level(one for one in answers if one.level == level)
            for level in sorted({one.level for one in answers})
        }


def _of_level(answers: Iterable[_Answered]) -> tuple[float, float]:
    """Return the devices of one level and the variance of that number, from all of its rounds."""
    known = list(answers)
    rates = sum(one.rate for one in known)
    devices = sum(one.reports + one.rate * one.spent for one in known) / rates
    return devices, sum(one.reports * (1 - one.rate) for one in known) / rates**2
