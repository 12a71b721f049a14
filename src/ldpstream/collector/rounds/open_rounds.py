"""The open rounds of a stream: stored before anyone is told, announced, and closed together."""

from __future__ import annotations

from collections.abc import Mapping

from ldpstream.collector.clock import Clock
from ldpstream.collector.config import SelectionMethod, StreamConfig
from ldpstream.collector.reports.halves import half_of
from ldpstream.collector.rounds.announcement import AnnouncedRounds, OpenRound
from ldpstream.collector.rounds.group import RoundGroup
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.loading import open_round_of
from ldpstream.collector.rounds.selection import Selection
from ldpstream.collector.store.contract import NewRound, RoundState, Store, StoredRound
from ldpstream.mechanisms.messages import Ask
from ldpstream.protocol.history import TermsHistory


class OpenRounds:
    """The rounds that take reports, one for each stratum; none between two asks."""

    def __init__(
        self,
        config: StreamConfig,
        store: Store,
        clock: Clock,
        selection: Selection,
        listener: Listener,
        *,
        serial: int,
        last_t: int,
    ) -> None:
        self._config, self._store, self._clock = config, store, clock
        self._selection, self._listener = selection, listener
        self._serial = serial
        self._slots = config.selection is SelectionMethod.SLOTS
        self.rounds: tuple[OpenRound, ...] = ()
        """Those of the terms in force, at their own level, come first."""
        self.last_t = last_t
        """The last timestamp that rounds were opened for."""

    @property
    def first(self) -> OpenRound | None:
        return self.rounds[0] if self.rounds else None

    @property
    def deadline_ms(self) -> int | None:
        """When they close, all at once."""
        return self.rounds[0].stored.deadline_ms if self.rounds else None

    @property
    def polls(self) -> bool:
        """Whether answers, at any collector of the store, may complete the open round.

        With open selection nobody knows. Nor while several terms are counted: a device may have
        answered under each of them.
        """
        return len(self.rounds) == 1 and self.rounds[0].asked is not None

    @property
    def complete(self) -> bool:
        """Whether everyone who was asked has answered."""
        if not self.polls:
            return False
        asking = self.rounds[0]
        assert asking.asked is not None
        return self._store.received(self._config.name, asking.name) >= len(asking.asked)

    def ask(
        self,
        ask: Ask,
        t: int,
        name: str,
        deadline_ms: int,
        history: TermsHistory,
        planned: Mapping[str, int],
    ) -> RoundGroup:
        """Store the rounds of an ask, and whom it asks. They take no reports yet.

        `planned` has the reports that the round of each stratum is to get, by its suffix.
        """
        choice = self._selection.choose(t, ask)
        opened_ms = self._clock.now_ms()
        new = []
        for stratum in history.strata_at(t):
            # Earlier terms are looser: what is asked under those in force, they allow, too.
            epsilon = stratum.epsilon if self._slots else ask.epsilon
            one = NewRound(
                t=t,
                name=name + stratum.suffix,
                purpose=ask.purpose,
                epsilon_nano=epsilon.nano,
                users=planned[stratum.suffix],
                rate=(1, stratum.window) if self._slots else choice.rate,
                report_bytes=half_of(stratum, epsilon).device.report_bytes,
                opened_ms=opened_ms,
                deadline_ms=deadline_ms,
                roster_size=choice.asked.roster_size if choice.asked is not None else 0,
                asked=choice.asked.packed if choice.asked is not None else None,
            )
            new.append(one)
        self._serial = self._store.open_round(self._config.name, *new)
        for one in new:
            self._listener.changed(one, RoundState.OPEN)
        self._selection.remember(new[0])
        self.last_t = t
        return RoundGroup(
            tuple(
                StoredRound(**vars(one), state=RoundState.OPEN, support=None, closed_ms=None)
                for one in new
            )
        )

    def take_reports(self, group: RoundGroup, history: TermsHistory) -> None:
        """Open stored rounds: new ones, or those that a crash has left open."""
        self.rounds = tuple(open_round_of(self._config, history, one) for one in group.rounds)

    def close(self, now_ms: int) -> None:
        for closing in self.rounds:
            self._serial = self._store.close_round(self._config.name, closing.name, now_ms)
            self._listener.changed(closing.stored, RoundState.CLOSED)
        self.rounds = ()

    def announce(self, released_t: int, history: TermsHistory) -> None:
        """Announce what is open, under the serial of the last change in the store."""
        t = max(released_t, self.last_t)
        told = AnnouncedRounds(self._serial, t, self.rounds, history, self._config.halt)
        self._listener.announced(told)
