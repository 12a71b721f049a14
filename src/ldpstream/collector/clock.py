"""The only place of the collector that reads the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Says what time it is."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...


def ticks() -> float:
    """Seconds from some fixed moment, to measure how long something takes."""
    return time.perf_counter()


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock for tests: it stands still until it is moved, and refuses to go back.

    >>> clock = ManualClock(1000)
    >>> clock.advance(500)
    >>> clock.now_ms()
    1500
    """

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
