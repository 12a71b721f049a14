"""One tally for the mechanism, from the rounds of all strata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ldpstream.collector.config import StreamConfig
from ldpstream.collector.rounds.group import RoundGroup
from ldpstream.collector.rounds.parts import reports_of
from ldpstream.mechanisms.breakdown import Group
from ldpstream.mechanisms.messages import Tally
from ldpstream.mechanisms.mixed import MixedNoise, TermsPart
from ldpstream.mechanisms.noise import Noise
from ldpstream.mechanisms.strata import StrataMemory, Stratum, combine
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import SelectionMethod, Terms
from ldpstream.refine.relabelling import Relabelling

MEMORY = "strata"
"""The key, in a mechanism's saved state, of what is remembered of the strata."""


class StrataTally:
    """Combines the supports of strata: levels by their sizes, versions of terms by their reports.

    The versions of a level are one sample of its devices: slots do not depend on the version, and
    an ask is put to all of them alike.
    """

    def __init__(
        self, config: StreamConfig, saved: Mapping[str, Any] | None, part: Group | None = None
    ) -> None:
        self.config = config
        self._part = part
        """The group of devices whose reports are tallied, or None for the whole fleet."""
        known = (saved or {}).get(MEMORY)
        self._memory = StrataMemory() if known is None else StrataMemory.from_json(known)

    def save(self) -> dict[str, Any]:
        """Return what belongs to the mechanism's state: nothing while there is one stratum."""
        return {MEMORY: self._memory.to_json()} if self._memory.heard else {}

    def go_over(self, move: Relabelling | None) -> None:
        """Carry what is remembered to the labels of new terms."""
        if move is not None and not move.is_same:
            heard = {
                name: replace(one, values=move.summed(one.values))
                for name, one in self._memory.heard.items()
            }
            self._memory = replace(self._memory, heard=heard).relabelled()

    def tally(
        self,
        group: RoundGroup,
        supports: Mapping[str, Support],
        history: TermsHistory,
        noise: Noise,
    ) -> Tally:
        """Return the tally of one ask; `noise` is that of the terms in force."""
        supports = reports_of(self._part, group, supports, history)
        first = group.first
        if len(group.rounds) == 1:
            self._memory = StrataMemory()
            return noise.tally(Epsilon(first.epsilon_nano), supports[first.name])
        now = history.at(group.t)
        slots = now.selection is SelectionMethod.SLOTS
        strata, heard = [], {}
        for level in now.strata:
            window = level.window if slots else _turns(self.config.population, first.users)
            parts = self._parts(group, supports, history, level, window)
            read_by, support = _as_one(parts, noise_of(self.config, level), window)
            epsilon = level.epsilon if slots else Epsilon(first.epsilon_nano)
            strata.append(Stratum(level.level, epsilon, window, read_by))
            heard[level.level] = support
        before = self._memory if slots else StrataMemory()
        combined, after = combine(group.t, strata, heard, before, noise.labels)
        self._memory = after if slots else before
        return combined

    def _parts(
        self,
        group: RoundGroup,
        supports: Mapping[str, Support],
        history: TermsHistory,
        level: Terms,
        window: int,
    ) -> list[TermsPart]:
        """Return the reports of a level, those of the terms in force first."""
        found = []
        strata = group.strata(history)
        for one in group.rounds:
            terms = strata[one.name]
            if terms.level == level.level and supports[one.name].reports:
                to = None if terms.version == level.version else history.places(terms, level)
                every = terms.window if level.selection is SelectionMethod.SLOTS else window
                epsilon = Epsilon(one.epsilon_nano)
                found.append(
                    TermsPart(noise_of(self.config, terms), epsilon, supports[one.name], every, to)
                )
        return found


def noise_of(config: StreamConfig, terms: Terms) -> Noise:
    """Return how reports under these terms are read, at their level."""
    settings = replace(
        config.settings,
        labels=len(terms.values),
        epsilon=terms.epsilon,
        window=terms.window,
        oracle=terms.oracle,
    )
    return config.query.noise(settings, terms.epsilon)


def relabelling(history: TermsHistory, old: Terms, new: Terms) -> Relabelling | None:
    """Return where labels of earlier terms are in later ones, or None if both are of numbers."""
    places = history.places(old, new)
    return None if places is None else Relabelling(places, len(new.values))


def _turns(population: int, users: int) -> int:
    """Return after how many such asks everyone would have been asked once."""
    return max(1, round(population / max(users, 1)))


def _as_one(parts: list[TermsPart], noise: Noise, window: int) -> tuple[Noise, Support]:
    """Return how the reports of a level are read together, and their support."""
    if not parts:
        return noise, Support(np.zeros(0, np.int64), 0)
    if len(parts) == 1 and parts[0].to is None and parts[0].window == window:
        return noise, parts[0].support
    mixed = MixedNoise(tuple(parts), noise)
    return mixed, Support(np.zeros(0, np.int64), max(1, round(mixed.devices / window)))
