"""SPAS: a quarter of the resource watches for changes, the rest is for a chosen number of them.

SPAS, SIGMOD 2025. A window has c* = floor(eps_p sqrt(3E/4) / (3 Delta)) publications, with E the
variance of the released changes: as many as leave each with a noise of E/6.

Assumed: under local reports there is no sparse vector, whose noisy threshold makes tests below it
free; the test is the dissimilarity of LDP-IDS, with a quarter of the resource in w shares. c* is
then the largest c at which a publication with 3/(4c) of the resource has a variance of at most E/6.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.adaptive import Adaptive
from ldpstream.mechanisms.mechanism import Step
from ldpstream.mechanisms.messages import Tally

CHANGES = 10
"""Released changes that E is the mean of."""
QUARTERS = 4


@dataclass(frozen=True)
class Memory:
    """The mean squared changes between publications, the newest last; 0 where there was none."""

    changes: Floats = field(default_factory=lambda: np.zeros(CHANGES))


class Spas(Adaptive):
    """Publications of equal size, as many as the stream's changes call for."""

    @dataclass(frozen=True)
    class Parameters:
        """The constants of SPAS."""

        balance: float = 6.0
        """The changes' variance over that of a publication's noise."""

    parameters: Parameters
    default_parameters: ClassVar[Parameters] = Parameters()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.unit = self.division.share(QUARTERS * self.window)

    def first_memory(self) -> Memory:
        return Memory()

    def decide(self, t: int) -> Step:
        probe = yield self.ask_dissimilarity()
        for_publications = self.division.total - self.division.total // QUARTERS
        amount = for_publications // self._number(probe, for_publications)
        left = for_publications - self.spent_before(t)
        if amount > left or not self.worth_publishing(probe, amount):
            return self.approximate(t)
        fresh = yield self.ask_publication(t, amount)
        if fresh:
            change = float(np.mean((fresh.estimate - self.state.release.values) ** 2))
            moved = max(change - float(fresh.variance.mean()), 0.0)
            self.memory = Memory(np.append(self.memory.changes[1:], moved))
        return self.publish(t, fresh, probe)

    def _number(self, probe: Tally, for_publications: int) -> int:
        """Return c*, the publications planned for a window; 1 before any change was seen."""
        changes = self.memory.changes
        if not probe or not changes.any():
            return 1
        allowed = float(changes[changes > 0].mean()) / max(self.parameters.balance, 1e-9)
        low, high = 1, min(self.window, for_publications)
        while low < high:  # the error grows with the number
            middle = (low + high + 1) // 2
            if self.error(probe, for_publications // middle) <= allowed:
                low = middle
            else:
                high = middle - 1
        return low
