"""The status of a device, read from its file. Reading it spends nothing and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ldpstream.device.account import ledger_of
from ldpstream.device.clock import Look
from ldpstream.device.store import Entry, Memory, RefusalCount, Store
from ldpstream.errors import Mistake, Problem
from ldpstream.machine_clock import MachineClock, SystemClock
from ldpstream.protocol.terms import Terms


@dataclass(frozen=True)
class Status:
    """The state of a device now."""

    number: str | None
    """The device's number in the stream; None if it takes part in none."""
    url: str | None
    terms: Terms | None
    t: int | None
    """The current timestamp, by the wall clock."""
    left_nano: int | None
    """The nano-epsilon that may be spent now."""
    full_in_ms: int | None
    """The own time until the whole epsilon can be spent."""
    entries: tuple[Entry, ...]
    refusals: tuple[RefusalCount, ...]


def read_status(path: Path, clock: MachineClock | None = None) -> Status:
    """Return the status of the device in this file."""
    if not path.is_file():
        raise Mistake(Problem.DATA_FILE, file=path, what="no such file", fix="give a device's file")
    memory = Store(path).load()
    if memory.enrolment is None:
        return Status(None, None, None, None, None, None, memory.entries, memory.refusals)
    return _enrolled(memory, memory.enrolment.terms, Look.at(clock or SystemClock()))


def _enrolled(memory: Memory, terms: Terms, now: Look) -> Status:
    assert memory.enrolment is not None
    ledger = ledger_of(memory)
    own_ms = memory.own.resumed(now).own_ms
    full_ms = ledger.free_from(terms.epsilon_nano)
    assert full_ms is not None, "a promise allows its whole epsilon"
    return Status(
        memory.enrolment.number.hex(),
        memory.enrolment.url,
        terms,
        terms.timestamp_at(now.wall_ms),
        ledger.left(own_ms),
        max(0, full_ms - own_ms),
        memory.entries,
        memory.refusals,
    )
