"""The rounds of one ask: each stratum has a round of its own, and all open and close together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from ldpstream.collector.store.contract import RoundState, StoredRound
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.strata import ask_name
from ldpstream.protocol.terms import Terms


@dataclass(frozen=True)
class RoundGroup:
    """The rounds of one ask, that of the terms in force at their own level first."""

    rounds: tuple[StoredRound, ...]

    @property
    def first(self) -> StoredRound:
        return self.rounds[0]

    @property
    def t(self) -> int:
        return self.first.t

    @property
    def is_open(self) -> bool:
        """Whether any of them takes reports: a crash may have left some closed and others not."""
        return any(one.state is RoundState.OPEN for one in self.rounds)

    @property
    def is_tallied(self) -> bool:
        return all(one.support is not None for one in self.rounds)

    @property
    def reports(self) -> int:
        """How many reports were counted in them."""
        return sum(one.support.reports for one in self.rounds if one.support is not None)

    def strata(self, history: TermsHistory) -> dict[str, Terms]:
        """Return the terms, at their level, that each round is for."""
        found = {one.name: history.stratum(one.name) for one in self.rounds}
        return {name: terms for name, terms in found.items() if terms is not None}

    def credible(self, is_discarded: Callable[[str], bool]) -> dict[str, Support]:
        """Return the counts of the tallied rounds by name; none of those that are discarded."""
        return {
            one.name: Support.none(len(one.support.counts))
            if is_discarded(one.name)
            else one.support
            for one in self.rounds
            if one.support is not None
        }

    def closed(self, at_ms: int) -> RoundGroup:
        return RoundGroup(
            tuple(
                replace(one, state=RoundState.CLOSED, closed_ms=at_ms)
                if one.state is RoundState.OPEN
                else one
                for one in self.rounds
            )
        )


def grouped(rounds: Iterable[StoredRound]) -> list[RoundGroup]:
    """Group rounds, in the order in which they were opened, by their asks."""
    groups = groupby(rounds, key=lambda one: ask_name(one.name))
    return [RoundGroup(tuple(group)) for _, group in groups]
