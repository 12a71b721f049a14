"""The contract of a report log: the source of truth, from which everything can be recounted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ldpstream.collector.report_log.messages import LoggedRound, Message
from ldpstream.collector.reports.records import Records


@dataclass(frozen=True)
class LogSettings:
    """The address of a log, and how it is kept. Shown without its password.

    >>> print(LogSettings("nats://me:secret@log.example:4222"))
    nats://log.example:4222
    """

    url: str
    retention_hours: float = 24.0
    """How long messages are kept, for a recount."""
    replicas: int = 1
    """Servers that hold each message. More than one needs a cluster."""
    patience_seconds: float = 10.0
    """How long a call tries before it gives up."""

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    __repr__ = __str__


@dataclass(frozen=True)
class LogEntry:
    """A message and its sequence number. These grow by one, from 1."""

    sequence: int
    message: Message


@dataclass(frozen=True)
class Appended:
    """The sequence number of the message with the next `number` records of an append."""

    sequence: int
    number: int


@dataclass(frozen=True)
class LogExtent:
    """The messages that a stream's log holds now: `first` to `last`, none if last < first."""

    first: int
    last: int
    bytes: int

    @property
    def message_bytes(self) -> int:
        """The mean length of a message, at least 1."""
        return max(1, self.bytes // max(1, self.last - self.first + 1))


class ReportLog(ABC):
    """A log of reports for each stream. Thread-safe. Positions in it are sequence numbers."""

    @abstractmethod
    def append(self, wanted: LoggedRound, records: Records) -> Sequence[Appended]:
        """Append records of a round; when this returns they are durable, in one order for all.

        An attempt whose answer was lost is retried without appending twice, as long as the process
        lives.
        """

    @abstractmethod
    def end(self, wanted: LoggedRound) -> int:
        """Append the end of a round, which takes no more; return its position. Idempotent."""

    @abstractmethod
    def ended(self, stream: str, round_name: str) -> int | None:
        """The position of the round's end, or None if all appended before this call counts."""

    @abstractmethod
    def ends(self, stream: str, after: int) -> dict[str, int]:
        """The positions of the ends of rounds after `after`, by name of the round."""

    @abstractmethod
    def last_end(self, stream: str) -> int:
        """The position of the latest end of any round; 0 if there is none."""

    @abstractmethod
    def extent(self, stream: str) -> LogExtent:
        """The messages that the log holds now."""

    @abstractmethod
    def read(self, stream: str, after: int, last: int) -> Iterator[LogEntry]:
        """The messages with `after` < sequence <= `last`, in order; expired ones are left out."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; no call may follow."""
