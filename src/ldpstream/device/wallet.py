"""The wallet: one file with many enrolments, and one limit over all of them.

All streams of a file share its own time and its transactions. Each has an account (`account.py`).
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from ldpstream.device.clock import ClockReading
from ldpstream.device.exchange import Address
from ldpstream.device.file_transaction import FileTransaction
from ldpstream.device.memory import (
    EVERYONE,
    LIMIT,
    LedgerContent,
    LedgerEntry,
    RefusalCount,
    StoredEnrolment,
    StoredPromise,
)
from ldpstream.device.store import DeviceStore, LedgerUnusable
from ldpstream.durations import EXAMPLES, milliseconds, spelled
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Promise
from ldpstream.privacy.randomness import Source
from ldpstream.protocol.answers import Refused
from ldpstream.protocol.identity import enrolment_secret, number_of
from ldpstream.protocol.limits import LATEST_MS
from ldpstream.protocol.names import shown, whole
from ldpstream.protocol.succession import Policy, objection
from ldpstream.protocol.terms import SelectionMethod, Terms, TermsRefused

MARKS_PER_SPAN = 8
"""How often per window own time is saved after a report: a reboot loses at most one such part."""
LAST_T = 1 << 53
"""No timestamp is as late as this one."""
LONGEST_REFUSAL = 400
"""The most characters of a refusal that are stored: a collector can influence its text."""

Amount = Epsilon | str | int | float | Decimal | Fraction
Fault = TypeVar("Fault", bound=LdpStreamError)


@dataclass(frozen=True)
class Limit:
    """A limit on what all streams of a device spend together, in any span of this length.

    >>> Limit(epsilon=2, span="24h").promise
    Promise(epsilon_nano=2000000000, span=86400000, until=None)
    """

    epsilon: Amount
    span: str

    def __post_init__(self) -> None:
        _ = self.promise  # refuse what is none where it is written

    @property
    def promise(self) -> Promise:
        span: object = self.span
        span_ms = milliseconds(span) if isinstance(span, str) else None
        if span_ms is None or not whole(span_ms, 1, LATEST_MS):
            raise Mistake(
                Problem.OPTION, option="the limit's span", given=shown(self.span), expected=EXAMPLES
            )
        return Promise(Epsilon.of(self.epsilon).nano, span_ms)


def promise_of(limit: object) -> Promise | None:
    """Return the promise of a limit that an application has given; refuse anything else."""
    if limit is None or isinstance(limit, Limit):
        return None if limit is None else limit.promise
    expected = 'Limit(epsilon, span), with a span such as "24h", or None'
    raise Mistake(Problem.OPTION, option="the limit", given=shown(limit), expected=expected)


class Wallet:
    """A device's file, and what this process remembers of it.

    Decisions are prepared from memory and made in an exclusive transaction on the file. So several
    processes may share a file.
    """

    memory: LedgerContent

    def __init__(self, store: DeviceStore, source: Source) -> None:
        self.store = store
        self.clock = store.clock
        self.source = source
        self._refusals: dict[tuple[int, str], RefusalCount] = {}
        self._told: set[tuple[int, str]] = set()
        self._load()

    def _load(self) -> None:
        with self.change():
            pass

    @contextmanager
    def change(self) -> Iterator[FileTransaction]:
        """Change the file in an exclusive transaction, and know afterwards what is in it."""
        with self.store.change() as change:
            self.memory = change.memory
            if change.memory.enrolments and not change.vouched_for:
                self._count_as_spent(change)
                change.reread()
                self.memory = change.memory
            yield change
        self.memory = change.memory

    def _count_as_spent(self, change: FileTransaction, terms: Terms | None = None) -> None:
        """Debit everything now: anything may have been sent up to this moment (rule 6)."""
        own_ms = self.own_ms() + 1
        known = [(one.id, one.terms) for one in change.memory.enrolments]
        given = known if terms is None else [*known, (0, terms)]
        nano = max(one.epsilon_nano for _, one in given)
        change.enter(LedgerEntry(0, "", nano, None, own_ms, self.clock.wall_ms()))
        change.forgotten(own_ms, EVERYONE)  # the entry is for people: this binds any promise
        change.accounted_for = True
        for place, one in given:
            span = spelled(one.promise.span)
            self.count(place, Refused(Problem.PAST_UNKNOWN, span=span))

    def refresh(self) -> None:
        """Load the state again if another process has written it."""
        if self.store.changed():
            self._load()

    def own_ms(self) -> int:
        """Return own time now, in milliseconds, rounded down."""
        return self.memory.own.at(ClockReading.at(self.clock))

    # --- enrolments -------------------------------------------------------------------------------

    def at(self, place: str, stream: str) -> StoredEnrolment | None:
        """Return the enrolment in this stream of the collector at this place."""
        return next(
            (
                one
                for one in self.memory.enrolments
                if one.terms.stream == stream and Address.of(one.url).place == place
            ),
            None,
        )

    def enrolled(self, enrolment_id: int) -> StoredEnrolment:
        """Return an enrolment as it is now; refuse if the stream was left."""
        known = self.memory.enrolment(enrolment_id)
        if known is None:
            raise Mistake(Problem.NOT_ENROLLED, file=self.store.path.name)
        return known

    def secret_for(self, place: str, stream: str) -> tuple[bytes, int]:
        """Return the secret of an enrolment at this place, and how often a stream was left before.

        Each has one of its own, so that coins and numbers of two streams have nothing in common.
        """
        known = self.at(place, stream)
        if known is not None:
            return known.secret, known.rejoins
        message = f"ldpstream stream secret 3\n{place}\n{stream}".encode()
        return hmac.digest(self.memory.secret, message, "sha256"), self.memory.rejoins

    def enrolment_secret(self, place: str, stream: str) -> bytes:
        """Return what this device shows, to this collector alone, to enrol in a stream."""
        secret, rejoins = self.secret_for(place, stream)
        return enrolment_secret(secret, place, stream, rejoins)

    def enrol(
        self,
        offered: StoredEnrolment,
        accept: Policy | None = None,
        reserve_nano: int | None = None,
        *,
        new_level: bool = True,
        moved_from: str | None = None,
    ) -> int:
        """Commit what was agreed on, and return the id of the enrolment.

        A file whose past is unknown starts as spent (rule 6). A later enrolment may change the
        level and, if the stream has `moved_from` another place, the address, and with it number
        and key; but not the terms, unless they follow those of before and the application agrees.
        Without `new_level` the level is meant to be that of before, which another process may have
        changed.
        """
        with self.change() as change:
            place, stream = Address.of(offered.url).place, offered.terms.stream
            secret, rejoins = self.secret_for(place, stream)
            offered = replace(offered, secret=secret, rejoins=rejoins)
            known = self.at(place, stream) or (moved_from and self.at(moved_from, stream)) or None
            self._check_holder(offered.terms, self.memory.next_id if known is None else known.id)
            level = offered.terms.level if new_level or known is None else known.terms.level
            number = number_of(self.enrolment_secret(place, stream))
            if (number, level) != (offered.number, offered.terms.level):
                # The key belongs to another device, or to another level.
                raise LedgerUnusable(Problem.LEDGER_REPLACED, file=self.store.path.name)
            agreed = offered if known is None else known
            offered = replace(
                offered,
                policy=_policy(accept, known, offered.terms),
                reserve_nano=agreed.reserve_nano if reserve_nano is None else reserve_nano,
                reserved_ms=self.own_ms(),
            )
            self._check_limit(offered, known)
            if known is not None:
                self._enrol_again(change, known, offered)
                return known.id
            past_known = self.memory.past_known and (change.vouched_for or change.accounted_for)
            offered = replace(offered, id=self.memory.next_id)
            change.enrol(offered)
            if not past_known:
                self._count_as_spent(change, offered.terms)
            return offered.id

    def _check_holder(self, terms: Terms, enrolment_id: int) -> None:
        """Refuse terms of a stream that the file has at another place: epsilon would double."""
        holder = self.memory.holder(terms, enrolment_id)
        if holder is None:
            return
        other = self.memory.enrolment(holder.first_id)
        place = "an address that it has left" if other is None else Address.of(other.url).place
        facts = {"file": self.store.path.name, "stream": terms.stream, "place": place}
        raise Mistake(Problem.STREAM_ELSEWHERE, **facts)

    def _enrol_again(
        self, change: FileTransaction, known: StoredEnrolment, offered: StoredEnrolment
    ) -> None:
        """Store what has changed; the ledger goes on, and a promise that was left still binds."""
        level = offered.terms.level
        if known.successor is not None and _goes_over(known.terms, known.successor, offered.terms):
            known = self.go_over(change, known)
        terms = known.terms.at_level(level)
        following = _following(known, terms, offered)
        now = replace(
            offered,
            id=known.id,
            terms=terms,
            successor=None if following is None else following.at_level(level),
            renamed=known.renamed,
        )
        change.enrol(now)
        if now.successor is not None and known.successor is None:
            self.follow(change, now, now.successor)
        if (known.number, known.terms.level) != (now.number, level):
            change.drop_reports(known)  # the same bytes would link two numbers, or be refused
        if known.terms.level != level:
            self.end(change, known)

    def end(
        self, change: FileTransaction, enrolment: StoredEnrolment, *, leaves: bool = False
    ) -> StoredPromise | None:
        """End the promise of the terms in force, which binds until its span has passed.

        It binds spans that hold, as far as anybody knows, a report that was made under it. Return
        it, and store it unless the stream is left, which does so.
        """
        promise, own_ms = enrolment.terms.promise, self.own_ms()
        made = [one.own_ms for one in self.memory.entries if one.scope == enrolment.scope]
        unknown = [one.own_ms for one in self.memory.forgotten if enrolment.id in one.scope]
        if not any(moment > own_ms - promise.span for moment in (*made, *unknown)):
            return None
        until_ms = own_ms + 1 + promise.span
        ended = StoredPromise(promise.epsilon_nano, promise.span, until_ms, enrolment.scope)
        if not leaves:
            change.end(ended)
        return ended

    def follow(self, change: FileTransaction, enrolled: StoredEnrolment, new: Terms) -> None:
        """Store that these terms were accepted, for timestamps from their start on.

        From then on t says under which terms a report was made, so earlier reports of such t go.
        """
        assert new.succeeds is not None
        change.enrol(replace(enrolled, successor=new))
        change.drop_reports(enrolled, but=range(new.succeeds.from_t))

    def keep(
        self, change: FileTransaction, enrolled: StoredEnrolment, terms: Terms, own_ms: int
    ) -> None:
        """Let a successor's promise bind every span that holds the report made now under it.

        Label time may be wrong, and the device go on under the terms of before: see `go_over`.
        """
        promise = terms.promise
        until_ms = own_ms + promise.span
        change.prolong(
            StoredPromise(promise.epsilon_nano, promise.span, until_ms, enrolled.scope, own_ms - 1)
        )

    def go_over(self, change: FileTransaction, enrolled: StoredEnrolment) -> StoredEnrolment:
        """Drop the terms before the successor, and the reports under them.

        Only now, when others follow those: until then a time that was wrong costs nothing.
        """
        now = enrolled.gone_over
        assert now.terms.succeeds is not None
        self.end(change, enrolled)
        change.drop_reports(enrolled, but=range(now.terms.succeeds.from_t, LAST_T))
        change.enrol(now)
        return now

    def forget(self, change: FileTransaction, own_ms: int) -> None:
        """Delete the debits and promises that nothing depends on any more."""
        change.forget(own_ms)
        # Another process may still read a value for which it was checked against a promise; it
        # cannot read for longer than a timestamp.
        intervals = [one.terms.interval_ms for one in self.memory.enrolments]
        change.forget_promises(own_ms - max(intervals, default=0))

    def leave(self, enrolment_id: int) -> None:
        """Commit that the device has left a stream.

        Number, key, secret and stored reports are deleted. The debits stay, and the promise binds
        for another span, so that joining again is no way around the ledger.
        """
        with self.change() as change:
            enrolment = self.enrolled(enrolment_id)
            change.leave(enrolment, self.end(change, enrolment, leaves=True))
            change.reread()
            self.memory = change.memory
            self.forget(change, self.own_ms())
        for place in (0, enrolment.id):
            self._refusals = {key: one for key, one in self._refusals.items() if key[0] != place}
            self._told = {key for key in self._told if key[0] != place}

    # --- the limit --------------------------------------------------------------------------------

    @property
    def limit(self) -> Promise | None:
        """The limit over all streams."""
        return self.memory.limit

    def set_limit(self, limit: Limit | None) -> None:
        """Set the limit over all streams, or remove it if it is None.

        One that is not stricter than the one of before leaves that one binding for its span.
        """
        wanted = promise_of(limit)
        with self.change() as change:
            now, own_ms = self.memory.limit, self.own_ms()
            if _size(wanted) == _size(now):
                return
            reserved = sum(one.reserve_nano for one in self.memory.enrolments)
            if wanted is not None and reserved > wanted.epsilon_nano:
                raise _too_small(wanted, reserved)
            if now is not None and not _implies(wanted, now):
                change.end(replace(now, until=own_ms + 1 + now.span))
            if wanted is None:
                change.set_limit(None)
            else:
                change.set_limit(
                    StoredPromise(wanted.epsilon_nano, wanted.span, None, LIMIT, own_ms)
                )

    def set_reserve(self, enrolment_id: int, nano: int) -> None:
        """Keep so much of the limit free for one stream."""
        with self.change() as change:
            known = self.enrolled(enrolment_id)
            offered = replace(known, reserve_nano=nano, reserved_ms=self.own_ms())
            self._check_limit(offered, known)
            change.enrol(offered)

    def _check_limit(self, offered: StoredEnrolment, known: StoredEnrolment | None) -> None:
        """Refuse an enrolment that the limit would never let report, or reserves beyond it."""
        limit = self.memory.limit
        if limit is None:
            return
        terms = offered.terms
        others = sum(one.reserve_nano for one in self.memory.enrolments if one != known)
        at_once = terms.epsilon_nano if terms.selection is SelectionMethod.SLOTS else 1
        needed = others + max(offered.reserve_nano, at_once)
        if needed > limit.epsilon_nano:
            raise _too_small(limit, needed)

    # --- refusals, and the end --------------------------------------------------------------------

    def note(self, place: int, fault: Fault) -> Fault:
        """Count a refusal; save it with the next report, or at once if it is of a new kind."""
        self.count(place, fault)
        if (place, fault.problem.code) not in self._told:
            self._told.add((place, fault.problem.code))
            self.save_refusals()
        return fault

    def count(self, place: int, fault: LdpStreamError) -> None:
        """Count a refusal of a stream."""
        code, before = fault.problem.code, self._refusals.get((place, fault.problem.code))
        times = 1 if before is None else before.times + 1
        detail = str(fault)[:LONGEST_REFUSAL]
        counted = RefusalCount(code, times, self.clock.wall_ms(), detail, place)
        self._refusals[place, code] = counted

    def save_refusals(self, change: FileTransaction | None = None) -> None:
        """Save the counts of refusals; ignore a disk that fails, since they are only counts."""
        if not self._refusals:
            return
        if change is not None:
            change.count(self._refusals.values())
            return
        with suppress(LedgerUnusable):
            with self.change() as of_their_own:
                of_their_own.count(self._refusals.values())
            self.refusals_saved()

    def refusals_saved(self) -> None:
        """Start the counts anew, after a transaction that has saved them."""
        self._refusals.clear()

    def mark_time(self) -> None:
        """Save own time if a reboot would lose much of it; ignore a disk that fails."""
        memory, own_ms = self.memory, self.own_ms()
        spans = [
            span
            for one in memory.entries
            if one.own_ms > own_ms - (span := memory.kept_for(one.scope))
        ]
        passed = self.clock.steady_ms() - memory.own.clocks.steady_ms
        if spans and passed * MARKS_PER_SPAN >= min(spans):
            with suppress(LedgerUnusable), self.change() as change:
                change.mark_time()

    def close(self) -> None:
        """Save the counts of refusals and own time, if the disk allows it."""
        self.save_refusals()
        self.mark_time()


def _policy(accept: Policy | None, known: StoredEnrolment | None, terms: Terms) -> Policy:
    """Return what the application agrees to from now on; floors that it does not give stay.

    They are those of the window under which the device first enrolled at this level.
    """
    if known is None:
        return (accept or Policy()).within(terms)
    if known.terms.level != terms.level:
        old = known.terms if known.terms.has_level(terms.level) else terms
        before = replace(known.policy, longest_window=None).within(old.at_level(terms.level))
    else:
        before = known.policy.within(known.terms)
    if accept is None:
        return before
    longest = accept.longest_window or before.longest_window
    least = accept.least_epsilon_nano or before.least_epsilon_nano
    return replace(accept, longest_window=longest, least_epsilon_nano=least)


def _goes_over(old: Terms, new: Terms, offered: Terms) -> bool:
    """Return whether `old` must go: the offer follows `new`, or only `new` has its level."""
    if offered.succeeds is not None and offered.succeeds.pin == new.pin:
        return True
    return offered.pin == new.pin and not old.has_level(offered.level)


def _following(known: StoredEnrolment, old: Terms, offered: StoredEnrolment) -> Terms | None:
    """Return the terms that will follow `old`, those of the enrolment at the level chosen now.

    They are held against what the person has now, at that level: terms that were accepted at
    another one are dropped if they loosen this one, and terms that are offered are refused.
    """
    accepted, policies = known.successor, [offered.policy]
    new = accepted if offered.terms.pin == old.pin else offered.terms
    if new is None:
        return None
    if accepted is not None and offered.terms.pin == accepted.pin:
        policies.append(known.policy)  # they may be in force: what was agreed to stays so
    if objection(old, new) is None and any(one.agrees(old, new) for one in policies):
        return new
    if new is offered.terms:
        raise TermsRefused(Problem.TERMS_DIFFER, given=new.pin, expected=old.pin)
    return None


def _size(promise: Promise | None) -> tuple[int, int] | None:
    return None if promise is None else (promise.epsilon_nano, promise.span)


def _implies(new: Promise | None, old: Promise) -> bool:
    """Return whether keeping the new promise implies keeping the old one."""
    return new is not None and new.epsilon_nano <= old.epsilon_nano and new.span >= old.span


def _too_small(limit: Promise, needed: int) -> Mistake:
    return Mistake(Problem.LIMIT_TOO_SMALL, limit=limit.epsilon_nano, needed=needed)
