"""A device's two times: own time, in which budgets are kept, and label time, which gives t.

Own time grows with a monotonic clock only, so that nobody can speed it up. Label time gives the
current timestamp; anyone may correct it, forward or back, and no budget depends on it. The rules
and their proof are in docs/guarantee.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldpstream.machine_clock import MachineClock


@dataclass(frozen=True)
class ClockReading:
    """A reading of all clocks at one moment."""

    wall_ms: int
    steady_ms: int
    boot: str | None

    @classmethod
    def at(cls, clock: MachineClock) -> ClockReading:
        return cls(clock.wall_ms(), clock.steady_ms(), clock.boot())


@dataclass(frozen=True)
class OwnTime:
    """Own time at one moment, and the clocks' reading then.

    >>> mark = OwnTime(1_000, ClockReading(wall_ms=50_000, steady_ms=7_000, boot="a"))
    >>> mark.resumed(ClockReading(wall_ms=0, steady_ms=7_300, boot="a")).own_ms  # counts steady_ms
    1300
    >>> mark.resumed(ClockReading(wall_ms=90_000, steady_ms=60, boot="b")).own_ms  # up for 60 ms
    1060
    """

    own_ms: int
    clocks: ClockReading

    def resumed(self, now: ClockReading) -> OwnTime:
        """Return own time now, continued from a mark that any process may have left.

        It never grows by more than the time that has passed. Within a boot, the steady clock tells
        how much that is. After another boot, a steady clock that has gone back was restarted, and
        its whole reading counts; one that has not may be the same clock (containers get new boot
        ids), and the difference counts. Then own time also grows by no more than the wall clock
        did: the file may come from another machine, which has been up for longer.
        """
        passed = now.steady_ms - self.clocks.steady_ms
        if now.boot is None or now.boot != self.clocks.boot:
            since = passed if passed >= 0 else now.steady_ms
            passed = min(since, now.wall_ms - self.clocks.wall_ms)
        return OwnTime(self.own_ms + max(0, passed), now)

    def at(self, other: ClockReading) -> int:
        """Return own time at another reading by this process, earlier or later."""
        return self.own_ms + other.steady_ms - self.clocks.steady_ms


class LabelTime:
    """The time in the stream: the wall clock's, until the collector corrects it."""

    def __init__(self, clock: MachineClock) -> None:
        self._clock = clock
        self.restart()

    def restart(self) -> None:
        """Go by the wall clock again, as if the collector had said nothing."""
        self._from_ms, self._since_ms = self._clock.wall_ms(), self._clock.steady_ms()

    def now_ms(self) -> int:
        return self._from_ms + self._clock.steady_ms() - self._since_ms

    def correct(self, now_ms: int, heard_steady_ms: int | None = None) -> None:
        """Adopt the collector's time, as of now or of the moment at which it was heard."""
        steady = self._clock.steady_ms() if heard_steady_ms is None else heard_steady_ms
        self._from_ms, self._since_ms = now_ms, steady
