"""The part of a device that keeps the promise: decide by the rules, commit, and only then hand out.

No network here. What `consider` returns to be sent is on disk, with its debit.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from ldpstream.device.clock import Clock, OwnTime
from ldpstream.device.rounds import Refused, Round
from ldpstream.device.rules import Decision, Fresh, Held, Repeat, Silence, State, decide
from ldpstream.device.store import (
    Enrolment,
    Entry,
    LedgerMoved,
    LedgerUnusable,
    RefusalCount,
    Store,
)
from ldpstream.device.terms import Terms, TermsRefused
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Ledger
from ldpstream.privacy.randomness import Source

Reading = Callable[[int], int | None]
"""The place of the value that the device holds at a timestamp (`Terms.place`), or None."""

Fault = TypeVar("Fault", bound=LdpStreamError)


@dataclass(frozen=True)
class Submission:
    """A report that is on disk, and may leave."""

    round: Round
    path: str
    report: bytes
    mac: bytes


class Account:
    """One device's file, as this process knows it, and its sense of time."""

    def __init__(self, store: Store, clock: Clock, source: Source) -> None:
        self._store = store
        self._clock = clock
        self._source = source
        self._time = OwnTime(clock)
        self._delivered: set[tuple[int, str]] = set()
        self._refusals: dict[str, RefusalCount] = {}
        self._told: set[str] = set()
        store.create()
        self._recall()

    def _recall(self) -> None:
        """Read the file, and count its ledger as spent if it may be an older copy (rule 6)."""
        self._stale = True
        memory = self._store.load()
        self.number, self._secret, self._commits = memory.number, memory.secret, memory.commits
        self.enrolment = memory.enrolment
        if self.enrolment is not None:
            self._time.offset_ms = self.enrolment.offset_ms
            self._read_ledger(self.enrolment.terms, memory.entries)
            if not memory.vouched_for:
                why = "the ledger may be a copy that was brought back"
                self._count_as_spent(why, self.now_ms())
        self._stale = False

    def _read_ledger(self, terms: Terms, entries: tuple[Entry, ...]) -> None:
        spends = ((entry.t, entry.nano) for entry in entries)
        self._ledger = Ledger.of(terms.epsilon_nano, terms.window, spends)
        self._answered = {
            (entry.t, entry.round): entry.report for entry in entries if entry.report is not None
        }
        self._last_t = max((entry.t for entry in entries), default=0)

    @property
    def enrolled(self) -> Enrolment:
        if self.enrolment is None:
            raise Mistake(Problem.NOT_ENROLLED, file=self._store.path.name)
        return self.enrolment

    def enrol(self, offered: Enrolment, first_install: bool) -> None:
        """Commit an enrolment; the ledger of a first one starts as spent (rule 6).

        Of a later one only the address and what the collector knows the device by are taken.
        """
        if self._stale:
            # A copy that was brought back must not become the latest by this, and terms that
            # another process has agreed on must not be written over.
            self._recall()
        known = self.enrolment
        if known is not None:
            self._renew(known, offered)
            return
        # No ledger yet: nothing was witnessed that a clock set right since could undo.
        self._time.offset_ms = offered.offset_ms
        self._time.take_over(self._time.look())
        latest = self._latest(offered.terms, self.now_ms())
        self._keep(offered, [] if first_install else [self._everything(offered.terms, latest)])

    def _renew(self, known: Enrolment, offered: Enrolment) -> None:
        if offered.terms.pin != known.terms.pin:
            raise TermsRefused(
                Problem.TERMS_DIFFER, given=offered.terms.pin, expected=known.terms.pin
            )
        self._keep(replace(offered, offset_ms=known.offset_ms, at_ms=known.at_ms), [])

    def _keep(self, enrolment: Enrolment, entries: list[Entry]) -> None:
        self._stale = True
        self._commits = self._store.enrol(self._commits, enrolment, entries)
        self._recall()

    def now_ms(self) -> int:
        return self._time.now_ms()

    def consider(
        self, pin: str, asked: Round | Refused, reading: Reading
    ) -> Submission | Silence | Refused:
        """Decide about a round that was announced under `pin`.

        Raise `LedgerUnusable` if the disk does not take it; then nothing may be sent.
        """
        if isinstance(asked, Refused):
            return self.note(asked)
        for _ in range(3):
            try:
                if self._stale:
                    self._recall()
                return self._consider(pin, asked, lambda: reading(asked.t))
            except LedgerMoved:
                self._stale = True  # another process has reported: decide again from what it left
        raise LedgerUnusable(Problem.LEDGER_MOVED, file=self._store.path.name)

    def _consider(self, pin: str, asked: Round, value: Held) -> Submission | Silence | Refused:
        match self._decide(pin, asked, value):
            case Fresh(value=held):
                return self._submission(asked, self._draw_and_commit(asked, held))
            case Repeat(report=report):
                delivered = asked.key in self._delivered
                return Silence.DELIVERED if delivered else self._submission(asked, report)
            case Refused() as refusal:
                return self.note(refusal)
            case Silence() as silence:
                return silence

    def _decide(self, pin: str, asked: Round, value: Held) -> Decision:
        decision = self._decide_now(pin, asked, value)
        ahead = isinstance(decision, Refused) and decision.problem is Problem.ROUND_AHEAD
        seen = self._time.look()
        if ahead and self._time.wall_ahead_ms(seen) > self.enrolled.terms.slack_ms:
            # The collector and the wall clock agree that time has passed which this device has not
            # witnessed. It believes them, and that anything may have been spent in that time: not
            # before this is on disk, or a disk that fails would let it off.
            self._count_as_spent("the clock was moved forward", self._time.by_wall_ms(seen))
            self._time.take_over(seen)
            decision = self._decide_now(pin, asked, value)
        return decision

    def _decide_now(self, pin: str, asked: Round, value: Held) -> Decision:
        terms, ledger, answered = self.enrolled.terms, self._ledger, self._answered
        state = State(terms, ledger, answered, self._last_t, self._secret, value)
        return decide(pin, asked, state, self._time.now_ms())

    def _draw_and_commit(self, asked: Round, value: int) -> bytes:
        terms = self.enrolled.terms
        epsilon = Epsilon(asked.epsilon_nano)
        randomiser = terms.randomiser(epsilon)
        report = randomiser.encode(randomiser.perturb(value, self._source))
        ledger = self._ledger.spend(asked.t, epsilon.nano)
        entry = Entry(asked.t, asked.name, epsilon.nano, report, self._clock.wall_ms())
        self._commit(entry, ledger)
        self._answered[asked.key] = report
        return report

    def _count_as_spent(self, why: str, now_ms: int) -> None:
        """Enter the whole epsilon at the latest timestamp that may have been used (rule 6)."""
        terms = self.enrolled.terms
        t = max(self._latest(terms, now_ms), self._last_t)
        self._commit(self._everything(terms, t), self._ledger.exhausted(t))
        self.note(Refused(Problem.PAST_UNKNOWN, why=why, t=t, until=t + terms.window))

    @staticmethod
    def _latest(terms: Terms, now_ms: int) -> int:
        """The latest timestamp that a round may be of now."""
        return terms.timestamp_at(now_ms + terms.slack_ms)

    def _everything(self, terms: Terms, t: int) -> Entry:
        return Entry(t, "", terms.epsilon_nano, None, self._clock.wall_ms())

    def _commit(self, entry: Entry, ledger: Ledger) -> None:
        """Put an entry on disk, after which the ledger is this one.

        Until that has worked, what is in memory counts for nothing.
        """
        self._stale = True
        # Rounds are never older than the last entry, so no window reaches back further than this.
        forgotten = entry.t - self.enrolled.terms.window
        refusals = tuple(self._refusals.values())
        self._commits = self._store.add(self._commits, entry, forgotten, refusals)
        self._stale = False
        self._refusals.clear()
        self._last_t = entry.t
        self._ledger = ledger.since(forgotten + 1)
        self._delivered = {key for key in self._delivered if key[0] > forgotten}
        self._answered = {
            key: report for key, report in self._answered.items() if key[0] > forgotten
        }

    def _submission(self, asked: Round, report: bytes) -> Submission:
        path = f"/v1/streams/{self.enrolled.terms.stream}/rounds/{asked.name}/reports"
        message = f"ldpstream report 2\n{path}\n{asked.name}\n".encode() + report
        mac = hmac.digest(self.enrolled.key, message, hashlib.sha256)[:16]
        return Submission(asked, path, report, mac)

    def arrived(self, asked: Round) -> None:
        """The collector has the report of this round: no need to send it again."""
        self._delivered.add(asked.key)

    def note(self, fault: Fault) -> Fault:
        """Count a refusal; put it on disk with the next report, or at once if it is a new kind."""
        code = fault.problem.code
        times = self._refusals[code].times if code in self._refusals else 0
        self._refusals[code] = RefusalCount(code, times + 1, self._clock.wall_ms(), str(fault))
        if code not in self._told:
            self._told.add(code)
            self.save_refusals()
        return fault

    def save_refusals(self) -> None:
        """Put the counts of refusals on disk, if it can be done: they are no more than counts."""
        if not self._refusals or self._stale:
            return
        try:
            self._commits = self._store.count(self._commits, self._refusals.values())
        except (LedgerUnusable, LedgerMoved):
            self._stale = True
        else:
            self._refusals.clear()
