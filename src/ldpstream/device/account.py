"""The part of a device that keeps a stream's promise: it decides and commits before sending.

There is no network here. A report that `consider` returns is already on disk, with its debit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from ldpstream.device.clock import ClockReading, LabelTime, OwnTime
from ldpstream.device.memory import LedgerContent, LedgerEntry, StoredEnrolment
from ldpstream.device.rules import (
    Decision,
    DeviceState,
    Fresh,
    Repeat,
    SilenceReason,
    TooEarly,
    decide,
    last_moment_ms,
)
from ldpstream.device.store import LedgerUnusable
from ldpstream.device.wallet import Wallet
from ldpstream.errors import LdpStreamError, Problem
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Ledger
from ldpstream.privacy.randomness import Source
from ldpstream.protocol.answers import Refused, Round
from ldpstream.protocol.authentication import (
    leave_message,
    proof_of,
    renew_message,
    report_mac,
    report_prefix,
    rounds_message,
    terms_message,
)
from ldpstream.protocol.messages import DeviceProof, FetchTerms, Leave, RenewKey, SubmitReport
from ldpstream.protocol.slots import moment_ms, next_turn
from ldpstream.protocol.succession import objection
from ldpstream.protocol.terms import Terms

Reading = Callable[[Terms, Source], int]
"""A function that reads the value the device holds now and returns its index (`values.py`)."""

Fault = TypeVar("Fault", bound=LdpStreamError)


@dataclass(frozen=True)
class CommittedReport:
    """A report that is on disk and may be sent."""

    round: Round
    message: SubmitReport


Outcome = CommittedReport | TooEarly | SilenceReason | Refused


@dataclass(frozen=True)
class Turn:
    """The next report of a device that reports unasked, in a slot of its own."""

    round: Round
    at_ms: int
    """When it is due, by label time."""


class Account:
    """One stream of a device's file, and what this process remembers of it."""

    def __init__(self, wallet: Wallet, enrolment_id: int = 0) -> None:
        self.wallet = wallet
        self._clock = wallet.clock
        self._source = wallet.source
        self._id = enrolment_id
        self.sole = enrolment_id == 0
        """Whether it will stand for the only stream of the file, whichever that is."""
        self.label = LabelTime(self._clock)
        self.described: Mapping[str, object] = {}
        """What the application says of this device: its public attributes, by name."""
        self._delivered: set[tuple[int, str]] = set()
        self._derived: _Derived | None = None

    # --- what is known ----------------------------------------------------------------------------

    @property
    def enrolment(self) -> StoredEnrolment | None:
        memory = self.wallet.memory
        known = memory.enrolment(self._id)
        if self._id == 0 and self.sole and len(memory.enrolments) == 1:
            known = memory.enrolments[0]
            self.bind(known.id)
        return known

    @property
    def was_left(self) -> bool:
        """Whether it stands for an enrolment that is no more."""
        return self._id != 0 and self.enrolment is None

    def bind(self, enrolment_id: int) -> None:
        """Stand for this enrolment from now on."""
        self._id = enrolment_id
        self._delivered.clear()

    @property
    def id(self) -> int:
        """The id of the enrolment; 0 if there is none."""
        known = self.enrolment
        return 0 if known is None else known.id

    @property
    def enrolled(self) -> StoredEnrolment:
        return self.enrolment or self.wallet.enrolled(self._id)

    @property
    def _known(self) -> _Derived:
        memory, enrolled, known = self.wallet.memory, self.enrolled, self._derived
        if known is None or known.memory is not memory or known.enrolled is not enrolled:
            known = self._derived = _Derived.of(memory, enrolled)
        return known

    @property
    def _answered(self) -> dict[tuple[int, str], bytes]:
        return self._known.answered

    @property
    def _own(self) -> OwnTime:
        return self.wallet.memory.own

    @property
    def _secret(self) -> bytes:
        known = self.enrolment
        return self.wallet.memory.secret if known is None else known.secret

    @property
    def number(self) -> bytes:
        """The device's number in the stream that it takes part in."""
        return self.enrolled.number

    @property
    def terms(self) -> Terms:
        """The terms under which it would report now, at its level."""
        return self.enrolled.terms_at(self.t)

    def renamed_at(self, t: int) -> Mapping[str, str]:
        """Return the names that labels of earlier terms have under the terms of timestamp t."""
        known = self.enrolment
        return {} if known is None else known.renamed_at(t)

    def enrolment_secret(self, place: str, stream: str) -> bytes:
        """Return what this device shows, to this collector alone, to enrol in a stream."""
        return self.wallet.enrolment_secret(place, stream)

    def refresh(self) -> bool:
        """Load the state again if another process has written it; return whether it has enrolled.

        It may also have left the stream.
        """
        before = self.enrolment
        self.wallet.refresh()
        after = self.enrolment
        return (before and before.identity) != (after and after.identity)

    def own_ms(self) -> int:
        """Return own time now, in milliseconds, rounded down."""
        return self.wallet.own_ms()

    @property
    def t(self) -> int:
        """The current timestamp, by label time."""
        return self.enrolled.terms.timestamp_at(self.label.now_ms())

    @property
    def went_over(self) -> bool:
        """Whether the collector is known to have taken a report under the successor.

        Until then the successor may not have begun, whatever the collector says of the time.
        """
        following = self.enrolled.successor
        if following is None or following.succeeds is None:
            return False
        from_t = following.succeeds.from_t
        return any(key[0] >= from_t and key in self._answered for key in self._delivered)

    # --- turns ------------------------------------------------------------------------------------

    def turn(self, taken: int | None = None) -> Turn | None:
        """Return the next report that is due, in a timestamp other than `taken`.

        Turns for which the budget is not free in time are passed over: too soon after an epoch has
        changed the slot, for example. Return None if the limit never allows one.
        """
        now_ms, t = self.label.now_ms(), max(self.t, 1)
        asked, terms = self._next_round(t)
        undelivered = asked.key in self._answered and asked.key not in self._delivered
        if undelivered and asked.t != taken:
            return Turn(asked, max(now_ms, terms.start_of(asked.t)))  # the same bytes again
        while True:
            asked, terms = self._next_round(t)
            free_ms = self._state(terms).budget.free_from(terms.epsilon_nano)
            if free_ms is None:
                following = self.enrolled.successor
                if terms is following or following is None or following.succeeds is None:
                    return None
                t = following.succeeds.from_t
                continue
            first_ms = max(now_ms, now_ms + free_ms - self.own_ms())
            at_ms = max(first_ms, terms.start_of(asked.t) + self._moment_ms(terms))
            is_new = asked.t != taken and asked.key not in self._answered
            if is_new and at_ms < last_moment_ms(asked, terms):
                return Turn(asked, at_ms)
            t = max(asked.t + 1, terms.timestamp_at(first_ms))

    def free_in_ms(self, asked: Round) -> int:
        """Return the own time until the budget allows the report of a round; 0 if it never does."""
        budget = self._state(self.enrolled.terms_at(asked.t)).budget
        return max(0, (budget.free_from(asked.epsilon_nano) or 0) - self.own_ms())

    def _next_round(self, t: int) -> tuple[Round, Terms]:
        """Return the round of this device's first turn from t on, and the terms it is under."""
        enrolled, terms = self.enrolled, self.enrolled.terms_at(t)
        first = t if terms.succeeds is None else max(t, terms.succeeds.from_t)
        turn = next_turn(enrolled.slot_key, terms.window, first)
        later = enrolled.terms_at(turn)
        if later is not terms and later.succeeds is not None:
            first = max(t, later.succeeds.from_t)
            terms, turn = later, next_turn(enrolled.slot_key, later.window, first)
        return Round.of_slot(terms, turn), terms

    def _moment_ms(self, terms: Terms) -> int:
        key = self.enrolled.slot_key  # another one at every collector: moments link no numbers
        return moment_ms(key, terms.stream, terms.deadline_ms or terms.interval_ms)

    # --- decisions --------------------------------------------------------------------------------

    def consider(self, pin: str, asked: Round | Refused, reading: Reading) -> Outcome:
        """Decide about a round that was announced under `pin`.

        Raise `LedgerUnusable` if it cannot be committed; then nothing may be sent.
        """
        if isinstance(asked, Refused):
            return self.note(asked)
        before = ClockReading.at(self._clock)
        decision = self._decide(pin, asked, before)
        if isinstance(decision, Fresh):
            # Read the value only now that a report of it is due.
            seen = self._seen_at(asked.t)
            decision = self._draw(pin, asked, before, reading(seen, self._source), seen)
        match decision:
            case Repeat(report=report):
                delivered = asked.key in self._delivered
                return SilenceReason.DELIVERED if delivered else self._submission(asked, report)
            case Refused() as refusal:
                return self.note(refusal)
            case Fresh():
                raise AssertionError("a fresh report is drawn and entered, and then repeated")
            case _:
                return decision

    def _seen_at(self, t: int) -> Terms:
        """Return the terms of timestamp t as this device sees them: its reports may have a tag."""
        return self.enrolled.terms_at(t).seen_by(self.enrolled.slot_key, self.described)

    def _state(self, terms: Terms) -> DeviceState:
        known, enrolled = self._known, self.enrolled
        in_force = terms is enrolled.terms
        ledger = known.ledger if in_force else known.memory.ledger(enrolled, terms)
        return DeviceState(
            terms, ledger, known.answered, enrolled.secret, enrolled.slot_key, known.limit
        )

    def _decide(self, pin: str, asked: Round, clocks: ClockReading) -> Decision:
        state = self._state(self.enrolled.terms_at(asked.t))
        return decide(pin, asked, state, self._own.at(clocks), self.label.now_ms())

    def _draw(
        self, pin: str, asked: Round, before: ClockReading, value: int, seen: Terms
    ) -> Decision:
        """Decide again, in an exclusive transaction, and commit a report of this value of `seen`.

        The budget is checked at the own time before the value was read, and debited at the own time
        after it. The tag is that of before, too: a key that was renewed meanwhile gives another.
        """
        read = self.enrolled
        with self.wallet.change() as change:
            enrolled = self.enrolment
            # Another process may have left, enrolled elsewhere, or accepted other terms.
            if enrolled is None or not _same_meaning(read, enrolled, asked.t):
                return SilenceReason.MOVED_ON
            decision = self._decide(pin, asked, before)
            if not isinstance(decision, Fresh):
                ended = isinstance(decision, Refused) and decision.problem is Problem.ROUND_PAST
                return SilenceReason.MOVED_ON if ended else decision
            terms = enrolled.terms_at(asked.t)
            randomiser = seen.randomiser(Epsilon(asked.epsilon_nano))
            report = randomiser.encode(randomiser.perturb(value, self._source))
            own_ms = self.own_ms() + 1  # rounded up: no earlier than the reading of the value
            self._state(terms).budget.check(self._own.at(before), asked.epsilon_nano)
            if terms is enrolled.successor:
                self.wallet.keep(change, enrolled, terms, own_ms)
            entry = LedgerEntry(
                asked.t,
                asked.name,
                asked.epsilon_nano,
                report,
                own_ms,
                self._clock.wall_ms(),
                enrolled.id,
                enrolled.id,
            )
            change.enter(entry)
            self.wallet.forget(change, own_ms)
            self.wallet.save_refusals(change)
        self.wallet.refusals_saved()
        self._delivered &= self._answered.keys()
        return Repeat(asked, report)

    # --- enrolments -------------------------------------------------------------------------------

    def accept(self, offered: Terms) -> str | None:
        """Accept terms that follow those in force, if the application agrees; say why not.

        They are on disk when it returns, and in force from their first timestamp on. If they follow
        a successor that may not have begun, they are neither accepted nor declined: who let go of
        the terms before it by mistake would be silent until it begins.
        """
        with self.wallet.change() as change:
            enrolled = self.enrolled
            old = enrolled.terms_at(self.t)
            if old is enrolled.successor and not self.went_over:
                return None
            if (fault := objection(old, offered)) is not None:
                return fault
            new = offered.at_level(old.level)
            if self.wallet.memory.holder(offered, enrolled.id) is not None:
                return "another enrolment has them, or had"
            if not enrolled.policy.agrees(old, new):
                return "the application has not agreed to such a change"
            if old is enrolled.successor:
                enrolled = self.wallet.go_over(change, enrolled)
            if enrolled.successor is None:
                self.wallet.follow(change, enrolled, new)
        return None

    def renew(self, asked: StoredEnrolment, key: bytes, slot_key: bytes) -> None:
        """Commit a key of the collector's new master secret, for the enrolment that asked for it.

        Another process may have left meanwhile, or enrolled elsewhere or at another level. The key
        of before is kept until the collector has taken a report with the new one.
        """
        with self.wallet.change() as change:
            now = self.wallet.memory.enrolment(asked.id)
            if now is not None and (now.identity, now.key) == (asked.identity, asked.key):
                before = now.other_keys or (now.key, now.slot_key)
                change.enrol(replace(now, key=key, slot_key=slot_key, other_keys=before))

    def doubt_key(self) -> None:
        """Use the key of before a renewal, or the renewed one: the other was refused."""
        if self.enrolled.other_keys is None:
            return
        with self.wallet.change() as change:
            if (now := self.enrolled).other_keys is not None:
                (key, slot_key), others = now.other_keys, (now.key, now.slot_key)
                change.enrol(replace(now, key=key, slot_key=slot_key, other_keys=others))

    def leave(self) -> Leave:
        """Commit that the device has left its stream; return the farewell to the collector."""
        self.wallet.refresh()
        left = self.enrolled
        stream = left.terms.stream
        farewell = Leave(stream, proof_of(left.number, left.key, leave_message(stream)))
        self.wallet.leave(left.id)
        self._delivered.clear()
        return farewell

    # --- messages ---------------------------------------------------------------------------------

    def _submission(self, asked: Round, report: bytes) -> CommittedReport:
        enrolled = self.enrolled
        terms = enrolled.terms_at(asked.t)
        prefix = report_prefix(terms.stream, terms.pin, asked.name, terms.level)
        mac = report_mac(enrolled.key, prefix, report)
        message = SubmitReport(terms.stream, asked.name, enrolled.number, mac, report)
        return CommittedReport(asked, message)

    def proof(self, after: int = 0) -> DeviceProof:
        """Return the proof that this device may hear of the rounds after a serial."""
        enrolled = self.enrolled
        message = rounds_message(enrolled.terms.stream, after)
        return proof_of(enrolled.number, enrolled.key, message)

    def question_for(self, pin: str) -> FetchTerms:
        """Return the question for the terms with this pin."""
        enrolled = self.enrolled
        stream = enrolled.terms.stream
        proof = proof_of(enrolled.number, enrolled.key, terms_message(stream, pin))
        return FetchTerms(stream, pin, proof)

    def renewal(self, place: str) -> RenewKey:
        """Return the request for a key of the collector's new master secret."""
        enrolled = self.enrolled
        stream = enrolled.terms.stream
        proof = proof_of(enrolled.number, enrolled.key, renew_message(stream))
        secret = self.wallet.enrolment_secret(place, stream)
        return RenewKey(stream, secret, enrolled.terms.level, proof)

    def arrived(self, asked: Round) -> None:
        """Remember that the collector has the report of this round; it is not sent again.

        So the key that signed it is valid, and another one is not kept any more.
        """
        self._delivered.add(asked.key)
        if self.enrolled.other_keys is not None:
            with suppress(LedgerUnusable), self.wallet.change() as change:
                change.enrol(replace(self.enrolled, other_keys=None))

    def note(self, fault: Fault) -> Fault:
        """Count a refusal; save it with the next report, or at once if it is of a new kind."""
        return self.wallet.note(self.id, fault)

    def mark_time(self) -> None:
        """Save own time if a reboot would lose much of it; ignore a disk that fails."""
        self.wallet.mark_time()

    def close(self) -> None:
        """Save the counts of refusals and own time, if the disk allows it."""
        self.wallet.close()


@dataclass(frozen=True)
class _Derived:
    """What follows from the content of the file for one stream."""

    memory: LedgerContent
    enrolled: StoredEnrolment
    answered: dict[tuple[int, str], bytes]
    ledger: Ledger
    limit: Ledger | None

    @classmethod
    def of(cls, memory: LedgerContent, enrolled: StoredEnrolment) -> _Derived:
        answered = {
            one.key: one.report
            for one in memory.entries
            if one.report is not None and one.scope == enrolled.scope
        }
        ledger, limit = memory.ledger(enrolled), memory.limit_ledger(enrolled)
        return cls(memory, enrolled, answered, ledger, limit)


def _same_meaning(read: StoredEnrolment, now: StoredEnrolment, t: int) -> bool:
    """Return whether a value that was read under one enrolment means the same under another."""
    return read.identity == now.identity and read.terms_at(t).pin == now.terms_at(t).pin
