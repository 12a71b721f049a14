"""The messages of a report log: batches of records of one round, and ends of rounds.

A message has all that is needed to count it, so that a round can be counted again from the log
alone. Layout: version, kind, length of the header (2 bytes), header (JSON), packed records.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import lru_cache

from ldpstream.collector.reports.halves import Half, tagged
from ldpstream.collector.reports.records import Records
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.limits import HEAD_BYTES

VERSION = 1
_FRAME = struct.Struct("<BBH")


class MessageKind(IntEnum):
    """The kinds of messages."""

    REPORTS = 0
    END = 1
    """The end of the round: reports after it do not count."""


@dataclass(frozen=True)
class LoggedRound:
    """The round of a message, and what is needed to decode its reports.

    >>> wanted = LoggedRound("regions", "7-publication", "grr", 3, 10**9, 2)
    >>> LoggedRound.of(wanted.packed) == wanted, wanted.counters
    (True, 3)
    """

    stream: str
    name: str
    oracle: str
    size: int
    """How many values a device may hold."""
    epsilon_nano: int
    report_bytes: int
    tags: int = 0
    """How many parts of the fleet reports tell apart; 0: they have no tag."""

    @property
    def packed(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def of(cls, packed: bytes) -> LoggedRound:
        return cls(**json.loads(packed))

    @property
    def record_bytes(self) -> int:
        return HEAD_BYTES + self.report_bytes

    def collector(self) -> Half:
        return _collector(self.oracle, self.size, self.epsilon_nano, self.tags)

    @property
    def counters(self) -> int:
        """How many counts its support has."""
        return self.collector().counters


@lru_cache(maxsize=1024)
def _collector(oracle: str, size: int, epsilon_nano: int, tags: int) -> Half:
    kind = Numeric if oracle in tuple(Numeric) else Oracle
    return tagged(kind.named(oracle).collector(size, Epsilon(epsilon_nano)), tags)


@dataclass(frozen=True)
class Message:
    """One message, as it is read back.

    >>> wanted = LoggedRound("regions", "7-publication", "grr", 3, 10**9, 2)
    >>> Message.of(Message(MessageKind.END, wanted.packed, b"").packed).round.name
    '7-publication'
    """

    kind: MessageKind
    header: bytes
    """The round, packed. Equal bytes are equal rounds, so that parsed headers are cached."""
    records_packed: bytes

    @property
    def packed(self) -> bytes:
        frame = _FRAME.pack(VERSION, self.kind, len(self.header))
        return b"".join((frame, self.header, self.records_packed))

    @classmethod
    def of(cls, packed: bytes) -> Message:
        version, kind, length = _FRAME.unpack_from(packed)
        if version != VERSION:
            raise ValueError(f"a message of the log has version {version}, not {VERSION}")
        start = _FRAME.size + length
        return cls(MessageKind(kind), packed[_FRAME.size : start], packed[start:])

    @property
    def round(self) -> LoggedRound:
        return read_header(self.header)

    @property
    def records(self) -> Records:
        return Records.of(self.records_packed, self.round.report_bytes)


@lru_cache(maxsize=1024)
def read_header(packed: bytes) -> LoggedRound:
    return LoggedRound.of(packed)


def frame_bytes(header: bytes) -> int:
    """The length of a message without its records."""
    return _FRAME.size + len(header)
