"""How many honest and how many fake devices report in a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np

from ldpstream.mechanisms.division import Division
from ldpstream.mechanisms.messages import Ask


class Turns(Protocol):
    """A rule for who reports; a greedy fake ignores coin and ledger, and reports when it can."""

    def reporting(self, t: int, ask: Ask) -> tuple[int, int]:
        """Return how many honest and how many fake devices report."""
        ...


class AskedTurns:
    """Devices of a roster are asked by number: of others no report is taken, greedy or not."""

    def __init__(self, users: int, fakes: int, rng: np.random.Generator) -> None:
        self._honest, self._fakes, self._rng = users - fakes, fakes, rng

    def reporting(self, t: int, ask: Ask) -> tuple[int, int]:
        fakes = int(self._rng.hypergeometric(self._fakes, self._honest, ask.users))
        return ask.users - fakes, fakes


MakeTurns: TypeAlias = Callable[[Division, int, np.random.Generator], Turns]
"""Makes the turns of a fleet with this many fakes."""


def asked_turns(division: Division, fakes: int, rng: np.random.Generator) -> Turns:
    """Return the turns of a roster."""
    return AskedTurns(division.population, fakes, rng)
