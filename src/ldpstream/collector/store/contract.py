"""What a store promises. `tests/collector/store_contract.py` holds every implementation to it.

Each call that changes something returns when the change is durable, and is all or nothing. Calls
may come from several threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ldpstream.collector.clock import ticks
from ldpstream.collector.reports.halves import Half
from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import Verdicts
from ldpstream.collector.store.chain import Chain, Checked, Progress, Row, ignore, stored_text
from ldpstream.errors import Mistake, Problem
from ldpstream.oracles.collector_half import See, Support
from ldpstream.protocol.terms import Terms

Given = ParamSpec("Given")
Result = TypeVar("Result")
SomeStore = TypeVar("SomeStore", bound="Store")

Observer = Callable[[str, str, float | None], None]
"""Called with a stream, the name of a change and the seconds it took; None: it failed."""
Change = Callable[[dict[str, Any] | None], dict[str, Any]]
"""What is to be kept, given what is kept so far."""


class RoundState(StrEnum):
    """A round takes reports, takes no more, and is counted."""

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
    """How many the mechanism asked for."""
    rate: tuple[int, int]
    report_bytes: int
    opened_ms: int
    deadline_ms: int
    roster_size: int
    """How many devices were enrolled then (0: no roster)."""
    asked: bytes | None
    """Numbers of the devices asked, four bytes each, little-endian; None: all of `roster_size`."""


@dataclass(frozen=True)
class Round(NewRound):
    """A round as it is stored."""

    state: RoundState
    support: Support | None
    """What was counted, once it is tallied."""
    closed_ms: int | None


@dataclass(frozen=True)
class Release:
    """A timestamp's release as it is stored, and shown."""

    t: int
    at_ms: int
    content: dict[str, Any]
    """What the mechanism released: values, variance, fresh, ..."""
    asked: int
    received: int
    missed: bool
    """The collector was away, so nobody was asked and the release before it carries on."""

    @property
    def kind(self) -> str:
        """Fresh, carried over, or missed."""
        if self.missed:
            return "missed"
        return "fresh" if self.content["fresh"] else "carried"

    @property
    def row(self) -> Row:
        """What is stored of it, and chained."""
        content = stored_text(self.content).encode()
        return Row(self.t, self.at_ms, content, self.asked, self.received, self.missed)

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
class Stream:
    """A stream as it is stored."""

    terms: dict[str, Any]
    serial: int
    """Grows whenever the rounds that are open change; devices wait for it."""
    last_t: int
    """The last timestamp released; 0 before the first."""
    mechanism: dict[str, Any] | None
    """The mechanism's state after `last_t`."""


@dataclass(frozen=True)
class Lease:
    """The right to lead a stream, for a while."""

    stream: str
    holder: str
    token: int
    """Greater for each new holder: what carries a smaller one is refused."""


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


class Store(ABC):
    """A place for streams."""

    observer: Observer = staticmethod(lambda stream, change, seconds: None)
    """Is told of every change; the methods that make one are decorated with `observed`."""

    shared = False
    """Whether several collectors may use it at once."""

    def trouble(self) -> str | None:
        """Say why nothing that is stored now would be found again; None if it would."""
        return None

    # Who leads a stream. A store that only one process can open has but one answer.

    def lease(self, stream: str, holder: str, seconds: float) -> Lease | None:
        """Take the lease of a stream that exists, or make it last longer; None: another has it."""
        return Lease(stream, holder, 1)

    def give_back(self, lease: Lease) -> None:  # noqa: B027 - nobody waits for it
        """Let another take the lease at once."""

    def under(self, lease: Lease) -> Store:
        """The store, for the coordinator that holds the lease.

        In a shared one, rounds, tallies, releases and notes are changed in no other way, and such
        a change is refused (LEASE_LOST) once another has taken the lease.
        """
        return self

    def pulse(self, stream: str) -> tuple[int, int]:
        """The stream's serial and last timestamp: whether others have changed something."""
        known = self.stream(stream)
        return (0, 0) if known is None else (known.serial, known.last_t)

    @abstractmethod
    def stream(self, name: str) -> Stream | None:
        """The stream of that name, if it was ever created."""

    @abstractmethod
    def create_stream(self, name: str, terms: dict[str, Any]) -> Stream:
        """A new stream, with terms that never change."""

    @abstractmethod
    def enrol(self, stream: str, device: bytes) -> int:
        """The device's number on the roster, from 0; the same when it enrols again."""

    @abstractmethod
    def roster(self, stream: str, first: int = 0) -> bytes:
        """The devices from number `first` on, 16 bytes each."""

    @abstractmethod
    def open_round(self, stream: str, new: NewRound) -> int:
        """Add a round that takes reports from now on; the serial after it."""

    @abstractmethod
    def accept(self, stream: str, round_name: str, records: Records) -> Verdicts:
        """Take in authentic records: accepted, repeated, in conflict, or too late."""

    @abstractmethod
    def received(self, stream: str, round_name: str) -> int:
        """How many reports an open round has taken in."""

    @abstractmethod
    def close_round(self, stream: str, round_name: str, at_ms: int) -> int:
        """Take in no more; the serial after it. Closing again changes nothing."""

    @abstractmethod
    def reports(self, stream: str, round_name: str) -> Iterator[Records]:
        """The records of a round that is closed and not yet tallied, in parts."""

    def count(
        self, stream: str, round_name: str, collector: Half, see: See | None = None
    ) -> Support | None:
        """The support of a round that is closed; None while an engine is still counting it.

        Where the store itself has the reports, `see` sees them.
        """
        waiting = self.reports(stream, round_name)
        return collector.count((records.reports for records in waiting), see)

    @abstractmethod
    def tally(self, stream: str, round_name: str, support: Support) -> None:
        """Counts in, reports out: of a round that is tallied no report is left."""

    @abstractmethod
    def release(
        self, stream: str, releases: Sequence[Release], mechanism: dict[str, Any], forget_t: int
    ) -> None:
        """Add releases, in order of t, and the mechanism's state after the last of them.

        Who was asked at or before `forget_t` is forgotten. What is released never changes.
        """

    @abstractmethod
    def check_releases(self, stream: str, progress: Progress = ignore) -> Checked:
        """Follow the chain of a stream's releases (`chain.py`), and say where it first breaks."""

    @abstractmethod
    def accept_releases(self, stream: str) -> None:
        """Chain the releases of a stream as they are now, whatever was done to them."""

    @abstractmethod
    def prune(self, stream: str, before_t: int) -> None:
        """Remove the releases of before `before_t`, but never the last; the chain still holds."""

    @abstractmethod
    def rounds(self, stream: str, after_t: int) -> list[Round]:
        """The rounds of timestamps after `after_t`, in the order in which they were opened."""

    @abstractmethod
    def releases(self, stream: str, since: int, limit: int) -> list[Release]:
        """At most `limit` releases with t >= since, in order of t."""

    @abstractmethod
    def note(self, stream: str, name: str) -> dict[str, Any] | None:
        """What a part of the collector has kept under that name."""

    @abstractmethod
    def write_note(self, stream: str, name: str, content: dict[str, Any]) -> None:
        """Keep `content` in place of what was kept before."""

    @abstractmethod
    def change_setting(self, stream: str, name: str, change: Change) -> dict[str, Any]:
        """Change a note of what somebody has set, which any collector may do at any time.

        Returns what is kept now. Nobody else changes it in between, and `change` may be called
        again; if it raises, nothing is changed.
        """

    @abstractmethod
    def close(self) -> None:
        """Finish what is under way; nothing is called afterwards."""


class Archive(ABC):
    """The releases in a store, for reading beside a collector that may be running."""

    @abstractmethod
    def terms(self) -> dict[str, dict[str, Any]]:
        """The terms of each stream."""

    @abstractmethod
    def releases(self, stream: str, since: int) -> list[Release]:
        """All releases with t >= since, in order of t."""

    @abstractmethod
    def chain(self, master: bytes) -> Chain | None:
        """What checks the chains of the store; None if an earlier version has written it."""

    @abstractmethod
    def check_releases(self, chain: Chain, stream: str, progress: Progress = ignore) -> Checked:
        """Follow the chain of a stream's releases, and say where it first breaks."""

    def labels(self, stream: str) -> list[str]:
        """The names of what is released of a stream, which must be there."""
        terms = self.terms()
        if stream not in terms:
            raise Mistake(Problem.STREAM_UNKNOWN, given=stream, known=", ".join(terms))
        return list(Terms.read(terms[stream]).names)
