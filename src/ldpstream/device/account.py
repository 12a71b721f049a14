"""The part of a device that keeps the promise: it decides and commits before anything is sent.

There is no network here. A report that `consider` returns is already on disk, with its debit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from ldpstream.device.clock import LabelTime, Look
from ldpstream.device.rounds import Refused, Round
from ldpstream.device.rules import Decision, Fresh, Repeat, Silence, State, TooEarly, decide
from ldpstream.device.store import Change, Enrolment, Entry, LedgerUnusable, RefusalCount, Store
from ldpstream.durations import spelled
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Ledger
from ldpstream.privacy.randomness import Source
from ldpstream.protocol.authentication import report_mac, report_prefix, rounds_mac
from ldpstream.protocol.messages import DeviceProof, SubmitReport
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
        with store.change() as change:
            self._recall(change)

    def _recall(self, change: Change) -> None:
        """Load the state from the file; count it as spent if it may be an older copy (rule 6)."""
        memory = change.memory
        self.number, self._secret, self._own = memory.number, memory.secret, memory.own
        self.enrolment = memory.enrolment
        self._answered = {
            entry.key: entry.report for entry in memory.entries if entry.report is not None
        }
        self._ledger = Ledger((), ())
        if self.enrolment is not None:
            debits = ((entry.own_ms, entry.nano) for entry in memory.entries)
            promises = (self.enrolment.terms.promise,)
            self._ledger = Ledger.of(promises, debits, memory.forgotten_ms)
            if not change.vouched_for:
                self._count_as_spent(change, self.enrolment.terms)

    def _count_as_spent(self, change: Change, terms: Terms) -> None:
        """Debit the whole epsilon now: anything may have been sent up to this moment (rule 6)."""
        own_ms = self.own_ms() + 1
        change.enter(Entry(0, "", terms.epsilon_nano, None, own_ms, self._clock.wall_ms()))
        self._ledger = self._ledger.exhausted(own_ms)
        self._count(Refused(Problem.PAST_UNKNOWN, span=spelled(terms.promise.span)))

    @property
    def enrolled(self) -> Enrolment:
        if self.enrolment is None:
            raise Mistake(Problem.NOT_ENROLLED, file=self._store.path.name)
        return self.enrolment

    def enrol(self, number: bytes, offered: Enrolment) -> None:
        """Commit what was agreed on under this device number.

        A first ledger starts as spent, unless it is a first install (rule 6). A later enrolment
        may change the collector's address and the key, but not the terms.
        """
        with self._store.change() as change:
            if change.memory.number != number:  # the key belongs to another device
                raise LedgerUnusable(Problem.LEDGER_REPLACED, file=self._store.path.name)
            first = change.memory.first and change.vouched_for
            self._recall(change)
            known = self.enrolment
            if known is not None and offered.terms.pin != known.terms.pin:
                raise TermsRefused(
                    Problem.TERMS_DIFFER, given=offered.terms.pin, expected=known.terms.pin
                )
            change.enrol(offered)
            self.enrolment = offered
            if known is None:
                self._ledger = Ledger((offered.terms.promise,))
                if not first:
                    self._count_as_spent(change, offered.terms)

    def own_ms(self) -> int:
        """Return own time now, in milliseconds, rounded down."""
        return self._own.at(Look.at(self._clock))

    @property
    def t(self) -> int:
        """The current timestamp, by label time."""
        return self.enrolled.terms.timestamp_at(self.label.now_ms())

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
        state = State(self.enrolled.terms, self._ledger, self._answered, self._secret)
        return decide(pin, asked, state, self._own.at(look), self.label.now_ms())

    def _draw(self, pin: str, asked: Round, before: Look, value: int) -> Decision:
        """Decide again, in an exclusive transaction, and commit a report of this value.

        The budget is checked at the own time before the value was read, and debited at the own time
        after it.
        """
        with self._store.change() as change:
            self._recall(change)
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
            change.count(self._refusals.values())
        self._refusals.clear()
        self._ledger = ledger.forget(own_ms)
        self._answered[asked.key] = report
        self._delivered &= self._answered.keys()
        return Repeat(asked, report)

    def mark_time(self) -> None:
        """Save own time if a reboot would lose much of it; ignore a disk that fails."""
        if self.enrolment is None or not self._ledger.forget(self.own_ms()).debits:
            return
        passed = self._clock.steady_ms() - self._own.look.steady_ms
        if passed * MARKS_PER_SPAN >= self._ledger.longest_span:
            with suppress(LedgerUnusable), self._store.change() as change:
                self._recall(change)
                change.mark_time()

    def _submission(self, asked: Round, report: bytes) -> Submission:
        stream = self.enrolled.terms.stream
        mac = report_mac(self.enrolled.key, report_prefix(stream, asked.name), report)
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
