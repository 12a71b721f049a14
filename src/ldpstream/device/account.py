"""The part of a device that keeps the promise: it decides and commits before anything is sent.

There is no network here. A report that `consider` returns is already on disk, with its debit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from ldpstream.device.clock import LabelTime, Look
from ldpstream.device.exchange import Address
from ldpstream.device.rounds import Refused, Round
from ldpstream.device.rules import (
    Decision,
    Fresh,
    Repeat,
    Silence,
    State,
    TooEarly,
    decide,
    last_moment_ms,
)
from ldpstream.device.store import (
    Change,
    Enrolment,
    Entry,
    LedgerUnusable,
    Memory,
    RefusalCount,
    Store,
)
from ldpstream.durations import spelled
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Ledger
from ldpstream.privacy.randomness import Source
from ldpstream.protocol.authentication import leave_mac, report_mac, report_prefix, rounds_mac
from ldpstream.protocol.identity import enrolment_secret, number_of
from ldpstream.protocol.messages import DeviceProof, Leave, SubmitReport
from ldpstream.protocol.slots import moment_ms, next_turn
from ldpstream.protocol.terms import Terms, TermsRefused

Reading = Callable[[Terms, Source], int]
"""A function that reads the value the device holds now and returns its index (`values.py`)."""

MARKS_PER_SPAN = 8
"""How often per window own time is saved after a report: a reboot loses at most one such part."""
LONGEST_DETAIL = 200
"""The most characters of a refusal that are stored: a collector can influence its text."""

Fault = TypeVar("Fault", bound=LdpStreamError)


@dataclass(frozen=True)
class Submission:
    """A report that is on disk and may be sent."""

    round: Round
    message: SubmitReport


Outcome = Submission | TooEarly | Silence | Refused


@dataclass(frozen=True)
class Turn:
    """The next report of a device that reports unasked, in a slot of its own."""

    round: Round
    at_ms: int
    """When it is due, by label time."""


class Account:
    """One device's file, and what this process remembers of it.

    Decisions are prepared from memory and made in an exclusive transaction on the file. So several
    processes may share a file.
    """

    def __init__(self, store: Store, source: Source) -> None:
        self._store = store
        self._clock = store.clock
        self._source = source
        self.label = LabelTime(self._clock)
        self._delivered: set[tuple[int, str]] = set()
        self._refusals: dict[str, RefusalCount] = {}
        self._told: set[str] = set()
        self._load()

    def _load(self) -> None:
        with self._store.change() as change:
            self._recall(change)

    def _recall(self, change: Change) -> None:
        """Load the state from the file; count it as spent if it may be an older copy (rule 6)."""
        memory = change.memory
        self._secret, self._rejoins, self._own = memory.secret, memory.rejoins, memory.own
        self.enrolment = memory.enrolment
        self._answered = {
            entry.key: entry.report for entry in memory.entries if entry.report is not None
        }
        self._ledger = ledger_of(memory)
        if self.enrolment is not None and not change.vouched_for:
            self._count_as_spent(change, self.enrolment.terms)

    def _count_as_spent(self, change: Change, terms: Terms) -> None:
        """Debit the whole epsilon now: anything may have been sent up to this moment (rule 6)."""
        own_ms = self.own_ms() + 1
        change.enter(Entry(0, "", terms.epsilon_nano, None, own_ms, self._clock.wall_ms()))
        change.forgotten(own_ms)  # the entry is for people: this binds promises of any size
        self._ledger = self._ledger.exhausted(own_ms)
        self._count(Refused(Problem.PAST_UNKNOWN, span=spelled(terms.promise.span)))

    @property
    def enrolled(self) -> Enrolment:
        if self.enrolment is None:
            raise Mistake(Problem.NOT_ENROLLED, file=self._store.path.name)
        return self.enrolment

    @property
    def number(self) -> bytes:
        """The device's number in the stream that it takes part in."""
        return self.enrolled.number

    def enrolment_secret(self, place: str, stream: str) -> bytes:
        """Return what this device shows, to this collector alone, to enrol in a stream."""
        return enrolment_secret(self._secret, place, stream, self._rejoins)

    def refresh(self) -> bool:
        """Load the state again if another process has written it; return whether it has enrolled.

        It may also have left the stream.
        """
        before = self.enrolment
        if self._store.changed():
            self._load()
        return self.enrolment != before

    def enrol(self, offered: Enrolment) -> None:
        """Commit what was agreed on.

        A ledger whose past is unknown starts as spent (rule 6). A later enrolment may change the
        collector's address, and with it number and key, but not the terms.
        """
        with self._store.change() as change:
            self._recall(change)
            shown = self.enrolment_secret(Address.of(offered.url).place, offered.terms.stream)
            if number_of(shown) != offered.number:  # the key belongs to another device
                raise LedgerUnusable(Problem.LEDGER_REPLACED, file=self._store.path.name)
            known = self.enrolment
            if known is not None and offered.terms.pin != known.terms.pin:
                raise TermsRefused(
                    Problem.TERMS_DIFFER, given=offered.terms.pin, expected=known.terms.pin
                )
            past_known = change.memory.past_known and change.vouched_for
            change.enrol(offered)
            if known is not None and known.number != offered.number:
                change.drop_reports()  # the same bytes would link the two numbers
                self._answered = {}
            self._delivered.clear()
            self.enrolment = offered
            if known is None:
                self._ledger = ledger_of(change.memory, offered.terms)
                if not past_known:
                    self._count_as_spent(change, offered.terms)

    def leave(self) -> Leave:
        """Commit that the device has left its stream; return the farewell to the collector.

        Number, key, secret and stored reports are deleted. The debits stay, and the promise binds
        for another span, so that joining again is no way around the ledger.
        """
        with self._store.change() as change:
            self._recall(change)
            left = self.enrolled
            mac = leave_mac(left.key, left.terms.stream)
            farewell = Leave(left.terms.stream, DeviceProof(left.number, mac))
            promise, own_ms = left.terms.promise, self.own_ms()
            # It binds spans that hold, as far as anybody knows, a report that was made under it.
            begin_ms = own_ms - promise.span
            made = [one.own_ms for one in change.memory.entries if one.t]
            unknown = [] if self._ledger.forgotten is None else [self._ledger.forgotten]
            binds = any(moment > begin_ms for moment in (*made, *unknown))
            change.leave(replace(promise, until=own_ms + 1 + promise.span) if binds else None)
            change.forget_promises(own_ms - left.terms.interval_ms)
        self._refusals.clear()
        self._told.clear()
        self._delivered.clear()
        self._load()
        return farewell

    def own_ms(self) -> int:
        """Return own time now, in milliseconds, rounded down."""
        return self._own.at(Look.at(self._clock))

    @property
    def t(self) -> int:
        """The current timestamp, by label time."""
        return self.enrolled.terms.timestamp_at(self.label.now_ms())

    def turn(self, taken: int | None = None) -> Turn:
        """Return the next report that is due, in a timestamp other than `taken`.

        Turns for which the budget is not free in time are passed over: too soon after an epoch has
        changed the slot, for example.
        """
        now_ms, terms = self.label.now_ms(), self.enrolled.terms
        t = max(self.t, 1)
        asked = self._next_round(t)
        undelivered = asked.key in self._answered and asked.key not in self._delivered
        if undelivered and asked.t != taken:
            return Turn(asked, max(now_ms, terms.start_of(asked.t)))  # the same bytes again
        free_ms = self._ledger.free_from(terms.epsilon_nano)
        assert free_ms is not None, "a promise allows its whole epsilon"
        first_ms = max(now_ms, now_ms + free_ms - self.own_ms())
        t = max(t, terms.timestamp_at(first_ms))
        while True:
            asked = self._next_round(t)
            at_ms = max(first_ms, terms.start_of(asked.t) + self._moment_ms)
            is_new = asked.t != taken and asked.key not in self._answered
            if is_new and at_ms < last_moment_ms(asked, terms):
                return Turn(asked, at_ms)
            t = asked.t + 1

    def _next_round(self, t: int) -> Round:
        """Return the round of this device's first turn from t on."""
        terms = self.enrolled.terms
        return Round.of_slot(terms, next_turn(self.enrolled.key, terms.window, t))

    @property
    def _moment_ms(self) -> int:
        terms = self.enrolled.terms
        key = self.enrolled.key  # another one at every collector, so that moments link no numbers
        return moment_ms(key, terms.stream, terms.deadline_ms or terms.interval_ms)

    def consider(self, pin: str, asked: Round | Refused, reading: Reading) -> Outcome:
        """Decide about a round that was announced under `pin`.

        Raise `LedgerUnusable` if it cannot be committed; then nothing may be sent.
        """
        if isinstance(asked, Refused):
            return self.note(asked)
        before = Look.at(self._clock)
        decision = self._decide(pin, asked, before)
        if isinstance(decision, Fresh):
            # Read the value only now that a report of it is due.
            value = reading(self.enrolled.terms, self._source)
            decision = self._draw(pin, asked, before, value)
        match decision:
            case Repeat(report=report):
                delivered = asked.key in self._delivered
                return Silence.DELIVERED if delivered else self._submission(asked, report)
            case Refused() as refusal:
                return self.note(refusal)
            case Fresh():
                raise AssertionError("a fresh report is drawn and entered, and then repeated")
            case _:
                return decision

    def _decide(self, pin: str, asked: Round, look: Look) -> Decision:
        enrolled = self.enrolled
        state = State(enrolled.terms, self._ledger, self._answered, self._secret, enrolled.key)
        return decide(pin, asked, state, self._own.at(look), self.label.now_ms())

    def _draw(self, pin: str, asked: Round, before: Look, value: int) -> Decision:
        """Decide again, in an exclusive transaction, and commit a report of this value.

        The budget is checked at the own time before the value was read, and debited at the own time
        after it.
        """
        with self._store.change() as change:
            enrolment = self.enrolment
            self._recall(change)
            if self.enrolment != enrolment:  # another process has left, or enrolled elsewhere
                return Silence.MOVED_ON
            decision = self._decide(pin, asked, before)
            if not isinstance(decision, Fresh):
                ended = isinstance(decision, Refused) and decision.problem is Problem.ROUND_PAST
                return Silence.MOVED_ON if ended else decision
            checked_ms = self._own.at(before)
            randomiser = self.enrolled.terms.randomiser(Epsilon(asked.epsilon_nano))
            report = randomiser.encode(randomiser.perturb(value, self._source))
            own_ms = self.own_ms() + 1  # rounded up: no earlier than the reading of the value
            ledger = self._ledger.spend(own_ms, asked.epsilon_nano, checked_ms)
            wall_ms = self._clock.wall_ms()
            change.enter(Entry(asked.t, asked.name, asked.epsilon_nano, report, own_ms, wall_ms))
            change.forget(own_ms - ledger.longest_span)
            # Another process may still read a value for which it was checked against a promise; it
            # cannot read for longer than a timestamp.
            change.forget_promises(own_ms - self.enrolled.terms.interval_ms)
            change.count(self._refusals.values())
        self._refusals.clear()
        self._ledger = ledger.forget(own_ms)
        self._answered[asked.key] = report
        self._delivered &= self._answered.keys()
        return Repeat(asked, report)

    def mark_time(self) -> None:
        """Save own time if a reboot would lose much of it; ignore a disk that fails."""
        if not self._ledger.debits or not self._ledger.forget(self.own_ms()).debits:
            return
        passed = self._clock.steady_ms() - self._own.look.steady_ms
        if passed * MARKS_PER_SPAN >= self._ledger.longest_span:
            with suppress(LedgerUnusable), self._store.change() as change:
                self._recall(change)
                change.mark_time()

    def _submission(self, asked: Round, report: bytes) -> Submission:
        stream = self.enrolled.terms.stream
        prefix = report_prefix(stream, self.enrolled.terms.pin, asked.name)
        mac = report_mac(self.enrolled.key, prefix, report)
        return Submission(asked, SubmitReport(stream, asked.name, self.number, mac, report))

    def proof(self, after: int = 0) -> DeviceProof:
        """Return the proof that this device may hear of the rounds after a serial."""
        enrolled = self.enrolled
        return DeviceProof(self.number, rounds_mac(enrolled.key, enrolled.terms.stream, after))

    def arrived(self, asked: Round) -> None:
        """Remember that the collector has the report of this round; it is not sent again."""
        self._delivered.add(asked.key)

    def note(self, fault: Fault) -> Fault:
        """Count a refusal; save it with the next report, or at once if it is of a new kind."""
        self._count(fault)
        if fault.problem.code not in self._told:
            self._told.add(fault.problem.code)
            self.save_refusals()
        return fault

    def _count(self, fault: LdpStreamError) -> None:
        code = fault.problem.code
        times = self._refusals[code].times if code in self._refusals else 0
        detail = str(fault)[:LONGEST_DETAIL]
        self._refusals[code] = RefusalCount(code, times + 1, self._clock.wall_ms(), detail)

    def save_refusals(self) -> None:
        """Save the counts of refusals; ignore a disk that fails, since they are only counts."""
        if not self._refusals:
            return
        try:
            with self._store.change() as change:
                self._recall(change)
                change.count(self._refusals.values())
        except LedgerUnusable:
            return
        self._refusals.clear()

    def close(self) -> None:
        """Save the counts of refusals and own time, if the disk allows it."""
        self.save_refusals()
        self.mark_time()


def ledger_of(memory: Memory, terms: Terms | None = None) -> Ledger:
    """Return the ledger in a file, under these terms or else those of its enrolment."""
    if terms is None and memory.enrolment is not None:
        terms = memory.enrolment.terms
    promises = memory.ended if terms is None else (terms.promise, *memory.ended)
    debits = ((entry.own_ms, entry.nano) for entry in memory.entries)
    return Ledger.of(promises, debits, memory.forgotten_ms)
