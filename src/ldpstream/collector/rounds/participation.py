"""A lower bound on the devices that took part in the last window.

Readers must see it: the interval of a figure is about those who report, not about those who do not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from ldpstream.collector.store.contract import NewRound
from ldpstream.protocol.strata import ask_name, level_in


@dataclass(frozen=True)
class _Heard:
    asked: str
    """The name of the ask: a device answers it in one stratum only."""
    level: str
    t: int
    window: int
    reports: int
    devices: Fraction
    """How many devices these are at least, if they have answered other rounds, too."""


class Participation:
    """A lower bound on the distinct devices that reported in the last w timestamps.

    A device spends at most epsilon in a window. So n reports that cost e each come from at least
    n e / epsilon devices: from n of them, where each report costs all of epsilon. Epsilon and w are
    those of the device's own stratum.
    """

    def __init__(self) -> None:
        self._rounds: dict[str, _Heard] = {}

    def add(self, asked: NewRound, reports: int, epsilon_nano: int, window: int) -> None:
        """Count the reports of a round; after a crash it may be counted again."""
        devices = Fraction(asked.epsilon_nano, epsilon_nano) * reports
        self._rounds[asked.name] = _Heard(
            ask_name(asked.name), level_in(asked.name), asked.t, window, reports, devices
        )

    def at(self, t: int) -> int:
        """Return at least how many devices reported in the window that ends with t."""
        rounds = self._window(t)
        by_ask: Counter[str] = Counter()
        for one in rounds:
            by_ask[one.asked] += one.reports
        spent = sum((one.devices for one in rounds), Fraction())
        return max(-(-spent.numerator // spent.denominator), *by_ask.values(), 0)

    def by_level(self, t: int) -> dict[str, int]:
        """Return the same for each level of privacy, of devices with slots: they report once."""
        heard: Counter[str] = Counter()
        for one in self._window(t):
            heard[one.level] += one.reports
        return dict(heard)

    def _window(self, t: int) -> list[_Heard]:
        """Forget what is too old at t, and return the rest."""
        self._rounds = {n: one for n, one in self._rounds.items() if one.t > t - one.window}
        return list(self._rounds.values())
