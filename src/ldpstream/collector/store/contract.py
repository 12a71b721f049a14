"""The contract of a store. `tests/collector/store_contract.py` holds every implementation to it.

Each call that changes something is atomic, and returns when the change is durable. All calls are
thread-safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes
from ldpstream.collector.clock import ticks
from ldpstream.collector.kernels.device_table import ABSENT, DeviceTable
from ldpstream.collector.reports.halves import Half
from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import Verdicts
from ldpstream.collector.store.admin_tables import AdminTables
from ldpstream.collector.store.chain import Chain, ChainCheck, ChainRow, Progress, ignore
from ldpstream.collector.store.content import StoredContent, stored_text
from ldpstream.errors import Mistake, Problem
from ldpstream.oracles.collector_half import See, Support
from ldpstream.protocol.strata import version_in

Given = ParamSpec("Given")
Result = TypeVar("Result")
SomeStore = TypeVar("SomeStore", bound="Store")

Observer = Callable[[str, str, float | None], None]
"""Called with a stream, the name of a change and the seconds it took, or None if it failed."""
Change = Callable[[dict[str, Any] | None], dict[str, Any]]
"""Returns the new content of a note, given the old one (None if there is none)."""


Places = NDArray[np.int64]
"""Places of devices on a roster, from 0, in ascending order."""
Rests = NDArray[np.int64]
"""Devices that rest, one in each row: place, asks in a row without an answer, until which t."""
EVER = (1 << 63) - 1
"""More than any timestamp, and what both stores still hold."""
NO_RESTS: Rests = np.zeros((0, 3), np.int64)


class RoundState(StrEnum):
    """The states of a round, in order: it takes reports, takes no more, and is counted."""

    OPEN = "open"
    CLOSED = "closed"
    TALLIED = "tallied"


@dataclass(frozen=True)
class NewRound:
    """A round as it is announced."""

    t: int
    name: str
    purpose: str
    epsilon_nano: int
    users: int
    """How many users the mechanism asked for; with levels of privacy, how many of this one."""
    rate: tuple[int, int]
    report_bytes: int
    opened_ms: int
    deadline_ms: int
    roster_size: int
    """How many devices were enrolled when it was opened; 0 without a roster."""
    asked: bytes | None
    """Numbers of the devices asked, as little-endian uint32, or None for all of `roster_size`."""


@dataclass(frozen=True)
class StoredRound(NewRound):
    """A round as it is stored."""

    state: RoundState
    support: Support | None
    """The counts, once the round is tallied."""
    closed_ms: int | None


@dataclass(frozen=True)
class TalliedRounds:
    """The counts of many rounds, as columns, in the order in which they were opened.

    It is for those who read thousands: an object for each round takes several times as long.
    """

    COLUMNS: ClassVar[str] = "t, name, epsilon_nano, counts, reports"
    times: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    epsilons_nano: tuple[int, ...] = ()
    counts: tuple[bytes, ...] = ()
    """As they are stored: eight bytes each, little-endian."""
    reports: tuple[int, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, ...]]) -> TalliedRounds:
        """Return the rounds in rows of `COLUMNS`."""
        return cls(*zip(*rows, strict=True))


@dataclass(frozen=True)
class StoredRelease:
    """A timestamp's release as it is stored, and shown."""

    t: int
    at_ms: int
    content: dict[str, Any] | StoredContent
    """What the mechanism released: values, variance, fresh, ..."""
    asked: int
    received: int
    missed: bool
    """Whether the collector was away, so that nobody was asked and the last release is repeated."""

    @property
    def kind(self) -> str:
        """How the release came about: "fresh", "carried" or "missed"."""
        if self.missed:
            return "missed"
        return "fresh" if self.content["fresh"] else "carried"

    @property
    def terms_version(self) -> int:
        """The version of the terms that it was released under."""
        return int(self.content.get("terms_version", 1))

    @cached_property
    def line(self) -> str:
        """JSON on one line; written once for all who listen."""
        head, text = f'{{"t":{self.t},', self._text
        if not text.startswith(head):
            return stored_text(self.to_json())
        content, missed = text[len(head) : -1], "true" if self.missed else "false"
        counted = f'"asked":{self.asked},"received":{self.received},"missed":{missed}'
        return f'{head}"at_ms":{self.at_ms},{content},{counted}}}'

    @property
    def row(self) -> ChainRow:
        """What is stored of it, and chained."""
        content = self._text.encode()
        return ChainRow(self.t, self.at_ms, content, self.asked, self.received, self.missed)

    @property
    def _text(self) -> str:
        """The content as it is stored."""
        content = self.content
        return content.text if isinstance(content, StoredContent) else stored_text(content)

    def beside(self, more: dict[str, Any]) -> StoredRelease:
        """Return the release with more beside what it says, under names of its own."""
        content = self.content
        both = content.beside(more) if isinstance(content, StoredContent) else content | more
        return StoredRelease(self.t, self.at_ms, both, self.asked, self.received, self.missed)

    def to_json(self) -> dict[str, Any]:
        return {
            "t": self.t,
            "at_ms": self.at_ms,
            **{name: value for name, value in self.content.items() if name != "t"},
            "asked": self.asked,
            "received": self.received,
            "missed": self.missed,
        }


@dataclass(frozen=True)
class ReleaseSummary:
    """What is kept of the releases of an hour or a day that were pruned."""

    first_t: int
    last_t: int
    start_ms: int
    """When the hour or day begins."""
    period_ms: int
    content: dict[str, Any]

    @property
    def terms_version(self) -> int:
        """The version of the terms that these releases were made under."""
        return int(self.content.get("terms_version", 1))

    def to_json(self) -> dict[str, Any]:
        numbers = {name: value for name, value in vars(self).items() if name != "content"}
        return numbers | self.content


@dataclass(frozen=True)
class StoredStream:
    """A stream as it is stored."""

    terms: dict[str, Any]
    """The first ones."""
    serial: int
    """Grows whenever the set of open rounds changes; long polls of devices wait for that."""
    last_t: int
    """The last timestamp released; 0 before the first."""
    mechanism: dict[str, Any] | None
    """The mechanism's state after `last_t`."""
    successors: tuple[dict[str, Any], ...] = ()
    """The terms that followed the first ones, in order."""

    @property
    def versions(self) -> tuple[dict[str, Any], ...]:
        """The terms of all versions, the first ones first."""
        return (self.terms, *self.successors)


@dataclass(frozen=True)
class Lease:
    """A lease on one stream: the right to lead it until the lease expires."""

    stream: str
    holder: str
    token: int
    """The fencing token: greater for each new holder. A change with a smaller one is refused."""


@dataclass(frozen=True)
class EngineProgress:
    """How far an engine has come with the reports of a stream, outside of this process."""

    waiting: int
    """Messages of rounds that are over, which are not counted yet."""
    alive: bool
    """Whether one has shown itself of late."""


@dataclass(frozen=True)
class Pulse:
    """What shows that a collector has done something with a stream."""

    serial: int
    last_t: int
    free: bool = False
    """Whether nobody holds its lease."""


def observed(
    change: Callable[Concatenate[SomeStore, str, Given], Result],
) -> Callable[Concatenate[SomeStore, str, Given], Result]:
    """Tell the store's observer of each call: how long the change took, or that it failed."""

    @wraps(change)
    def call(store: SomeStore, stream: str, /, *given: Given.args, **named: Given.kwargs) -> Result:
        began = ticks()
        try:
            result = change(store, stream, *given, **named)
        except Exception:
            store.observer(stream, change.__name__, None)
            raise
        store.observer(stream, change.__name__, ticks() - began)
        return result

    return call


def _counting(records: Records, version: int, counted: DeviceTable) -> Records:
    """Return the records of devices that no other version counts, and note that this one does.

    To count a round again changes nothing: its tally may have failed.
    """
    before = counted.add(records.devices, np.full(len(records), version, np.uint64))
    return records.where((before == ABSENT) | (before == version))


class Store(ABC):
    """The durable state of all streams of a collector."""

    observer: Observer = staticmethod(lambda stream, change, seconds: None)
    """Is told of every change; the methods that make one are decorated with `observed`."""

    shared = False
    """Whether several collectors may use it at once."""

    at_once = 256
    """How many changes at a time it is good for: those that wait are committed together."""

    admin: AdminTables
    """What administrators change: master secrets, enrolment tokens, the deny list, their log."""

    def engine(self, stream: str) -> EngineProgress | None:
        """Return the progress of an engine with a stream, or None if the store itself counts."""
        return None

    def trouble(self) -> str | None:
        """Return why changes that are stored now would be lost, or None if they would not."""
        return None

    # Leases. In a store that only one process can open, that process holds all of them.

    def lease(self, stream: str, holder: str, seconds: float) -> Lease | None:
        """Take or renew the lease of an existing stream; return None if another holds it."""
        return Lease(stream, holder, 1)

    def renew(self, leases: Sequence[Lease], seconds: float) -> set[Lease]:
        """Renew leases of one holder, all at once; return those that nobody else has taken."""
        return set(leases)

    def give_back(self, lease: Lease) -> None:  # noqa: B027 - nothing to do unless shared
        """Release a lease before it expires, so that another collector can take it at once."""

    def under(self, lease: Lease) -> Store:
        """Return the store for the holder of the lease, whose token fences every change.

        In a shared store, rounds, tallies, releases and notes can be changed in no other way. Such
        a change is refused (LEASE_LOST) once another collector has taken the lease.
        """
        return self

    def clock_ms(self) -> int | None:
        """The time by a clock that all who use the store share, or None if there is none."""
        return None

    def pulse(self, stream: str) -> tuple[int, int]:
        """The stream's serial and last timestamp: a cheap check for changes by other collectors."""
        known = self.stream(stream)
        return (0, 0) if known is None else (known.serial, known.last_t)

    def pulses(self) -> dict[str, Pulse]:
        """The pulses of all streams of a shared store at one moment, with one query."""
        return {}

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all streams that were ever created, in order."""

    @abstractmethod
    def stream(self, name: str) -> StoredStream | None:
        """The stream of that name, or None if it was never created."""

    @abstractmethod
    def create_stream(self, name: str, terms: dict[str, Any]) -> StoredStream:
        """Create a stream, with terms that never change."""

    @abstractmethod
    def succeed(self, stream: str, terms: dict[str, Any]) -> int:
        """Add terms that follow the latest ones of a stream; return the stream's new serial.

        Any collector may do so, without a lease; it fails if that version is there already.
        """

    @abstractmethod
    def versions(self, stream: str) -> list[dict[str, Any]]:
        """The terms of all versions of a stream, the first ones first; none if it is unknown."""

    @abstractmethod
    def enrol(self, stream: str, device: bytes) -> int:
        """Add a device to the roster and return its number, from 0. Idempotent."""

    @abstractmethod
    def roster(self, stream: str, first: int = 0) -> bytes:
        """The devices from number `first` on, 16 bytes each; those that have left among them."""

    @abstractmethod
    def leave(self, stream: str, device: bytes) -> None:
        """Note that a device has left; it keeps its number. Idempotent, also for an unknown one."""

    @abstractmethod
    def left(self, stream: str) -> Places:
        """The numbers of the devices that have left."""

    @abstractmethod
    def enrolled(self, stream: str) -> int:
        """Return how many devices have enrolled and not left."""

    @abstractmethod
    def rests(self, stream: str) -> Rests:
        """The devices that have not answered when they were asked last."""

    @abstractmethod
    def open_round(self, stream: str, *new: NewRound) -> int:
        """Add rounds that take reports from now on, all or none; return the stream's new serial.

        There are several if the devices of a stream report under different terms.
        """

    @abstractmethod
    def accept(self, stream: str, round_name: str, records: Records) -> Verdicts:
        """Store authentic records; say of each: accepted, repeated, in conflict, or too late."""

    @abstractmethod
    def received(self, stream: str, round_name: str) -> int:
        """Return how many reports an open round has taken in."""

    @abstractmethod
    def close_round(self, stream: str, round_name: str, at_ms: int) -> int:
        """Take no more reports; return the stream's serial after it. Idempotent."""

    @abstractmethod
    def reports(self, stream: str, round_name: str) -> Iterator[Records]:
        """The records of a round that is closed and not yet tallied, in parts."""

    def answered(self, stream: str, round_name: str) -> Iterator[Bytes] | None:
        """The devices that have reported in a closed round, in parts, or None if unknown."""
        return (records.devices for records in self.reports(stream, round_name))

    def count(
        self,
        stream: str,
        round_name: str,
        collector: Half,
        see: See | None = None,
        counted: DeviceTable | None = None,
    ) -> Support | None:
        """The support of a closed round, or None while an engine is still counting it.

        If the store itself has the reports, `see` is called with them. Devices in `counted` do not
        count, and those that do are added: no device speaks twice under two versions of the terms.
        """
        waiting = self.reports(stream, round_name)
        if counted is not None:
            version = version_in(round_name)
            waiting = (_counting(records, version, counted) for records in waiting)
        return collector.count((records.reports for records in waiting), see)

    @abstractmethod
    def tally(self, stream: str, supports: Mapping[str, Support], rests: Rests = NO_RESTS) -> None:
        """Store the counts of closed rounds by name, and who rests; delete all of their reports.

        Rounds of one ask are stored at once: who was counted in one of them is known only as long
        as its reports are there.
        """

    @abstractmethod
    def release(
        self,
        stream: str,
        releases: Sequence[StoredRelease],
        mechanism: dict[str, Any],
        forget_t: int,
    ) -> None:
        """Add releases, in order of t, and the mechanism's state after the last of them.

        Which devices were asked at or before `forget_t` is deleted. A release never changes.
        """

    @abstractmethod
    def check_releases(self, stream: str, progress: Progress = ignore) -> ChainCheck:
        """Follow the chain of a stream's releases (`chain.py`), and say where it first breaks.

        EVERY in place of a stream: whether the streams are those that were created.
        """

    @abstractmethod
    def accept_releases(self, stream: str) -> None:
        """Chain the releases of a stream (or EVERY) as they are now, whatever was done to them."""

    @abstractmethod
    def prune(
        self,
        stream: str,
        before_t: int,
        added: Sequence[ReleaseSummary] = (),
        gone: Sequence[int] = (),
    ) -> None:
        """Remove the releases before `before_t`, but never the last; the chain still holds.

        With them go their rounds, so that `before_t` must lie a window before the last release.
        Summaries may be added in their place, and those that begin with the t of `gone` removed.
        """

    @abstractmethod
    def summaries(self, stream: str, since_ms: int = 0, limit: int = EVER) -> list[ReleaseSummary]:
        """At most `limit` summaries of pruned releases that begin at or after a time, in order."""

    @abstractmethod
    def rounds(self, stream: str, after_t: int, until_t: int = EVER) -> list[StoredRound]:
        """The rounds of timestamps after `after_t`, up to `until_t`, in the order of opening."""

    @abstractmethod
    def tallied(self, stream: str, after_t: int, until_t: int) -> TalliedRounds:
        """The counts of those rounds of these timestamps that are tallied."""

    @abstractmethod
    def releases(self, stream: str, since: int, limit: int) -> list[StoredRelease]:
        """At most `limit` releases with t >= since, in order of t."""

    @abstractmethod
    def note(self, stream: str, name: str) -> dict[str, Any] | None:
        """The content that was last written under that name, or None."""

    @abstractmethod
    def write_note(self, stream: str, name: str, content: dict[str, Any]) -> None:
        """Replace the note of that name by `content`."""

    @abstractmethod
    def change_setting(self, stream: str, name: str, change: Change) -> dict[str, Any]:
        """Change a note that holds a setting; any collector may do so, without a lease.

        Return the new content. The change is atomic. `change` may be called more than once; if it
        raises, nothing is changed.
        """

    @abstractmethod
    def close(self) -> None:
        """Finish the calls under way and close the store; no call may follow."""


class Archive(ABC):
    """The releases in a store, for reading beside a collector that may be running."""

    @abstractmethod
    def terms(self) -> dict[str, dict[str, Any]]:
        """The first terms of each stream."""

    @abstractmethod
    def versions(self, stream: str) -> list[dict[str, Any]]:
        """The terms of all versions of a stream, the first ones first; none if it is unknown."""

    @abstractmethod
    def stream(self, name: str) -> StoredStream | None:
        """A stream as it is stored; None if it is unknown."""

    @abstractmethod
    def note(self, stream: str, name: str) -> dict[str, Any] | None:
        """The content that was last written under that name, or None."""

    @abstractmethod
    def releases(self, stream: str, since: int, limit: int = EVER) -> list[StoredRelease]:
        """At most `limit` releases with t >= since, in order of t."""

    @abstractmethod
    def rounds(self, stream: str, after_t: int, until_t: int = EVER) -> list[StoredRound]:
        """The rounds of timestamps after `after_t`, up to `until_t`, in the order of opening."""

    @abstractmethod
    def tallied(self, stream: str, after_t: int, until_t: int) -> TalliedRounds:
        """The counts of those rounds of these timestamps that are tallied."""

    @abstractmethod
    def chain(self, master: bytes) -> Chain | None:
        """Return what checks the chains of the store; None if an earlier version has written it."""

    @abstractmethod
    def check_releases(self, chain: Chain, stream: str, progress: Progress = ignore) -> ChainCheck:
        """Follow the chain of a stream's releases, and say where it first breaks."""

    @abstractmethod
    def check_log(self, chain: Chain) -> ChainCheck:
        """Follow the chain of the admin log, and say where it first breaks."""

    def known_versions(self, stream: str) -> list[dict[str, Any]]:
        """Return the terms of all versions of a stream; an unknown stream is a mistake."""
        versions = self.versions(stream)
        if not versions:
            known = ", ".join(self.terms())
            raise Mistake(Problem.SOURCE_UNKNOWN, given=stream, known=known)
        return versions
