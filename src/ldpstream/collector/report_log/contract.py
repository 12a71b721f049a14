"""What a report log promises. The log is the truth; all that is counted can be counted again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ldpstream.collector.report_log.messages import LoggedRound, Message
from ldpstream.collector.reports.records import Records


@dataclass(frozen=True)
class LogSettings:
    """Where a log is, and how it is kept. Shown without its password.

    >>> print(LogSettings("nats://me:secret@log.example:4222"))
    nats://log.example:4222
    """

    url: str
    retention_hours: float = 24.0
    """How long messages stay, for a recount."""
    replicas: int = 1
    """Servers that hold each message. More than one needs a cluster."""
    patience_seconds: float = 10.0
    """How long a call tries before it gives up."""

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    __repr__ = __str__


@dataclass(frozen=True)
class Entry:
    """A message and its place. Sequences grow by one, from 1."""

    sequence: int
    message: Message


@dataclass(frozen=True)
class Appended:
    """Where the next `number` records of an append stand."""

    sequence: int
    number: int


@dataclass(frozen=True)
class Extent:
    """What a stream's log holds now: messages `first` to `last`, none if last < first."""

    first: int
    last: int
    bytes: int

    @property
    def message_bytes(self) -> int:
        """The mean length of a message, at least 1."""
        return max(1, self.bytes // max(1, self.last - self.first + 1))


class ReportLog(ABC):
    """A log for each stream. Calls may come from several threads."""

    @abstractmethod
    def append(self, wanted: LoggedRound, records: Records) -> Sequence[Appended]:
        """Records of a round; they are durable when this returns, and stand in one order for all.

        A try whose answer got lost is made again without appending twice, as long as the process
        lives.
        """

    @abstractmethod
    def end(self, wanted: LoggedRound) -> int:
        """Say that a round takes no more; where that stands, the same when said again."""

    @abstractmethod
    def ended(self, stream: str, round_name: str) -> int | None:
        """Where the round's end stands; None: whatever was appended before this call counts."""

    @abstractmethod
    def ends(self, stream: str, after: int) -> dict[str, int]:
        """The ends of rounds that stand behind `after`, by name."""

    @abstractmethod
    def last_end(self, stream: str) -> int:
        """Where the latest end of any round stands; 0 if there is none."""

    @abstractmethod
    def extent(self, stream: str) -> Extent:
        """What the log holds now."""

    @abstractmethod
    def read(self, stream: str, after: int, last: int) -> Iterator[Entry]:
        """The messages with `after` < sequence <= `last`, in order; expired ones are left out."""

    @abstractmethod
    def close(self) -> None:
        """Let go; nothing is called afterwards."""
