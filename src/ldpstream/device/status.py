"""The status of a device, read from its file. Reading it spends nothing and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ldpstream.device.clock import ClockReading
from ldpstream.device.memory import (
    LIMIT,
    LedgerContent,
    LedgerEntry,
    RefusalCount,
    StoredEnrolment,
    StoredPromise,
)
from ldpstream.device.store import DeviceStore
from ldpstream.errors import Mistake, Problem
from ldpstream.machine_clock import MachineClock, SystemClock
from ldpstream.privacy.ledger import Budget
from ldpstream.protocol.terms import SelectionMethod, Terms

MAGIC = b"SQLite format 3\0"
"""How every file of a device begins."""


@dataclass(frozen=True)
class StreamStatus:
    """The state of one stream now."""

    id: int
    number: str
    """The device's number in the stream."""
    url: str
    terms: Terms
    """The terms in force, at the level of privacy that was chosen."""
    successor: Terms | None
    """Terms that were accepted and are not in force yet."""
    t: int
    """The current timestamp, by the wall clock."""
    left_nano: int
    """The nano-epsilon that may be spent now, by the stream's promise and by the limit."""
    full_in_ms: int | None
    """The own time until the whole epsilon can be spent, or None if the limit never allows it."""
    used_nano: int | None
    """What the stream has spent of the limit, in its span; None if there is no limit."""
    reserve_nano: int
    """What is kept free of the limit for this stream."""


@dataclass(frozen=True)
class LimitStatus:
    """The state of a limit over all streams now."""

    epsilon_nano: int
    span_ms: int
    used_nano: int
    """What all streams have spent in its span, those that were left too."""
    until_ms: int | None
    """When it ends to bind, by the wall clock, if a looser one has replaced it."""
    silences: tuple[str, ...]
    """The streams in which a report costs more than all of it."""


@dataclass(frozen=True)
class Status:
    """The state of a device now.

    >>> nothing = Status(streams=(), limit=None, earlier_limits=(), entries=(), refusals=())
    >>> nothing.left_nano is None
    True
    """

    streams: tuple[StreamStatus, ...]
    limit: LimitStatus | None
    earlier_limits: tuple[LimitStatus, ...]
    """Limits that were replaced or removed, and bind until their span has passed."""
    entries: tuple[LedgerEntry, ...]
    refusals: tuple[RefusalCount, ...]

    @property
    def terms(self) -> Terms | None:
        """The terms of the only stream; None if there is none."""
        return self._only.terms if self.streams else None

    @property
    def left_nano(self) -> int | None:
        """What may be spent now in the only stream; None if there is none."""
        return self._only.left_nano if self.streams else None

    @property
    def _only(self) -> StreamStatus:
        (only,) = self.streams
        return only


def read_status(path: Path, clock: MachineClock | None = None) -> Status:
    """Return the status of the device in this file.

    >>> read_status(Path("no-device.ldp"))
    Traceback (most recent call last):
    ldpstream.errors.Mistake: no-device.ldp: no such file; give a device's file
    """
    if not path.is_file():
        raise Mistake(Problem.DATA_FILE, file=path, what="no such file", fix="give a device's file")
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise Mistake(Problem.DATA_FILE, file=path, what="no device's file", fix="give one")
    memory, now = DeviceStore(path).load(), ClockReading.at(clock or SystemClock())
    own_ms = memory.own.resumed(now).own_ms
    streams = tuple(_stream(memory, one, own_ms, now.wall_ms) for one in memory.enrolments)
    limits = [_limit(memory, streams, one, own_ms, now.wall_ms) for one in _limits(memory, own_ms)]
    return Status(
        streams,
        next((one for one in limits if one.until_ms is None), None),
        tuple(one for one in limits if one.until_ms is not None),
        memory.entries,
        memory.refusals,
    )


def _stream(
    memory: LedgerContent, enrolment: StoredEnrolment, own_ms: int, wall_ms: int
) -> StreamStatus:
    t = enrolment.terms.timestamp_at(wall_ms)
    terms, limit = enrolment.terms_at(t), memory.limit_ledger(enrolment)
    own = memory.ledger(enrolment, terms)
    budget = Budget((own,) if limit is None else (own, limit))
    full_ms = budget.free_from(terms.epsilon_nano)
    in_force = memory.limit
    return StreamStatus(
        enrolment.id,
        enrolment.number.hex(),
        enrolment.url,
        terms,
        enrolment.successor if terms is enrolment.terms else None,
        t,
        budget.left(own_ms),
        None if full_ms is None else max(0, full_ms - own_ms),
        None if in_force is None else _spent(memory.debits_of(enrolment), own_ms - in_force.span),
        enrolment.reserve_nano,
    )


def _limits(memory: LedgerContent, own_ms: int) -> Iterator[StoredPromise]:
    """Yield the limits over all streams that bind now."""
    return (one for one in memory.promises if one.scope == LIMIT and one.binds(own_ms))


def _limit(
    memory: LedgerContent,
    streams: Sequence[StreamStatus],
    limit: StoredPromise,
    own_ms: int,
    wall_ms: int,
) -> LimitStatus:
    debits = tuple((one.own_ms, one.nano) for one in memory.entries)
    return LimitStatus(
        limit.epsilon_nano,
        limit.span,
        _spent(debits, own_ms - limit.span),
        None if limit.until is None else wall_ms + limit.until - own_ms,
        tuple(one.terms.stream for one in streams if _costs(one.terms) > limit.epsilon_nano),
    )


def _costs(terms: Terms) -> int:
    """Return the least that a report costs: with slots each costs all of epsilon."""
    return terms.epsilon_nano if terms.selection is SelectionMethod.SLOTS else 1


def _spent(debits: tuple[tuple[int, int], ...], begin_ms: int) -> int:
    return sum(nano for at, nano in debits if at > begin_ms)
