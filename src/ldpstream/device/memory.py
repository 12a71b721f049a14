"""The content of a device's file, as values: enrolments, debits, promises, forgotten moments.

Debits, promises and forgotten moments have a *scope*: the enrolments that they count for, by id.
While a stream is enrolled that is the stream itself. When it is left, they count for every
enrolment that is made later, whatever its name, and for no other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from ldpstream.device.clock import OwnTime
from ldpstream.privacy.ledger import Ledger, Promise, Reserve
from ldpstream.protocol.succession import Acceptance, Policy
from ldpstream.protocol.terms import Terms, TermsRefused

LEFT = "left"
"""In place of the name of a round: a debit of a stream that was left."""
LIMIT_ID = 0
"""In place of the id of an enrolment: the limit over all streams."""
LAST_ID = (1 << 62) - 1


@dataclass(frozen=True)
class Scope:
    """The enrolments with an id from `first_id` to `last_id`."""

    first_id: int
    last_id: int

    @classmethod
    def of(cls, enrolment_id: int) -> Scope:
        return cls(enrolment_id, enrolment_id)

    def __contains__(self, enrolment_id: int) -> bool:
        return self.first_id <= enrolment_id <= self.last_id

    def overlaps(self, other: Scope) -> bool:
        return self.first_id <= other.last_id and other.first_id <= self.last_id


EVERYONE = Scope(1, LAST_ID)
LIMIT = Scope.of(LIMIT_ID)


@dataclass(frozen=True)
class LedgerEntry:
    """A debit with its report; without one if the past is unknown, or the stream was left."""

    t: int
    round: str
    nano: int
    report: bytes | None
    own_ms: int
    at_ms: int
    first_id: int = EVERYONE.first_id
    last_id: int = EVERYONE.last_id

    @property
    def key(self) -> tuple[int, str]:
        """The identity of the round, by which it is recognised when it is asked again."""
        return self.t, self.round

    @property
    def unknown(self) -> bool:
        """Whether it stands for a past that is unknown, and counts as spent."""
        return not self.round

    @cached_property
    def scope(self) -> Scope:
        return Scope(self.first_id, self.last_id)


COLUMNS = ", ".join(LedgerEntry.__dataclass_fields__)


@dataclass(frozen=True)
class StoredPromise(Promise):
    """A promise in the file: the limit, or one that has ended."""

    scope: Scope = EVERYONE
    since: int = 0
    """Own time from which it was kept."""


@dataclass(frozen=True)
class Forgotten:
    """The newest own time whose debits are not known, or not any more."""

    own_ms: int
    scope: Scope


@dataclass(frozen=True)
class Pin:
    """Terms that enrolments of this scope may have, and no others: a pin has one epsilon."""

    pin: str
    scope: Scope


def lineage(terms: Terms) -> set[str]:
    """Return the pins of terms and of those that they follow."""
    return {terms.pin} | ({terms.succeeds.pin} if terms.succeeds is not None else set())


class TermsInForce:
    """The terms of a stream, and those that follow them, as a device knows them."""

    terms: Terms
    successor: Terms | None

    @property
    def all_terms(self) -> tuple[Terms, ...]:
        return (self.terms,) if self.successor is None else (self.terms, self.successor)

    def terms_at(self, t: int) -> Terms:
        """Return the terms under which this device reports for timestamp t."""
        following = self.successor
        if following is None or following.succeeds is None or t < following.succeeds.from_t:
            return self.terms
        return following


@dataclass(frozen=True)
class StoredEnrolment(TermsInForce):
    """The agreement between a collector and this device."""

    url: str
    terms: Terms
    """The terms in force, at the level that the person has chosen."""
    number: bytes
    """The device's number in this stream."""
    key: bytes = field(repr=False)
    slot_key: bytes = field(repr=False)
    secret: bytes = field(repr=False)
    """Of this stream's coins and of the number; it never leaves the device."""
    rejoins: int
    at_ms: int
    id: int = 0
    successor: Terms | None = None
    """Terms that were accepted, for timestamps from their start on.

    Those of before are kept beside them until the next ones are accepted: label time says which of
    both apply, and it may have been wrong when the first report under the successor was made."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """What labels of earlier terms are called in those in force."""
    policy: Policy = field(default_factory=Policy)
    reserve_nano: int = 0
    """How much of the limit is kept free for this stream."""
    reserved_ms: int = 0
    other_keys: tuple[bytes, bytes] | None = field(default=None, repr=False)
    """Key and slot key of before or after a renewal, until it is known which ones are valid."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What stays the same while keys are renewed and successors come."""
        return self.id, self.url, self.number, self.terms.level

    @cached_property
    def scope(self) -> Scope:
        return Scope.of(self.id)

    def renamed_at(self, t: int) -> Mapping[str, str]:
        """Return the names that labels of earlier terms have under the terms of timestamp t."""
        return self.gone_over.renamed if self.terms_at(t) is self.successor else self.renamed

    @property
    def gone_over(self) -> StoredEnrolment:
        """The same enrolment with the successor's terms alone."""
        following, before = self.successor, self.terms.domain
        assert following is not None
        assert following.succeeds is not None
        if before is None or following.succeeds.labels is None:
            return replace(self, terms=following, successor=None)
        called = dict(zip(before.labels, following.succeeds.labels, strict=True))
        names = {old: called.get(new, new) for old, new in self.renamed.items()} | called
        kept = set(following.names)  # a label that the new terms have keeps its own name
        renamed = {old: new for old, new in names.items() if old not in kept}
        return replace(self, terms=following, successor=None, renamed=renamed)


@dataclass(frozen=True)
class RefusalCount:
    """How often something was refused, and the text of the last refusal."""

    code: str
    times: int
    last_ms: int
    detail: str
    enrolment: int = 0


@dataclass(frozen=True)
class LedgerContent:
    """The whole content of the file."""

    secret: bytes = field(repr=False)
    rejoins: int
    """How often the device has left a stream."""
    past_known: bool
    """Whether a new enrolment need not count as spent: no debits are missing."""
    own: OwnTime
    enrolments: tuple[StoredEnrolment, ...]
    promises: tuple[StoredPromise, ...]
    """The limit over all streams, and what has ended of it and of streams' promises."""
    entries: tuple[LedgerEntry, ...]
    forgotten: tuple[Forgotten, ...]
    pins: tuple[Pin, ...]
    refusals: tuple[RefusalCount, ...]

    @property
    def next_id(self) -> int:
        """The id of the next enrolment: every one that was ever made is enrolled, or was left."""
        return self.rejoins + len(self.enrolments) + 1

    @property
    def future_enrolments(self) -> Scope:
        """The enrolments that are still to be made."""
        return Scope(self.next_id, LAST_ID)

    def enrolment(self, enrolment_id: int) -> StoredEnrolment | None:
        return self._by_id.get(enrolment_id)

    @cached_property
    def _by_id(self) -> dict[int, StoredEnrolment]:
        return {one.id: one for one in self.enrolments}

    def holder(self, terms: Terms, enrolment_id: int) -> Scope | None:
        """Return the scope of another enrolment with these terms, or with some before or after.

        All terms that were ever agreed to count, even if others have followed them.
        """
        pins = lineage(terms)
        held = (one.scope for one in self.pins if one.pin in pins)
        return next((scope for scope in held if enrolment_id not in scope), None)

    @property
    def limit(self) -> StoredPromise | None:
        """The limit over all streams that is in force."""
        return next((one for one in self.promises if one.until is None), None)

    @property
    def ended(self) -> tuple[StoredPromise, ...]:
        """The promises that have ended, of streams and of the limit."""
        return tuple(one for one in self.promises if one.until is not None)

    def ledger(self, enrolment: StoredEnrolment, terms: Terms | None = None) -> Ledger:
        """Return the ledger of one stream, under its terms or under those that follow them.

        The promise in force binds the first report under a successor too, which then ends it.
        """
        place = enrolment.id
        ended = (one for one in self.promises if place in one.scope)
        debits = ((one.own_ms, one.nano) for one in self.entries if place in one.scope)
        forgotten = (one.own_ms for one in self.forgotten if place in one.scope)
        in_force = {one.promise: None for one in (terms or enrolment.terms, enrolment.terms)}
        return Ledger.of((*in_force, *ended), debits, max(forgotten, default=None))

    def limit_ledger(self, asking: StoredEnrolment | None = None) -> Ledger | None:
        """Return the ledger of the limit, as it binds one stream; None if there is no limit.

        It sums over all streams, those that were left too, and keeps the others' reserves free.
        """
        promises = tuple(one for one in self.promises if LIMIT_ID in one.scope)
        if not promises:
            return None
        debits = ((one.own_ms, one.nano) for one in self.entries)
        reserves = tuple(
            Reserve(one.reserve_nano, self.debits_of(one), asks=one == asking)
            for one in self.enrolments
            if one.reserve_nano
        )
        forgotten = max((one.own_ms for one in self.forgotten), default=None)
        return Ledger.of(promises, debits, forgotten, reserves)

    def debits_of(self, enrolment: StoredEnrolment) -> tuple[tuple[int, int], ...]:
        """Return what this stream itself has spent, without what it inherited."""
        own = (one for one in self.entries if one.scope == enrolment.scope)
        return tuple((one.own_ms, one.nano) for one in own)

    def kept_for(self, scope: Scope) -> int:
        """Return how long debits of this scope are needed: the longest span that counts them."""
        spans = [one.span for one in self.promises if _counts(one.scope, scope)]
        for enrolment in self.enrolments:
            if enrolment.scope.overlaps(scope):
                spans += [terms.promise.span for terms in enrolment.all_terms]
        return max(spans, default=0)


def _counts(promise: Scope, debit: Scope) -> bool:
    return promise == LIMIT or promise.overlaps(debit)


@lru_cache(maxsize=256)  # terms may have 65,536 labels, and are read in every transaction
def read_terms(text: str, level: str = "") -> Terms:
    """Return stored terms, at a level; raise `ValueError` if they are damaged."""
    try:
        return Terms.read(json.loads(text)).at_level(level)
    except TermsRefused as error:
        raise ValueError(str(error)) from None


def policy_text(policy: Policy) -> str:
    """Return the form in which a policy is stored."""
    return json.dumps(
        {
            "accept": policy.accept.value,
            "pins": sorted(policy.pins),
            "least_epsilon_nano": policy.least_epsilon_nano,
            "longest_window": policy.longest_window,
        }
    )


@lru_cache(maxsize=256)
def read_renamed(text: str) -> Mapping[str, str]:
    """Return the stored names of labels; raise `ValueError` if they are damaged."""
    renamed = json.loads(text)
    if not isinstance(renamed, dict) or not all(isinstance(one, str) for one in renamed.values()):
        raise ValueError("has names of labels that cannot be read")
    return renamed


@lru_cache(maxsize=256)
def read_policy(text: str) -> Policy:
    """Return a stored policy; raise `ValueError` if it is damaged."""
    match json.loads(text):
        case {
            "accept": str(accept),
            "pins": list(pins),
            "least_epsilon_nano": int(least),
            "longest_window": int() | None as longest,
        }:
            return Policy(Acceptance(accept), frozenset(map(str, pins)), least, longest)
    raise ValueError("has a policy that cannot be read")
