"""A device's own sense of time: the wall clock where it starts, a steady clock from there on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Two clocks, in milliseconds."""

    def wall_ms(self) -> int:
        """Since the epoch. Anyone may set it."""
        ...

    def steady_ms(self) -> int:
        """Since whenever. Nobody can set it; it should count time asleep too."""
        ...


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        # Linux's monotonic clock stands still while the machine sleeps, its boot-time clock does
        # not. Where there is none, sleep looks like a wall clock that was moved forward.
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        return time.monotonic_ns() // 1_000_000


@dataclass(frozen=True)
class Look:
    """Both clocks at one moment."""

    wall_ms: int
    steady_ms: int


class OwnTime:
    """Time as the device has witnessed it since it was opened.

    It starts from the wall clock and runs with the steady one: setting the wall clock changes
    nothing. How far the wall clock has been moved ahead can be seen, and taken over, at a price
    that is for the caller to pay first (`Account` counts the ledger as spent).
    """

    def __init__(self, clock: Clock, offset_ms: int = 0) -> None:
        self._clock = clock
        self.offset_ms = offset_ms
        """Added to the wall clock: the correction that was fixed at enrolment."""
        self._start = self.look()

    def look(self) -> Look:
        return Look(self._clock.wall_ms(), self._clock.steady_ms())

    def take_over(self, seen: Look) -> None:
        """Go on from what the wall clock said then."""
        self._start = seen

    def now_ms(self) -> int:
        return self._witnessed_at(self._clock.steady_ms())

    def by_wall_ms(self, seen: Look) -> int:
        """What time it was by the wall clock then."""
        return seen.wall_ms + self.offset_ms

    def wall_ahead_ms(self, seen: Look) -> int:
        """How far the wall clock was ahead of what had been witnessed then."""
        return self.by_wall_ms(seen) - self._witnessed_at(seen.steady_ms)

    def _witnessed_at(self, steady_ms: int) -> int:
        return self._start.wall_ms + steady_ms - self._start.steady_ms + self.offset_ms


def offset_at_enrolment(collector_ms: int, sent_ms: int, received_ms: int) -> int:
    """The least correction of the own clock that agrees with the collector's.

    The collector read its clock at some moment between request and answer; if the own clock could
    be right, it is taken to be.

    >>> offset_at_enrolment(1_000, 990, 1_010), offset_at_enrolment(5_000, 990, 1_010)
    (0, 3990)
    """
    return max(collector_ms - received_ms, min(0, collector_ms - sent_ms))
