"""True time, and simulated machines whose clocks follow it more or less well.

A budget is kept if it is kept in true time. So nothing here is taken from the device: its clocks
are functions of the true time, and the judge uses the true time alone.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import count

START_MS = 1_700_000_000_000
"""The time at which a world begins, in milliseconds since the epoch."""


class TrueTime:
    """The time that really passes, in whole microseconds since the epoch. It never goes back.

    >>> true = TrueTime()
    >>> true.advance_ms(1500)
    >>> true.now_ms() - START_MS
    1500
    """

    doubt = None
    """To a collector that goes by it."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self.us = start_ms * 1000

    def now_ms(self) -> int:
        return self.us // 1000

    def advance_us(self, us: int) -> None:
        if us < 0:
            raise ValueError(f"time does not go back, not even by {-us} us")
        self.us += us

    def advance_ms(self, ms: int) -> None:
        self.advance_us(1000 * ms)

    def advance_to(self, now_ms: int) -> None:
        self.advance_us(max(0, 1000 * now_ms - self.us))


class Machine:
    """A machine with the two clocks of a device, and a boot id.

    The wall clock may be wrong, drift and be set. The steady clock counts from boot; it may stop
    while the machine sleeps, and it may run slow, but never fast: a device relies on that.

    >>> machine = Machine(TrueTime(), skew_ms=-5000, counts_sleep=False)
    >>> machine.sleep(60)
    >>> machine.wall_ms() - START_MS, machine.steady_ms()
    (55000, 0)
    >>> machine.reboot()
    >>> machine.wait(2)
    >>> machine.steady_ms()
    2000
    """

    _names = count(1)

    def __init__(
        self,
        true: TrueTime,
        *,
        skew_ms: int = 0,
        drift: Fraction = Fraction(0),
        counts_sleep: bool = True,
        pace: Fraction = Fraction(1),
        names_boots: bool = True,
        up_ms: int = 0,
    ) -> None:
        if pace > 1:
            raise ValueError("no promise can be kept with a steady clock that runs fast")
        self.true = true
        self._drift, self._counts_sleep, self._pace = drift, counts_sleep, pace
        self._names_boots = names_boots
        self._booted_us = true.us - 1000 * up_ms
        self._slept_us = 0
        self._set_at_us, self._set_to_us = true.us, true.us + 1000 * skew_ms
        self._boot = self._new_name()
        self.before_look: Callable[[], object] | None = None
        """Called before a clock is read: clocks may be set at any moment."""

    def _new_name(self) -> str | None:
        return f"boot-{next(self._names)}" if self._names_boots else None

    def wall_ms(self) -> int:
        self._look()
        return self._wall_us() // 1000

    def _wall_us(self) -> int:
        passed = self.true.us - self._set_at_us
        return self._set_to_us + passed + _part(passed, self._drift)

    def steady_ms(self) -> int:
        self._look()
        counted = self.true.us - self._booted_us
        if not self._counts_sleep:
            counted -= self._slept_us
        return _part(counted, self._pace) // 1000

    def boot(self) -> str | None:
        return self._boot

    def _look(self) -> None:
        # Not re-entrant: the hook may read a clock itself.
        hook, self.before_look = self.before_look, None
        if hook is not None:
            hook()
            if self.before_look is None:
                self.before_look = hook

    def wait(self, seconds: float, stop: object = None) -> None:
        """Let time pass, awake."""
        self.true.advance_us(round(1_000_000 * seconds))

    def sleep(self, seconds: float) -> None:
        """Let time pass, asleep."""
        self.wait(seconds)
        self._slept_us += round(1_000_000 * seconds)

    def set_wall(self, skew_ms: int) -> None:
        """Set the wall clock to be this far ahead of the true time."""
        self._set_at_us, self._set_to_us = self.true.us, self.true.us + 1000 * skew_ms

    def move_wall(self, ms: int) -> None:
        """Move the wall clock by this much."""
        self._set_at_us, self._set_to_us = self.true.us, self._wall_us() + 1000 * ms

    def reboot(self, down_seconds: float = 0) -> None:
        """Turn the machine off for a while and boot it: the steady clock starts at 0 again."""
        self.wait(down_seconds)
        self._booted_us, self._slept_us = self.true.us, 0
        self._boot = self._new_name()

    def restart_container(self) -> None:
        """Change the boot id on the same kernel, as systemd-nspawn and LXC do."""
        self._boot = self._new_name()


def _part(us: int, share: Fraction) -> int:
    return us * share.numerator // share.denominator
