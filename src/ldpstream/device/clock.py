"""A device's own sense of time: the wall clock where it starts, a steady clock from there on."""

from __future__ import annotations

import time
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


class OwnTime:
    """Time as the device has witnessed it since it was opened.

    It starts from the wall clock and runs with the steady one: setting the wall clock changes
    nothing. How far the wall clock has been moved ahead can be seen, and taken over, at a price
    that is for the caller to pay (`Session` counts the ledger as spent).
    """

    def __init__(self, clock: Clock, offset_ms: int = 0) -> None:
        self._clock = clock
        self.offset_ms = offset_ms
        """Added to the wall clock: the correction that was fixed at enrolment."""
        self.take_over_wall()

    def take_over_wall(self) -> None:
        self._wall, self._steady = self._clock.wall_ms(), self._clock.steady_ms()

    def now_ms(self) -> int:
        return self._wall + self._clock.steady_ms() - self._steady + self.offset_ms

    def wall_ahead_ms(self) -> int:
        """How far the wall clock is ahead of what was witnessed."""
        return self._clock.wall_ms() + self.offset_ms - self.now_ms()


def offset_at_enrolment(collector_ms: int, sent_ms: int, received_ms: int) -> int:
    """The least correction of the own clock that agrees with the collector's.

    The collector read its clock at some moment between request and answer; if the own clock could
    be right, it is taken to be.

    >>> offset_at_enrolment(1_000, 990, 1_010), offset_at_enrolment(5_000, 990, 1_010)
    (0, 3990)
    """
    return max(collector_ms - received_ms, min(0, collector_ms - sent_ms))
