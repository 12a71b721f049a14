"""The leader's side of one stream: asks become rounds, and their tallies a release.

No sockets, no threads, no sleep: `advance` does all that is due by the clock and returns when to
call again. All of its state is in the store, so a coordinator that is lost at any instant is
replaced by a new one that goes on in the middle of the timestamp: it answers the mechanism's asks
from stored tallies until it comes to the round that was open.

A mechanism that must ask gets one round after the other. With slots nobody is asked: rounds open
and close by the clock alone, and the mechanism takes those that are closed, in order, as fast as
they are counted.

A stream may have several strata: levels of privacy, and devices that have earlier terms. Each has a
round of its own, all of which open and close together, and their counts become one tally.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from ldpstream.collector.clock import Clock
from ldpstream.collector.config import SelectionMethod, StreamConfig
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.carrying_over import (
    carried_over,
    lasting,
    missed_before,
    unchanged,
)
from ldpstream.collector.rounds.counting import RoundCounter
from ldpstream.collector.rounds.fleet_tracker import FleetTracker
from ldpstream.collector.rounds.group import RoundGroup, grouped
from ldpstream.collector.rounds.headcount import REACH
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.loading import selection_of, terms_of
from ldpstream.collector.rounds.open_rounds import OpenRounds
from ldpstream.collector.rounds.planned import reports_planned
from ldpstream.collector.rounds.running_vocabulary import running
from ldpstream.collector.rounds.selection import remember_all
from ldpstream.collector.rounds.suspicion import Suspects
from ldpstream.collector.store.contract import Store, StoredRelease
from ldpstream.mechanisms.messages import Ask, Purpose
from ldpstream.mechanisms.queries import DistributionQuery
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.strata import ask_name, round_name
from ldpstream.protocol.terms import Terms

HALTED_MS = 3_600_000
"""When a stream that is paused or retired is looked at again."""
COUNTING_MS = 50
"""How often an engine is asked whether it has counted a round."""

_log = logging.getLogger(__name__)


@dataclass
class _Timestamp:
    """The timestamp in progress."""

    t: int
    step: Generator[Ask, Any, Any]
    asked: int = 0
    received: int = 0
    asks: int = 0
    rounds: list[str] = field(default_factory=list)


class Coordinator:
    """The leader of one stream, which opens its rounds and makes its releases."""

    def __init__(
        self,
        config: StreamConfig,
        store: Store,
        clock: Clock,
        listener: Listener | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._listener = listener or Listener()
        config, self.history, stored = terms_of(config, store, clock)
        self._slots = config.selection is SelectionMethod.SLOTS
        self._running = running(config, self.history, stored, store)
        self.last_t = stored.last_t
        groups = grouped(store.rounds(config.name, stored.last_t - self.history.longest_window))
        self.selection = selection_of(config, self.terms, store)
        known_t = self._known_since()
        remember_all(self.selection, (one.first for one in groups if one.t > known_t))
        self._fleet = FleetTracker(config, self.terms, store, self._last_release())
        self._suspects = Suspects(config.suspicion, config.name, store)
        self._counter = RoundCounter(
            config.name, store, self.selection, self._suspects, self._listener
        )
        self._recall_fleet()
        for group in groups:
            if group.is_tallied:
                self._heard(group)
                self._running.heard(group, self._counter.credible(group), self.history)
        self._unanswered = deque(one for one in groups if one.t > stored.last_t)
        """Rounds that the mechanism has not come to: opened before a crash, or with slots."""
        self._open = OpenRounds(
            config,
            store,
            clock,
            self.selection,
            self._listener,
            serial=stored.serial,
            last_t=max((one.t for one in groups), default=0),
        )
        self._now: _Timestamp | None = None
        self._counting: RoundGroup | None = None
        if self._slots:
            self._go_on_with_slots()
        elif not self._unanswered:  # else its open round has this serial: `advance` announces it
            self._announce()

    @property
    def config(self) -> StreamConfig:
        """The stream's settings, with the population that is expected now."""
        return self._running.config

    @property
    def terms(self) -> Terms:
        """The terms that the mechanism is at: those of the last release."""
        return self._running.terms

    def _last_release(self) -> StoredRelease | None:
        return next(iter(self._store.releases(self.config.name, self.last_t, 1)), None)

    def _recall_fleet(self) -> None:
        """Replay rounds of the windows before the last one, which the device count needs too."""
        window = self.history.longest_window
        for past in range(REACH, 1, -1):
            first_t = self.last_t - past * window
            for group in grouped(self._store.rounds(self.config.name, first_t, first_t + window)):
                if group.is_tallied:
                    self._fleet.add(group, self.history)

    def _known_since(self) -> int:
        """Return the last timestamp whose list of asked devices may be deleted."""
        if self.terms.succeeds is None:
            return self.last_t - self.terms.window
        before = self.history.versions[self.terms.version - 2]
        begun = self.terms.succeeds.from_t
        return max(self.last_t - self.terms.window, begun - 1 - before.window)

    @property
    def open(self) -> OpenRound | None:
        """The round that takes reports now, of the terms in force and their own level."""
        return self._open.first

    @property
    def opened(self) -> tuple[OpenRound, ...]:
        """The rounds that take reports now, of all strata."""
        return self._open.rounds

    @property
    def complete(self) -> bool:
        """Whether everyone who was asked has answered, as far as that can be known."""
        return self._open.complete

    @property
    def polls(self) -> bool:
        """Whether answers, at any collector of the store, may complete the open round."""
        return self._open.polls

    @property
    def at_rest(self) -> bool:
        """Whether another coordinator, with other settings, can go on from the store.

        With slots always: what a round is for depends on no mechanism. Otherwise a timestamp that
        was begun is ended by the mechanism that has begun it.
        """
        return self._slots or (self._now is None and not self.opened and not self._unanswered)

    @property
    def counting_t(self) -> int | None:
        """The timestamp whose closed rounds an engine has not counted yet, if there is one."""
        counting = self._counting
        return None if counting is None or counting.is_open else counting.t

    def advance(self) -> int:
        """Do all that is due; return the time of the next event, in milliseconds.

        Without slots, a timestamp that is due after a release waits for the next call, so that a
        coordinator with other settings can take over in between.
        """
        last_t, now_ms = self.last_t, self._clock.now_ms()
        while (wake := self._act(now_ms)) is None:
            now_ms = self._clock.now_ms()
            if not self._slots and last_t < self.last_t < self.terms.timestamp_at(now_ms):
                return now_ms
        return wake

    def _act(self, now_ms: int) -> int | None:
        """Perform one due action and return None, or return the time of the next one."""
        deadline_ms = self._open.deadline_ms
        if deadline_ms is not None:
            if now_ms >= deadline_ms or self.complete:
                self._close(now_ms)
                return None
            if not self._slots:
                return deadline_ms
        elif self._slots and self.config.halt is None and self._opens_slot(now_ms):
            return None
        if self._counting is not None:
            tally = self._tallied(self._counting)
            if tally is None:
                return min(now_ms + COUNTING_MS, self._next_ms(now_ms))
            self._run(tally)
        elif self._unanswered:
            first = self._unanswered[0]
            self._carry_over(first.t, now_ms)
            if self._slots and first.is_open:
                return self._next_ms(now_ms)
            self._begin(first.t)
        elif self.config.halt is not None:
            return now_ms + HALTED_MS
        else:
            t = self.terms.timestamp_at(now_ms)
            if self._slots or t <= self.last_t or self._is_over(t, now_ms):
                return self._next_ms(now_ms)
            self._carry_over(t, now_ms)
            self._begin(t)
        return None

    def _next_ms(self, now_ms: int) -> int:
        """Return when the open round closes, or the next timestamp begins."""
        if self._open.deadline_ms is not None:
            return self._open.deadline_ms
        t = self.terms.timestamp_at(now_ms)
        return self.terms.start_of(max(t, self._open.last_t, self.last_t) + 1)

    def _is_over(self, t: int, now_ms: int) -> bool:
        """Return whether it is too late for anyone to answer at t."""
        return now_ms >= self._deadline(t, Purpose.PUBLICATION)

    # With slots

    def _go_on_with_slots(self) -> None:
        """Announce what is open; close again what was closed last: its end may not be in a log.

        Earlier rounds were ended before the next one was opened.
        """
        closed = [group for group in self._unanswered if not group.is_open]
        for group in closed[-1:]:
            self._close_stored(group)
        for group in self._unanswered:
            if group.is_open:
                self._open.take_reports(group, self.history)
        self._announce()

    def _opens_slot(self, now_ms: int) -> bool:
        """Open the rounds of this timestamp, unless it was done before or it is too late."""
        t = self.terms.timestamp_at(now_ms)
        if t <= max(self._open.last_t, self.last_t) or self._is_over(t, now_ms):
            return False
        self._learn_terms()
        ask = self._running.ask_of_slot(t, self.history.at(t))
        opened = self._ask(ask, t, round_name(t))
        self._unanswered.append(opened)
        self._open.take_reports(opened, self.history)
        self._announce()
        return True

    # The mechanism

    def _begin(self, t: int) -> None:
        self._learn_terms()
        self._go_over(self.history.at(t))
        self._now = _Timestamp(t, self._running.step(t))
        self._run(None)

    def _learn_terms(self) -> None:
        """Look up terms that another collector of a shared store may have added."""
        if self._store.shared:
            versions = self._store.versions(self.config.name)
            if len(versions) > len(self.history.versions):
                self.history = TermsHistory.read(versions)

    def _go_over(self, terms: Terms) -> None:
        """Go on under new terms, with all that is known under the last ones."""
        if terms.version == self.terms.version:
            return
        self._running.go_over(terms, self.history)
        self.selection.follow(terms.epsilon, terms.window)
        self._fleet.go_over(terms)

    def _run(self, tally: Any) -> None:
        """Resume the mechanism until it waits for an open round, or releases."""
        now = self._now
        assert now is not None
        while True:
            try:
                ask = now.step.send(tally)  # None starts a generator
            except StopIteration as done:
                self._release(now, done.value)
                return
            group = self._round_for(ask, now)
            now.rounds += [one.name for one in group.rounds]
            now.asks += 1
            now.asked += reports_planned(group, self.config.selection)
            if group.is_open:
                self._open.take_reports(group, self.history)
                self._counting = group
                self._announce()
                return
            tally = self._tallied(group)
            if tally is None:
                return

    def _round_for(self, ask: Ask, now: _Timestamp) -> RoundGroup:
        """The rounds of an ask: those stored before a crash, or new ones."""
        if not self._unanswered:
            name = round_name(now.t, purpose=ask.purpose)
            if name in map(ask_name, now.rounds):  # a mechanism may ask twice for the same purpose
                name = round_name(now.t, purpose=ask.purpose, number=now.asks + 1)
            return self._ask(ask, now.t, name)
        group = self._unanswered.popleft()
        stored = group.first
        found: tuple[object, ...] = (stored.t, stored.purpose)
        expected: tuple[object, ...] = (now.t, ask.purpose)
        if not self._slots:  # with slots nobody was asked, and each level has its own epsilon
            found += (stored.epsilon_nano,)
            expected += (ask.epsilon.nano,)
        if found == expected:
            return group
        self._unanswered.appendleft(group)
        self._drop_unanswered(now)
        return self._round_for(ask, now)

    def _drop_unanswered(self, now: _Timestamp) -> None:
        """Close the rounds of this timestamp, which another mechanism had begun, and say so.

        Their devices have spent for them; the rounds that follow ask those who have not.
        """
        told = "begins anew: timestamp %d, which another mechanism had begun"
        _log.warning(told, now.t, extra={"stream": self.config.name})
        while self._unanswered and self._unanswered[0].t == now.t:
            group = self._unanswered.popleft()
            self._close_stored(group)
            now.rounds += [one.name for one in group.rounds]
            self._counter.count(group.closed(self._clock.now_ms()), self.history)

    def _close_stored(self, group: RoundGroup) -> None:
        """Close rounds in the store that this coordinator has not announced."""
        for one in group.rounds:
            self._store.close_round(self.config.name, one.name, self._clock.now_ms())

    def _ask(self, ask: Ask, t: int, name: str) -> RoundGroup:
        deadline_ms = self._deadline(t, ask.purpose)
        planned = self._fleet.planned(ask, t, self.config.population, self.history)
        return self._open.ask(ask, t, name, deadline_ms, self.history, planned)

    def _deadline(self, t: int, purpose: Purpose) -> int:
        if self._slots:
            return self.history.deadline_of(t)
        share = self.config.deadlines[purpose]
        return self.terms.start_of(t) + int(share * self.terms.interval_ms)

    def _close(self, now_ms: int) -> None:
        self._open.close(now_ms)
        if self._slots:
            self._unanswered.append(self._unanswered.pop().closed(now_ms))
        else:
            assert self._counting is not None
            self._counting = self._counting.closed(now_ms)
        self._announce()

    def _tallied(self, group: RoundGroup) -> Any:
        """The tally of closed rounds: from their counts or, if there are none yet, their reports.

        None if an engine is still counting some of them.
        """
        group = self._counter.count(group, self.history)
        self._counting = None if group.is_tallied else group
        if not group.is_tallied:
            return None
        assert self._now is not None
        self._now.received += group.reports
        self._heard(group)
        return self._running.tally(group, self._counter.credible(group), self.history)

    def _heard(self, group: RoundGroup) -> None:
        self.selection.heard(group.first.name, group.reports)
        self._fleet.add(group, self.history)

    def _release(self, now: _Timestamp, released: Any) -> None:
        figures = self._running.figures(released)
        if isinstance(self.config.query, DistributionQuery) and not figures["fresh"]:
            last = self._last_release()
            figures = figures if last is None else unchanged(figures, last.content)
        suspect = self._suspects.among(now.rounds)
        self._follow_fleet(now)
        release = StoredRelease(
            now.t,
            self._clock.now_ms(),
            figures
            | ({"suspect": suspect} if suspect else {})
            | self._fleet.to_json(now.t, self.config.population)
            | self._running.version,
            asked=now.asked,
            received=now.received,
            missed=False,
        )
        self._commit([release])
        self._now = None

    def _follow_fleet(self, now: _Timestamp) -> None:
        """Update the expected population from the counted devices, if it follows the fleet.

        Not while nobody reports at all: a fleet that is cut off comes back as large as it was.
        """
        if not (self.config.follows_fleet and now.received):
            return
        population = self._fleet.other_population(now.t, self.config.population)
        if population is not None:
            self._running.expect(population)
            self.selection.population = population

    def _carry_over(self, t: int, now_ms: int) -> None:
        """Release the timestamps before t that the collector missed: nobody was asked in them."""
        for missed in missed_before(t, self.last_t, self.history):
            self._go_over(self.history.at(missed[0]))
            last = self._last_release()
            if last is None:
                continue
            content = lasting(last.content)
            if last.terms_version != self.terms.version:
                content = self._running.figures() | self._running.version
            for releases in carried_over(last, content, missed, now_ms):
                self._commit(releases)

    def _commit(self, releases: list[StoredRelease]) -> None:
        """Store releases in order of t, with the state that goes on from them."""
        t = releases[-1].t
        forget_t = t - self.selection.window
        self._store.release(self.config.name, releases, self._running.save(), forget_t)
        self.last_t = t
        self._listener.committed(releases)

    def _announce(self) -> None:
        self._open.announce(self.last_t, self.history)
