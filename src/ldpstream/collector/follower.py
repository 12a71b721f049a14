"""Learns from the store what another collector does with a stream, and tells it here.

So long polls, feeds and reports work at every collector of a store. It asks for nothing and decides
nothing: what it shows is what the one that conducts has committed.
"""

from __future__ import annotations

from ldpstream.collector.announcement import Announcement
from ldpstream.collector.clock import Clock
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.coordinator import Listener
from ldpstream.collector.selection import RosterSelection
from ldpstream.collector.starting import open_round_of, selection_of, terms_of
from ldpstream.collector.store.contract import RoundState, Store

POLL_MS = 100
"""How often a shared store is looked at: what others do is known here so much later."""


class Follower:
    """One that does not hold the stream."""

    complete = False
    """Closing a round is for the one that conducts."""

    def __init__(
        self, config: StreamConfig, store: Store, clock: Clock, listener: Listener
    ) -> None:
        self.config = config
        self._store = store
        self._clock = clock
        self._listener = listener
        self.terms, stored = terms_of(config, store, clock)
        self._pin = self.terms.pin
        self.selection = selection_of(config, self.terms, store)
        self.last_t = stored.last_t
        self._serial = -1

    def advance(self) -> int:
        """Tell of what is new; return when to look again, in milliseconds."""
        serial, last_t = self._store.pulse(self.config.name)
        if serial != self._serial:
            self._announce(serial, last_t)
            self._serial = serial
        if last_t > self.last_t:
            self.last_t = last_t
            self._listener.released(last_t)
        return self._clock.now_ms() + POLL_MS

    def _announce(self, serial: int, last_t: int) -> None:
        """What is open now, or later: if it has changed again, the serial will tell."""
        rounds = tuple(
            open_round_of(self.config, self.terms, one)
            for one in self._store.rounds(self.config.name, last_t)
            if one.state is RoundState.OPEN
        )
        if rounds and isinstance(self.selection, RosterSelection):
            self.selection.catch_up()  # before anyone is told that he is asked
        t = max([last_t, *(one.stored.t for one in rounds)])
        self._listener.announced(Announcement(serial, self._pin, t, rounds))
