"""The only module of the collector that reads the time."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from ldpstream.errors import Mistake, Problem
from ldpstream.machine_clock import MachineClock

FOLLOWED_MS = 60_000
"""A step of the machine's clock up to this is followed, and a longer one is not.

A wrong step makes streams wait for as long as it was. Right ones are shorter than this: NTP's, leap
seconds, a virtual machine that was paused. Wrong ones are longer: time zones, dates.
"""
SLEW = 2000
"""The anchor follows the machine's clock by one part in so many: 500 ppm, as fast as NTP slews."""
RENEWAL_MS = 3_600_000
"""How old an anchor becomes before it is made anew."""
SETTLING_MS = 300_000
"""For so long after its start a machine may still be about to set its clock."""
ABSENCE_MS = 3_600_000
"""Until then, a clock that is further ahead of the last release than this is not trusted."""
LATEST_MS = 253_402_300_799_999
"""The end of the year 9999: no clock is right beyond it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ClockFault:
    """The reason why the collector does not trust the machine's clock now."""

    ahead_ms: int
    """How far the machine's clock is ahead of the collector's; negative if it is behind."""
    sentence: str


class Clock(Protocol):
    """A source of the time, which also tells whether the machine's clock differs from it."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    @property
    def doubt(self) -> ClockFault | None:
        """Why the machine's clock is not believed; None while it is."""
        ...


def ticks() -> float:
    """Seconds from some fixed moment, to measure how long something takes."""
    return time.perf_counter()


@dataclass(frozen=True)
class Anchor:
    """A moment whose time is believed, from which the steady clock of its boot counts on."""

    boot: str | None
    wall_ms: int
    steady_ms: int


class ConfirmedClock:
    """The machine's clock, as far as its steady clock confirms it.

    It is never further from an anchor plus the steady time since than FOLLOWED_MS and the slew. The
    anchor is kept in a file, so that a process that is started again in the same boot does not
    believe what this one did not. After a boot nothing confirms the machine's clock but the time
    of a shared store, if there is one; otherwise it is trusted, in SETTLING_MS at the latest.
    """

    def __init__(
        self,
        machine: MachineClock,
        file: Path | None = None,
        last_release_ms: int | None = None,
        store_ms: int | None = None,
    ) -> None:
        self._machine = machine
        self._file = file
        self._lock = threading.Lock()
        self._doubted = False
        self._anchor = None if file is None else _load(file, machine)
        wall_ms = machine.wall_ms()
        self._known_ms = wall_ms if last_release_ms is None else last_release_ms
        """What time it was at least, before there is an anchor."""
        if store_ms is not None:
            if abs(wall_ms - store_ms) > FOLLOWED_MS:
                raise Mistake(Problem.CLOCKS_DIFFER, **_gap(wall_ms - store_ms))
            self._move(wall_ms, machine.steady_ms())

    def now_ms(self) -> int:
        return self._read()[0]

    @property
    def doubt(self) -> ClockFault | None:
        return self._read()[1]

    def _read(self) -> tuple[int, ClockFault | None]:
        with self._lock:
            now_ms, doubt = self._judge(self._machine.wall_ms(), self._machine.steady_ms())
            if self._doubted != (doubt is not None):
                self._doubted = doubt is not None
                _log.warning(doubt.sentence if doubt else "the machine's clock is believed again")
        return now_ms, doubt

    def _judge(self, wall_ms: int, steady_ms: int) -> tuple[int, ClockFault | None]:
        """Return the time, and the doubt if it is not the machine's."""
        if self._anchor is None and steady_ms < SETTLING_MS:
            return self._judge_unsettled(wall_ms, steady_ms)
        anchor = self._anchor or self._move(wall_ms, steady_ms)
        elapsed = steady_ms - anchor.steady_ms
        confirmed_ms, slewed = anchor.wall_ms + elapsed, elapsed // SLEW
        ahead_ms = wall_ms - confirmed_ms
        if abs(ahead_ms) > FOLLOWED_MS + slewed:
            first = "" if self._file is None else "delete clock.json in the store's folder and "
            told = Mistake(Problem.CLOCK_UNCONFIRMED, first=first, **_gap(ahead_ms))
            return confirmed_ms, ClockFault(ahead_ms, str(told))
        if elapsed >= RENEWAL_MS:
            self._move(confirmed_ms + max(-slewed, min(slewed, ahead_ms)), steady_ms)
        return wall_ms, None

    def _judge_unsettled(self, wall_ms: int, steady_ms: int) -> tuple[int, ClockFault | None]:
        """Hold the time still for a while, rather than trust a clock that is far ahead."""
        ahead_ms = wall_ms - self._known_ms
        if ahead_ms <= ABSENCE_MS:
            return wall_ms, None
        seconds = -(-(SETTLING_MS - steady_ms) // 1000)
        told = Mistake(Problem.CLOCK_UNSETTLED, seconds=seconds, **_gap(ahead_ms))
        return self._known_ms, ClockFault(ahead_ms, str(told))

    def _move(self, wall_ms: int, steady_ms: int) -> Anchor:
        self._anchor = Anchor(self._machine.boot(), wall_ms, steady_ms)
        if self._file is not None and self._anchor.boot is not None:
            try:
                _save(self._file, self._anchor)
            except OSError:
                _log.warning("clock.json cannot be written", exc_info=True)
        return self._anchor


def _gap(ahead_ms: int) -> dict[str, str]:
    amount = timedelta(seconds=abs(ahead_ms) // 1000)
    return {"amount": str(amount), "side": "ahead of" if ahead_ms > 0 else "behind"}


def _load(file: Path, machine: MachineClock) -> Anchor | None:
    """Return the anchor of this boot, or None if the file is damaged or from another boot."""
    try:
        kept = json.loads(file.read_text())
        anchor = Anchor(str(kept["boot"]), int(kept["wall_ms"]), int(kept["steady_ms"]))
    except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None
    possible = 0 <= anchor.wall_ms <= LATEST_MS and 0 <= anchor.steady_ms <= machine.steady_ms()
    return anchor if possible and anchor.boot == machine.boot() else None


def _save(file: Path, anchor: Anchor) -> None:
    """Write the anchor atomically. It need not be synced: after the next boot it is void."""
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w") as out:
            json.dump(asdict(anchor), out)
        os.replace(draft, file)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


class ManualClock:
    """A clock for tests: it stands still until it is moved, and refuses to go back.

    >>> clock = ManualClock(1000)
    >>> clock.advance(500)
    >>> clock.now_ms()
    1500
    """

    doubt: ClockFault | None = None

    def __init__(self, now_ms: int = 0) -> None:
        self._now = now_ms

    def now_ms(self) -> int:
        return self._now

    def advance(self, milliseconds: int) -> None:
        if milliseconds < 0:
            raise ValueError(f"time does not go back, not even by {-milliseconds} ms")
        self._now += milliseconds

    def advance_to(self, now_ms: int) -> None:
        self.advance(now_ms - self._now)
