"""The leader's side of one stream: asks become rounds, and their tallies a release.

No sockets, no threads, no sleep: `advance` does all that is due by the clock and returns when to
call again. All of its state is in the store, so a coordinator that is lost at any instant is
replaced by a new one that goes on in the middle of the timestamp: it answers the mechanism's asks
from stored tallies until it comes to the round that was open.

A mechanism that must ask gets one round after the other. With slots nobody is asked: rounds open
and close by the clock alone, and the mechanism takes those that are closed, in order, as fast as
they are counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from ldpstream.collector.clock import Clock
from ldpstream.collector.config import Selection as Kind
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.releases.paging import at_once
from ldpstream.collector.reports.halves import half_of
from ldpstream.collector.rounds.announcement import Announcement, OpenRound
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.loading import open_round_of, selection_of, terms_of
from ldpstream.collector.rounds.participation import Participation
from ldpstream.collector.rounds.selection import Asked, remember_all
from ldpstream.collector.rounds.suspicion import Suspects
from ldpstream.collector.store.contract import NewRound, Release, Round, RoundState, Store
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.mechanism import Mechanism, Step
from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.mechanisms.messages import Release as Released
from ldpstream.mechanisms.registry import build
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.slots import round_name
from ldpstream.protocol.terms import Terms

MOST_CARRIED = 10_000
"""Timestamps that get a release after an absence, the last ones: all would get the same one."""
MOMENTARY = frozenset({"suspect", "devices"})
"""What is said of one timestamp only, and not repeated for those that were missed after it."""
COUNTING_MS = 50
"""How often an engine is asked whether it has counted a round."""


@dataclass
class _Timestamp:
    """The timestamp in progress."""

    t: int
    step: Step
    asked: int = 0
    received: int = 0
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
        self.config, self.terms, stored = terms_of(config, store, clock)
        self._pin = self.terms.pin
        self._mechanism = _mechanism(config, self.terms)
        if stored.mechanism is not None:
            self._mechanism.restore(stored.mechanism)
        self.last_t = stored.last_t
        rounds = store.rounds(config.name, stored.last_t - config.window)
        self.selection = selection_of(self.config, self.terms, store)
        remember_all(self.selection, rounds)
        self._participation = Participation(self.terms.epsilon_nano, self.terms.window)
        for one in rounds:
            if one.support is not None:
                self._heard(one, one.support.reports)
        self._suspects = Suspects(config.suspicion, config.name, store)
        self._unanswered = deque(one for one in rounds if one.t > stored.last_t)
        """Rounds that the mechanism has not come to: of before a crash, or with slots."""
        self._opened_t = max((one.t for one in rounds), default=0)
        self._now: _Timestamp | None = None
        self._open: OpenRound | None = None
        self._counting: NewRound | None = None
        self._serial = stored.serial
        self._slots = self.config.selection is Kind.SLOTS
        if self._slots:
            self._planner = _mechanism(config, self.terms)
            self._go_on_with_slots()
        elif not self._unanswered:  # else its open round has this serial: `advance` announces it
            self._announce()

    @property
    def open(self) -> OpenRound | None:
        """The round that takes reports now."""
        return self._open

    @property
    def complete(self) -> bool:
        """Whether everyone who was asked has answered; with open selection nobody knows."""
        if self._open is None or self._open.asked is None:
            return False
        return self._store.received(self.config.name, self._open.name) >= len(self._open.asked)

    def advance(self) -> int:
        """Do all that is due; return the time of the next event, in milliseconds."""
        while (wake := self._act(self._clock.now_ms())) is None:
            pass
        return wake

    def _act(self, now_ms: int) -> int | None:
        """Do one thing that is due and return None, or return the time of the next one."""
        if self._open is not None:
            if now_ms >= self._open.stored.deadline_ms or self.complete:
                self._close(self._open, now_ms)
                return None
            if not self._slots:
                return self._open.stored.deadline_ms
        elif self._slots and self._opens_slot(now_ms):
            return None
        if self._counting is not None:
            tally = self._tallied(self._counting)
            if tally is None:
                return min(now_ms + COUNTING_MS, self._next_ms(now_ms))
            self._counting = None
            self._run(tally)
        elif self._unanswered:
            first = self._unanswered[0]
            self._carry_over(first.t, now_ms)
            if self._slots and first.state is RoundState.OPEN:
                return self._next_ms(now_ms)
            self._begin(first.t)
        else:
            t = self.terms.timestamp_at(now_ms)
            if self._slots or t <= self.last_t or self._is_over(t, now_ms):
                return self._next_ms(now_ms)
            self._carry_over(t, now_ms)
            self._begin(t)
        return None

    def _next_ms(self, now_ms: int) -> int:
        """When the open round closes, or the next timestamp begins."""
        if self._open is not None:
            return self._open.stored.deadline_ms
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
        closed = [one for one in self._unanswered if one.state is RoundState.CLOSED]
        for one in closed[-1:]:
            self._store.close_round(self.config.name, one.name, self._clock.now_ms())
        for one in self._unanswered:
            if one.state is RoundState.OPEN:
                self._open = open_round_of(self.config, self.terms, one)
        self._announce()

    def _opens_slot(self, now_ms: int) -> bool:
        """Open the round of this timestamp, unless it was opened before or it is too late.

        What it is for depends on no tally. So another instance of the mechanism says it, while the
        one that releases may be behind.
        """
        t = self.terms.timestamp_at(now_ms)
        if t <= max(self._opened_t, self.last_t) or self._is_over(t, now_ms):
            return False
        ask = next(self._planner.step(t))
        opened = self._ask(ask, t, round_name(t))
        self._unanswered.append(opened)
        self._open = open_round_of(self.config, self.terms, opened)
        self._announce()
        return True

    # The mechanism

    def _begin(self, t: int) -> None:
        self._now = _Timestamp(t, self._mechanism.step(t))
        self._run(None)

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
            stored = self._round_for(ask, now)
            now.rounds.append(stored.name)
            now.asked += _number_asked(stored, self.config.selection)
            if stored.state is RoundState.OPEN:
                self._open = open_round_of(self.config, self.terms, stored)
                self._announce()
                return
            tally = self._tallied(stored)
            if tally is None:
                self._counting = stored
                return

    def _round_for(self, ask: Ask, now: _Timestamp) -> Round:
        """The round of an ask: the one stored before a crash, or a new one."""
        if not self._unanswered:
            name = f"{now.t}-{ask.purpose}"
            if name in now.rounds:  # a mechanism may ask twice for the same purpose
                name += f"-{len(now.rounds) + 1}"
            return self._ask(ask, now.t, name)
        stored = self._unanswered.popleft()
        users = stored.users if self._slots else ask.users  # with slots nobody was asked
        found = (stored.t, stored.purpose, stored.epsilon_nano, stored.users)
        expected = (now.t, ask.purpose, ask.epsilon.nano, users)
        if found != expected:
            raise Mistake(Problem.STATE_MISMATCH, found=found, expected=expected)
        return stored

    def _ask(self, ask: Ask, t: int, name: str) -> Round:
        """Open a round: whom it asks is stored before anyone is told."""
        choice = self.selection.choose(t, ask)
        new = NewRound(
            t=t,
            name=name,
            purpose=ask.purpose,
            epsilon_nano=ask.epsilon.nano,
            users=ask.users,
            rate=choice.rate,
            report_bytes=half_of(self.terms, ask.epsilon).device.report_bytes,
            opened_ms=self._clock.now_ms(),
            deadline_ms=self._deadline(t, ask.purpose),
            roster_size=choice.asked.roster_size if choice.asked is not None else 0,
            asked=choice.asked.packed if choice.asked is not None else None,
        )
        self._serial = self._store.open_round(self.config.name, new)
        self._listener.changed(new, RoundState.OPEN)
        self.selection.remember(new)
        self._opened_t = t
        return Round(**vars(new), state=RoundState.OPEN, support=None, closed_ms=None)

    def _deadline(self, t: int, purpose: Purpose) -> int:
        if self._slots:
            return self.terms.deadline_of(t)
        share = self.config.deadlines[purpose]
        return self.terms.start_of(t) + int(share * self.terms.interval_ms)

    def _close(self, closing: OpenRound, now_ms: int) -> None:
        self._serial = self._store.close_round(self.config.name, closing.name, now_ms)
        self._listener.changed(closing.stored, RoundState.CLOSED)
        self._open = None
        if self._slots:
            taken = self._unanswered.pop()
            self._unanswered.append(replace(taken, state=RoundState.CLOSED, closed_ms=now_ms))
        else:
            self._counting = closing.stored
        self._announce()

    def _tallied(self, stored: NewRound) -> Tally | None:
        """The tally of a closed round: from its counts or, if there are none yet, its reports.

        None: an engine is still counting them.
        """
        epsilon = Epsilon(stored.epsilon_nano)
        support = stored.support if isinstance(stored, Round) else None
        if support is None:
            half = half_of(self.terms, epsilon)
            shape = self._suspects.watch(half)
            see = None if shape is None else shape.see
            support = self._store.count(self.config.name, stored.name, half, see)
            if support is None:
                return None
            self._suspects.judge(stored.name, shape)
            devices = self._store.answered(self.config.name, stored.name)
            rests = self.selection.answered(stored, devices)
            self._store.tally(self.config.name, stored.name, support, rests)
            self._listener.changed(stored, RoundState.TALLIED)
        assert self._now is not None
        self._now.received += support.reports
        self._heard(stored, support.reports)
        if self._suspects.discarded(stored.name):
            return Tally.empty(self._mechanism.noise.labels)
        return self._mechanism.noise.tally(epsilon, support)

    def _heard(self, stored: NewRound, reports: int) -> None:
        self.selection.heard(stored.name, reports)
        self._participation.add(stored, reports)

    def _release(self, now: _Timestamp, released: Released) -> None:
        shown = self.config.query.shown(released, self._mechanism.noise)
        suspect = self._suspects.among(now.rounds)
        devices = {"heard": self._participation.at(now.t)} | self._whole_fleet()
        release = Release(
            now.t,
            self._clock.now_ms(),
            shown.to_json() | ({"suspect": suspect} if suspect else {}) | {"devices": devices},
            asked=now.asked,
            received=now.received,
            missed=False,
        )
        forget_t = now.t - self.config.window
        self._store.release(self.config.name, [release], self._mechanism.save(), forget_t)
        self._committed([release])
        self._now = None

    def _whole_fleet(self) -> dict[str, int]:
        """How many devices there are: who is enrolled is known with a roster only."""
        if self.config.selection is Kind.ROSTER:
            return {"enrolled": self._store.enrolled(self.config.name)}
        return {"expected": self.config.population}

    def _carry_over(self, t: int, now_ms: int) -> None:
        """Release the timestamps before t that the collector missed: nobody was asked in them."""
        missed = range(max(self.last_t + 1, t - MOST_CARRIED), t)
        last = self._store.releases(self.config.name, self.last_t, 1) if missed else []
        if not last:
            return
        content = {key: part for key, part in last[0].content.items() if key not in MOMENTARY}
        content |= {"fresh": False}
        carried = replace(last[0], at_ms=now_ms, content=content, asked=0, received=0, missed=True)
        state = self._mechanism.save()
        step = at_once(len(self.config.labels), MOST_CARRIED)
        for first in range(0, len(missed), step):
            part = missed[first : first + step]
            releases = [replace(carried, t=one, content=content | {"t": one}) for one in part]
            self._store.release(self.config.name, releases, state, part[-1] - self.config.window)
            self._committed(releases)

    def _committed(self, releases: list[Release]) -> None:
        self.last_t = releases[-1].t
        self._listener.committed(releases)

    def _announce(self) -> None:
        """Announce what is open, under the serial of the last change in the store."""
        t = max(self.last_t, self._opened_t)
        rounds = () if self._open is None else (self._open,)
        self._listener.announced(Announcement(self._serial, self._pin, t, rounds))


def _number_asked(stored: NewRound, kind: Kind) -> int:
    return len(Asked.of(stored)) if kind is Kind.ROSTER else stored.users


def _mechanism(config: StreamConfig, terms: Terms) -> Mechanism:
    return build(config.mechanism, replace(config.settings, oracle=terms.oracle))
