"""The follower's side of a stream: it shows, through a shared store, what the leader does.

So long polls, feeds and reports work at every collector of a store. A follower asks for nothing and
decides nothing: it shows what the leader has committed.
"""

from __future__ import annotations

from ldpstream.collector.clock import Clock
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.rounds.announcement import AnnouncedRounds
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.loading import open_round_of, selection_of, terms_of
from ldpstream.collector.rounds.selection import RosterSelection
from ldpstream.collector.store.contract import RoundState, Store
from ldpstream.protocol.history import TermsHistory

IDLE_MS = 60_000
"""When a follower looks at its stream though nobody has woken it."""
POLL_MS = 100
"""How often a shared store is polled: changes by other collectors are seen that much later."""


class Follower:
    """A collector's view of a stream that another one leads."""

    complete = False
    """Never: only the leader closes rounds."""
    at_rest = True
    """Always: it decides nothing."""
    counting_t = None
    """What engines count is the leader's to know."""
    polls = False
    """Never: it is woken when the leader has done something."""

    def __init__(
        self, config: StreamConfig, store: Store, clock: Clock, listener: Listener
    ) -> None:
        self._store = store
        self._clock = clock
        self._listener = listener
        self.config, self.history, stored = terms_of(config, store, clock)
        in_force = self.history.at(stored.last_t + 1)
        self.selection = selection_of(self.config, in_force, store)
        self.last_t = stored.last_t
        self._serial = -1

    def advance(self) -> int:
        """Announce what is new; return when to look again, in milliseconds."""
        serial, last_t = self._store.pulse(self.config.name)
        if serial != self._serial:
            self._announce(serial, last_t)
            self._serial = serial
        if last_t > self.last_t:
            self.last_t = last_t
            (latest,) = self._store.releases(self.config.name, last_t, 1)
            self._listener.released(latest)
        return self._clock.now_ms() + IDLE_MS

    def _announce(self, serial: int, last_t: int) -> None:
        """Announce what is open now; a change after the serial was read has a serial of its own."""
        self.history = TermsHistory.read(self._store.versions(self.config.name))
        rounds = tuple(
            open_round_of(self.config, self.history, one)
            for one in self._store.rounds(self.config.name, last_t)
            if one.state is RoundState.OPEN
        )
        if rounds and isinstance(self.selection, RosterSelection):
            self.selection.catch_up()  # before any device is told that it is asked
        t = max([last_t, *(one.stored.t for one in rounds)])
        halt = self.config.halt
        self._listener.announced(AnnouncedRounds(serial, t, rounds, self.history, halt))
