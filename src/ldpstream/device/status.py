"""What a device's file tells its owner. Reading it spends nothing and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ldpstream.device.clock import Clock, SystemClock
from ldpstream.device.store import Entry, Memory, RefusalCount, Store
from ldpstream.device.terms import Terms
from ldpstream.errors import Mistake, Problem
from ldpstream.privacy.ledger import Ledger


@dataclass(frozen=True)
class Status:
    """The state of a device, at a timestamp of its own clock."""

    number: str
    url: str | None
    terms: Terms | None
    t: int | None
    left_nano: int | None
    """What may still be spent at t."""
    full_at: int | None
    """The first timestamp from which on the whole epsilon can be spent again."""
    entries: tuple[Entry, ...]
    refusals: tuple[RefusalCount, ...]


def read_status(path: Path, clock: Clock | None = None) -> Status:
    """The status of the device in this file."""
    if not path.is_file():
        raise Mistake(Problem.DATA_FILE, file=path, what="no such file", fix="give a device's file")
    memory = Store(path).load()
    if memory.enrolment is None:
        return Status(memory.number.hex(), None, None, None, None, None, (), memory.refusals)
    return _enrolled(memory, memory.enrolment.terms, (clock or SystemClock()).wall_ms())


def _enrolled(memory: Memory, terms: Terms, wall_ms: int) -> Status:
    assert memory.enrolment is not None
    ledger = Ledger.of(
        terms.epsilon_nano, terms.window, ((entry.t, entry.nano) for entry in memory.entries)
    )
    t = terms.timestamp_at(wall_ms + memory.enrolment.offset_ms)
    full_at = max((entry.t + terms.window for entry in memory.entries), default=t)
    return Status(
        memory.number.hex(),
        memory.enrolment.url,
        terms,
        t,
        ledger.left(t),
        max(t, full_at),
        memory.entries,
        memory.refusals,
    )
