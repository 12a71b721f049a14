"""Counting the rounds of one ask, of which some may still be counted by an engine."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain

from ldpstream.collector.kernels.device_table import DeviceTable
from ldpstream.collector.reports.halves import half_of
from ldpstream.collector.rounds.group import RoundGroup
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.selection import RosterSelection, Selection
from ldpstream.collector.rounds.suspicion import Suspects
from ldpstream.collector.store.contract import NO_RESTS, Rests, RoundState, Store, StoredRound
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import Terms


class RoundCounter:
    """Counts closed rounds of one stream; counts are on disk before they are used."""

    def __init__(
        self,
        stream: str,
        store: Store,
        selection: Selection,
        suspects: Suspects,
        listener: Listener,
    ) -> None:
        self._stream, self._store, self._selection = stream, store, selection
        self._suspects, self._listener = suspects, listener

    def count(self, group: RoundGroup, history: TermsHistory) -> RoundGroup:
        """Count what can be counted of the rounds, under the terms of each.

        Those without a support afterwards are still counted by an engine: call this again.
        """
        strata = group.strata(history)
        levels = Counter(terms.level for terms in strata.values())
        counted = {name: DeviceTable() for name, rounds in levels.items() if rounds > 1}
        supports = {
            one.name: support
            for one in group.rounds
            if one.support is None
            and (support := self._count(one, strata[one.name], counted)) is not None
        }
        if supports:
            # At once: after a crash between two of them nobody knew who was counted in the first.
            self._store.tally(self._stream, supports, self._rests(group, supports))
        return RoundGroup(tuple(self._tallied(one, strata, supports) for one in group.rounds))

    def credible(self, group: RoundGroup) -> dict[str, Support]:
        """Return the counts of tallied rounds by name; none of those that are discarded."""
        return group.credible(self._suspects.discarded)

    def _count(
        self, one: StoredRound, terms: Terms, counted: dict[str, DeviceTable]
    ) -> Support | None:
        """Count a round; `counted` has, by level, whose reports were counted in others."""
        half = half_of(terms, Epsilon(one.epsilon_nano))
        shape = self._suspects.watch(half)
        see = None if shape is None else shape.see
        support = self._store.count(self._stream, one.name, half, see, counted.get(terms.level))
        if support is not None:
            self._suspects.judge(one.name, shape)
        return support

    def _tallied(
        self, one: StoredRound, strata: dict[str, Terms], supports: dict[str, Support]
    ) -> StoredRound:
        support = supports.get(one.name)
        if support is None:
            return one
        self._listener.changed(one, RoundState.TALLIED)
        self._listener.counted(strata[one.name], support.reports)
        return replace(one, state=RoundState.TALLIED, support=support)

    def _rests(self, group: RoundGroup, supports: dict[str, Support]) -> Rests:
        """Return who rests, having answered in none of the rounds, if all of them are counted now.

        A device answers in the round of its own terms only. Where an engine counts, who has
        answered is not known.
        """
        if not isinstance(self._selection, RosterSelection) or len(supports) < len(group.rounds):
            return NO_RESTS
        answered = [self._store.answered(self._stream, one.name) for one in group.rounds]
        known = [one for one in answered if one is not None]
        everyone = chain.from_iterable(known) if len(known) == len(answered) else None
        return self._selection.answered(group.rounds[-1], everyone)
