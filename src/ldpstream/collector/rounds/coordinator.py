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
from dataclasses import dataclass, field, replace
from typing import Any

from ldpstream.collector.clock import Clock
from ldpstream.collector.config import Selection as Kind
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.releases.paging import at_once
from ldpstream.collector.reports.halves import half_of
from ldpstream.collector.rounds.announcement import Announcement, OpenRound
from ldpstream.collector.rounds.combining import StrataTally, relabelling
from ldpstream.collector.rounds.counting import RoundCounter
from ldpstream.collector.rounds.group import RoundGroup, grouped
from ldpstream.collector.rounds.headcount import Estimate, Headcount
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.loading import (
    POPULATION,
    mechanism_of,
    open_round_of,
    selection_of,
    terms_of,
)
from ldpstream.collector.rounds.participation import Participation
from ldpstream.collector.rounds.selection import Asked, remember_all
from ldpstream.collector.rounds.suspicion import Suspects
from ldpstream.collector.store.contract import NewRound, Release, Round, RoundState, Store
from ldpstream.mechanisms.mechanism import Step
from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.mechanisms.messages import Release as Released
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.slots import round_name
from ldpstream.protocol.strata import STANDARD
from ldpstream.protocol.terms import Terms

MOST_CARRIED = 10_000
"""Timestamps that get a release after an absence, the last ones: all would get the same one."""
MOMENTARY = frozenset({"suspect", "devices"})
"""What is said of one timestamp only, and not repeated for those that were missed after it."""
HEARD_T = "heard_t"
"""In a release: the last timestamp with a report; 0 before the first one."""
FOLLOWED = 0.1
"""A population that follows the fleet is changed when it is off by more than this part of it."""
HALTED_MS = 3_600_000
"""When a stream that is paused or retired is looked at again."""
COUNTING_MS = 50
"""How often an engine is asked whether it has counted a round."""

_log = logging.getLogger(__name__)


@dataclass
class _Timestamp:
    """The timestamp in progress."""

    t: int
    step: Step
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
        self.config, self.history, stored = terms_of(config, store, clock)
        self.terms = self.history.at(max(stored.last_t, 1))
        """The terms that the mechanism is at: those of the last release."""
        self._mechanism = mechanism_of(self.config, self.terms)
        if stored.mechanism is not None:
            # Mechanism and population are the file's, and may have changed since.
            for part in self._mechanism.adopt(stored.mechanism):
                _log.warning("begins anew: %s", part, extra={"stream": config.name})
        self._strata = StrataTally(self.config, stored.mechanism)
        self.last_t = stored.last_t
        groups = grouped(store.rounds(config.name, stored.last_t - self._longest_window))
        self.selection = selection_of(self.config, self.terms, store)
        known_t = self._known_since()
        remember_all(self.selection, (one.first for one in groups if one.t > known_t))
        self._participation = Participation()
        self._slots = self.config.selection is Kind.SLOTS
        self._headcount = Headcount(self.terms.epsilon, self.terms.window, slots=self._slots)
        self._counted: Estimate | None = None
        """How many devices there are, by the last reports, if that is followed."""
        last = store.releases(config.name, stored.last_t, 1)
        self._heard_t: int | None = last[0].content.get(HEARD_T) if last else 0
        """The last timestamp with a report; None if a release of before 0.3.0 does not tell."""
        for group in groups:
            if group.is_tallied:
                self._heard(group)
        self._suspects = Suspects(config.suspicion, config.name, store)
        self._counter = RoundCounter(
            config.name, store, self.selection, self._suspects, self._listener
        )
        self._unanswered = deque(one for one in groups if one.t > stored.last_t)
        """Rounds that the mechanism has not come to: of before a crash, or with slots."""
        self._opened_t = max((one.t for one in groups), default=0)
        self._now: _Timestamp | None = None
        self._open: tuple[OpenRound, ...] = ()
        self._counting: RoundGroup | None = None
        self._serial = stored.serial
        if self._slots:
            self._planner = self.terms, mechanism_of(self.config, self.terms)
            self._go_on_with_slots()
        elif not self._unanswered:  # else its open round has this serial: `advance` announces it
            self._announce()

    @property
    def _longest_window(self) -> int:
        """How far back rounds matter, under any terms."""
        return max(one.window for terms in self.history.versions for one in terms.strata)

    def _known_since(self) -> int:
        """The last timestamp of which it may be forgotten whom it asked."""
        if self.terms.succeeds is None:
            return self.last_t - self.terms.window
        before = self.history.versions[self.terms.version - 2]
        begun = self.terms.succeeds.from_t
        return max(self.last_t - self.terms.window, begun - 1 - before.window)

    @property
    def open(self) -> OpenRound | None:
        """The round that takes reports now, of the terms in force and their own level."""
        return self._open[0] if self._open else None

    @property
    def opened(self) -> tuple[OpenRound, ...]:
        """The rounds that take reports now, of all strata."""
        return self._open

    @property
    def complete(self) -> bool:
        """Whether everyone who was asked has answered; with open selection nobody knows.

        Nor while several terms are counted: a device may have answered under each of them.
        """
        if not self.polls:
            return False
        asking = self._open[0]
        assert asking.asked is not None
        return self._store.received(self.config.name, asking.name) >= len(asking.asked)

    @property
    def polls(self) -> bool:
        """Whether answers, at any collector of the store, may complete the open round."""
        return len(self._open) == 1 and self._open[0].asked is not None

    @property
    def at_rest(self) -> bool:
        """Whether another coordinator, with other settings, can go on from the store.

        With slots always: what a round is for depends on no mechanism. Else a timestamp that was
        begun is ended by the mechanism that has begun it.
        """
        return self._slots or (self._now is None and not self._open and not self._unanswered)

    @property
    def counting_t(self) -> int | None:
        """The timestamp whose closed rounds an engine has not counted yet, if there is one."""
        counting = self._counting
        return None if counting is None or counting.is_open else counting.t

    def advance(self) -> int:
        """Do all that is due; return the time of the next event, in milliseconds."""
        while (wake := self._act(self._clock.now_ms())) is None:
            pass
        return wake

    def _act(self, now_ms: int) -> int | None:
        """Do one thing that is due and return None, or return the time of the next one."""
        if self._open:
            if now_ms >= self._open[0].stored.deadline_ms or self.complete:
                self._close(now_ms)
                return None
            if not self._slots:
                return self._open[0].stored.deadline_ms
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
        """When the open round closes, or the next timestamp begins."""
        if self._open:
            return self._open[0].stored.deadline_ms
        t = self.terms.timestamp_at(now_ms)
        return self.terms.start_of(max(t, self._opened_t, self.last_t) + 1)

    def _is_over(self, t: int, now_ms: int) -> bool:
        """Whether it is too late for anyone to answer at t."""
        return now_ms >= self._deadline(t, Purpose.PUBLICATION)

    # With slots

    def _go_on_with_slots(self) -> None:
        """Announce what is open; close again what was closed last: its end may not be in a log.

        Earlier rounds were ended before the next one was opened.
        """
        closed = [group for group in self._unanswered if not group.is_open]
        for group in closed[-1:]:
            for one in group.rounds:
                self._store.close_round(self.config.name, one.name, self._clock.now_ms())
        for group in self._unanswered:
            if group.is_open:
                self._take_reports(group)
        self._announce()

    def _opens_slot(self, now_ms: int) -> bool:
        """Open the rounds of this timestamp, unless it was done before or it is too late.

        What they are for depends on no tally. So another instance of the mechanism says it, while
        the one that releases may be behind.
        """
        t = self.terms.timestamp_at(now_ms)
        if t <= max(self._opened_t, self.last_t) or self._is_over(t, now_ms):
            return False
        self._learn_terms()
        terms, planner = self._planner
        if terms != self.history.at(t):
            terms = self.history.at(t)
            planner = mechanism_of(self.config, terms)
            self._planner = terms, planner
        opened = self._ask(next(planner.step(t)), t, round_name(t))
        self._unanswered.append(opened)
        self._take_reports(opened)
        self._announce()
        return True

    # The mechanism

    def _begin(self, t: int) -> None:
        self._learn_terms()
        self._go_over(self.history.at(t))
        self._now = _Timestamp(t, self._mechanism.step(t))
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
        move = relabelling(self.history, self.terms, terms)
        before, self._mechanism = self._mechanism, mechanism_of(self.config, terms)
        self._mechanism.adopt(before.save(), move)
        self._strata.go_over(move)
        self.selection.follow(terms.epsilon, terms.window)
        self._headcount.follow(terms.epsilon, terms.window)
        self.terms = terms

    def _run(self, tally: Tally | None) -> None:
        """Resume the mechanism until it waits for an open round, or releases."""
        now = self._now
        assert now is not None
        while True:
            try:
                ask = now.step.send(tally)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as done:
                self._release(now, done.value)
                return
            group = self._round_for(ask, now)
            now.rounds += [one.name for one in group.rounds]
            now.asks += 1
            now.asked += _number_asked(group.first, self.config.selection)
            if group.is_open:
                self._take_reports(group)
                self._counting = group
                self._announce()
                return
            tally = self._tallied(group)
            if tally is None:
                return

    def _take_reports(self, group: RoundGroup) -> None:
        self._open = tuple(open_round_of(self.config, self.history, one) for one in group.rounds)

    def _round_for(self, ask: Ask, now: _Timestamp) -> RoundGroup:
        """The rounds of an ask: those stored before a crash, or new ones."""
        if not self._unanswered:
            name = f"{now.t}-{ask.purpose}"
            if name in now.rounds:  # a mechanism may ask twice for the same purpose
                name += f"-{now.asks + 1}"
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
            for one in group.rounds:
                self._store.close_round(self.config.name, one.name, self._clock.now_ms())
                now.rounds.append(one.name)
            group = group.closed(self._clock.now_ms())
            self._counter.count(group, {one.name: self._terms(one) for one in group.rounds})

    def _ask(self, ask: Ask, t: int, name: str) -> RoundGroup:
        """Open the rounds of an ask: whom it asks is stored before anyone is told."""
        choice = self.selection.choose(t, ask)
        opened_ms = self._clock.now_ms()
        new = []
        for stratum in self.history.strata_at(t):
            # Earlier terms are looser: what is asked under those in force, they allow, too.
            epsilon = stratum.epsilon if self._slots else ask.epsilon
            one = NewRound(
                t=t,
                name=name + stratum.suffix,
                purpose=ask.purpose,
                epsilon_nano=epsilon.nano,
                users=ask.users,
                rate=(1, stratum.window) if self._slots else choice.rate,
                report_bytes=half_of(stratum, epsilon).device.report_bytes,
                opened_ms=opened_ms,
                deadline_ms=self._deadline(t, ask.purpose),
                roster_size=choice.asked.roster_size if choice.asked is not None else 0,
                asked=choice.asked.packed if choice.asked is not None else None,
            )
            new.append(one)
        self._serial = self._store.open_round(self.config.name, *new)
        for one in new:
            self._listener.changed(one, RoundState.OPEN)
        self.selection.remember(new[0])
        self._opened_t = t
        return RoundGroup(
            tuple(
                Round(**vars(one), state=RoundState.OPEN, support=None, closed_ms=None)
                for one in new
            )
        )

    def _deadline(self, t: int, purpose: Purpose) -> int:
        if self._slots:
            return self.history.deadline_of(t)
        share = self.config.deadlines[purpose]
        return self.terms.start_of(t) + int(share * self.terms.interval_ms)

    def _close(self, now_ms: int) -> None:
        for closing in self._open:
            self._serial = self._store.close_round(self.config.name, closing.name, now_ms)
            self._listener.changed(closing.stored, RoundState.CLOSED)
        self._open = ()
        if self._slots:
            self._unanswered.append(self._unanswered.pop().closed(now_ms))
        else:
            assert self._counting is not None
            self._counting = self._counting.closed(now_ms)
        self._announce()

    def _tallied(self, group: RoundGroup) -> Tally | None:
        """The tally of closed rounds: from their counts or, if there are none yet, their reports.

        None: an engine is still counting some of them.
        """
        group = self._counter.count(group, {one.name: self._terms(one) for one in group.rounds})
        self._counting = None if group.is_tallied else group
        if not group.is_tallied:
            return None
        assert self._now is not None
        self._now.received += group.reports
        self._heard(group)
        supports = {one.name: self._credible(one) for one in group.rounds}
        return self._strata.tally(group, supports, self.history, self._mechanism.noise)

    def _credible(self, counted: Round) -> Support:
        """The counts of a round, unless they are suspect and such are discarded."""
        assert counted.support is not None
        if self._suspects.discarded(counted.name):
            return Support.none(len(counted.support.counts))
        return counted.support

    def _terms(self, stored: NewRound) -> Terms:
        terms = self.history.stratum(stored.name)
        assert terms is not None
        return terms

    def _heard(self, group: RoundGroup) -> None:
        self.selection.heard(group.first.name, group.reports)
        self._headcount.add(group)
        if group.reports:
            self._heard_t = max(self._heard_t or 0, group.t)
        for one in group.rounds:
            assert one.support is not None
            terms = self._terms(one)
            self._participation.add(one, one.support.reports, terms.epsilon_nano, terms.window)

    def _release(self, now: _Timestamp, released: Released) -> None:
        shown = self.config.query.shown(released, self._mechanism.noise)
        suspect = self._suspects.among(now.rounds)
        self._follow_fleet(now)
        heard = self._participation.at(now.t)
        devices = {"heard": heard} | self._whole_fleet() | self._levels(now.t)
        release = Release(
            now.t,
            self._clock.now_ms(),
            shown.to_json()
            | ({"suspect": suspect} if suspect else {})
            | {"devices": devices}
            | ({} if self._heard_t is None else {HEARD_T: self._heard_t})
            | self._version,
            asked=now.asked,
            received=now.received,
            missed=False,
        )
        forget_t = now.t - self.selection.window
        self._store.release(self.config.name, [release], self._state, forget_t)
        self._committed([release])
        self._now = None

    @property
    def _version(self) -> dict[str, int]:
        """What a release says of its terms: nothing if they are the first ones."""
        return {"terms_version": self.terms.version} if self.terms.version > 1 else {}

    @property
    def _state(self) -> dict[str, Any]:
        followed = {POPULATION: self.config.population} if self.config.follows_fleet else {}
        return self._mechanism.save() | self._strata.save() | followed

    def _whole_fleet(self) -> dict[str, int]:
        """How many devices there are: who is enrolled is known with a roster only."""
        if self.config.selection is Kind.ROSTER:
            return {"enrolled": self._store.enrolled(self.config.name)}
        counted = self._counted
        return {"expected": self.config.population} if counted is None else counted.to_json()

    def _follow_fleet(self, now: _Timestamp) -> None:
        """Expect as many devices as there are, if that is left to be found out.

        Not while nobody reports at all: a fleet that is cut off comes back as large as it was.
        """
        if not (self.config.follows_fleet and now.received):
            return
        if self.config.selection is Kind.ROSTER:
            self._counted = Estimate.exactly(self._store.enrolled(self.config.name))
        else:
            self._counted = self._headcount.estimate(now.t)
        if self._counted is None:
            return
        self._counted = self._counted.at_least(self._participation.at(now.t))
        wanted = max(self._counted.devices, self.config.least_population)
        if abs(wanted - self.config.population) > FOLLOWED * self.config.population:
            self._expect(wanted)

    def _expect(self, population: int) -> None:
        """Go on with another population, and all that is known."""
        self.config = replace(self.config, population=population)
        before, self._mechanism = self._mechanism, mechanism_of(self.config, self.terms)
        self._mechanism.adopt(before.save())
        self._strata.config = self.config
        self.selection.population = population
        if self._slots:
            terms, _ = self._planner
            self._planner = terms, mechanism_of(self.config, terms)

    def _levels(self, t: int) -> dict[str, dict[str, int]]:
        """How many devices were heard of each level of privacy, if there are several."""
        if not self.terms.levels:
            return {}
        heard = self._participation.by_level(t)
        names = (one.level for one in self.terms.strata)
        return {"levels": {name or STANDARD: heard.get(name, 0) for name in names}}

    def _carry_over(self, t: int, now_ms: int) -> None:
        """Release the timestamps before t that the collector missed: nobody was asked in them."""
        missed = range(max(self.last_t + 1, t - MOST_CARRIED), t)
        while missed:
            change = self.history.next_change(missed[0]) or t
            self._go_over(self.history.at(missed[0]))
            self._carry(missed[: change - missed[0]], now_ms)
            missed = missed[change - missed[0] :]

    def _carry(self, missed: range, now_ms: int) -> None:
        """Repeat the last release at timestamps that were missed, all under the same terms."""
        last = self._store.releases(self.config.name, self.last_t, 1)
        if not last:
            return
        content = {key: part for key, part in last[0].content.items() if key not in MOMENTARY}
        if content.get("terms_version", 1) != self.terms.version:
            known = self.config.query.shown(self._mechanism.shown, self._mechanism.noise)
            content = known.to_json() | self._version
        content |= {"fresh": False}
        carried = replace(last[0], at_ms=now_ms, content=content, asked=0, received=0, missed=True)
        step = at_once(len(self.terms.names), MOST_CARRIED)
        for first in range(0, len(missed), step):
            part = missed[first : first + step]
            releases = [replace(carried, t=one, content=content | {"t": one}) for one in part]
            forget_t = part[-1] - self.selection.window
            self._store.release(self.config.name, releases, self._state, forget_t)
            self._committed(releases)

    def _committed(self, releases: list[Release]) -> None:
        self.last_t = releases[-1].t
        self._listener.committed(releases)

    def _announce(self) -> None:
        """Announce what is open, under the serial of the last change in the store."""
        t = max(self.last_t, self._opened_t)
        halt = self.config.halt
        self._listener.announced(Announcement(self._serial, t, self._open, self.history, halt))


def _number_asked(stored: NewRound, kind: Kind) -> int:
    return len(Asked.of(stored)) if kind is Kind.ROSTER else stored.users
