"""Counting the rounds of one ask, of which some may still be counted by an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ldpstream.arrays import Bytes
from ldpstream.collector.kernels.device_table import DeviceTable
from ldpstream.collector.reports.halves import half_of
from ldpstream.collector.rounds.group import RoundGroup
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.selection import RosterSelection, Selection
from ldpstream.collector.rounds.suspicion import Suspects
from ldpstream.collector.store.contract import NO_RESTS, Rests, Round, RoundState, Store
from ldpstream.privacy.epsilon import Epsilon
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
        self._heard: list[Bytes] | None = []
        """Who has answered in the rounds of this ask so far; None: it is not known."""
        self._counted: dict[str, DeviceTable] = {}
        """Whose reports were counted in the rounds of this ask, by levels with several versions."""

    def count(self, group: RoundGroup, strata: dict[str, Terms]) -> RoundGroup:
        """Count what can be counted of the rounds, under the terms of each.

        Those without a support afterwards are still counted by an engine: call this again.
        """
        rounds = list(group.rounds)
        if all(one.support is None for one in rounds):
            self._heard = []
            levels = Counter(terms.level for terms in strata.values())
            self._counted = {name: DeviceTable() for name, rounds in levels.items() if rounds > 1}
        for place, one in enumerate(rounds):
            if one.support is None:
                is_last = all(other.support is not None for other in rounds[place + 1 :])
                last = is_last and all(other.support is not None for other in rounds[:place])
                rounds[place] = self._count(one, strata[one.name], last=last)
        return RoundGroup(tuple(rounds))

    def _count(self, one: Round, terms: Terms, *, last: bool) -> Round:
        half = half_of(terms, Epsilon(one.epsilon_nano))
        shape = self._suspects.watch(half)
        see = None if shape is None else shape.see
        counted = self._counted.get(terms.level)
        support = self._store.count(self._stream, one.name, half, see, counted)
        if support is None:
            return one
        self._suspects.judge(one.name, shape)
        self._store.tally(self._stream, one.name, support, self._rests(one, last=last))
        self._listener.changed(one, RoundState.TALLIED)
        self._listener.counted(terms, support.reports)
        return replace(one, state=RoundState.TALLIED, support=support)

    def _rests(self, one: Round, *, last: bool) -> Rests:
        """Take note of who has answered; of those who have not once all rounds are counted.

        A device answers in the round of its own terms only.
        """
        if not isinstance(self._selection, RosterSelection):
            return NO_RESTS
        devices = self._store.answered(self._stream, one.name)
        if devices is None or self._heard is None:
            self._heard = None
        else:
            self._heard += devices
        return self._selection.answered(one, self._all_heard()) if last else NO_RESTS

    def _all_heard(self) -> Iterator[Bytes] | None:
        return None if self._heard is None else iter(self._heard)
