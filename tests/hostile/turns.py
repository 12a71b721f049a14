"""Who reports in a round, by selection: open selection is the collector's own."""

from __future__ import annotations

import numpy as np

from ldpstream.collector.rounds.selection import OpenSelection
from ldpstream.collector.store.contract import NewRound
from ldpstream.lab.roster import Roster
from ldpstream.lab.selection import SlotSelector
from ldpstream.mechanisms.division import Division
from ldpstream.mechanisms.messages import Ask
from ldpstream.protocol.terms import SelectionMethod
from tests.hostile.poisoning.turns import AskedTurns, Turns


class OpenTurns:
    """Whoever holds a key may answer an announcement: the collector does not see coins."""

    def __init__(
        self, division: Division, fakes: int, rng: np.random.Generator, *, greedy: bool
    ) -> None:
        users, window = division.population, division.window
        self._selection = OpenSelection(division.epsilon, window, users)
        self._honest = Roster(users - fakes, window, rng)
        self._obeying = None if greedy else Roster(fakes, window, rng)
        self._fakes, self._rng = fakes, rng

    def reporting(self, t: int, ask: Ask) -> tuple[int, int]:
        above, below = self._selection.choose(t, ask).rate
        honest = self._volunteers(self._honest, t, above / below)
        obeying = self._obeying
        fakes = self._fakes if obeying is None else self._volunteers(obeying, t, above / below)
        name = f"{t}-{ask.purpose}"
        rate = (above, below)
        stored = NewRound(t, name, ask.purpose, ask.epsilon.nano, ask.users, rate, 1, 0, 1, 0, None)
        self._selection.remember(stored)
        self._selection.heard(name, honest + fakes)
        return honest, fakes

    def _volunteers(self, free: Roster, t: int, rate: float) -> int:
        return len(free.sample(t, int(self._rng.binomial(free.free(t), rate))))


class SlotTurns:
    """A report is taken in a turn of its device only, so that to be greedy is of no use."""

    def __init__(self, users: int, fakes: int, window: int, rng: np.random.Generator) -> None:
        self._honest = SlotSelector(users - fakes, window, rng)
        self._fakes = SlotSelector(fakes, window, rng)

    def reporting(self, t: int, ask: Ask) -> tuple[int, int]:
        return len(self._honest.select(t, ask)), len(self._fakes.select(t, ask))


def turns_of(
    selection: SelectionMethod,
    division: Division,
    fakes: int,
    rng: np.random.Generator,
    *,
    greedy: bool,
) -> Turns:
    match selection:
        case SelectionMethod.ROSTER:
            return AskedTurns(division.population, fakes, rng)
        case SelectionMethod.OPEN:
            return OpenTurns(division, fakes, rng, greedy=greedy)
        case SelectionMethod.SLOTS:
            return SlotTurns(division.population, fakes, division.window, rng)
