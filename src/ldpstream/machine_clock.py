"""The clocks of a machine: one that anyone may set, and a steady one that nobody can set."""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from pathlib import Path
from typing import Protocol


class MachineClock(Protocol):
    """Two clocks, in milliseconds, and the name of the boot that the second one counts from."""

    def wall_ms(self) -> int:
        """Return the time since the epoch. Anyone may set it."""
        ...

    def steady_ms(self) -> int:
        """Return the time since this boot. Nobody can set it; it should count time asleep."""
        ...

    def boot(self) -> str | None:
        """Return a name that no other boot has, or None where the platform gives none."""
        ...


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        # Linux's and macOS's usual monotonic clocks stand still while the machine sleeps; these do
        # not, nor does Windows's.
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        if sys.platform == "darwin":
            return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) // 1_000_000
        return time.monotonic_ns() // 1_000_000

    def boot(self) -> str | None:
        return _boot_of_this_machine()


@cache
def _boot_of_this_machine() -> str | None:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        # A container may have a steady clock of its own, counted from another moment.
        clocks = os.readlink("/proc/self/ns/time") if os.path.exists("/proc/self/ns/time") else ""
    except (OSError, ValueError):
        return None
    return f"{boot}/{clocks}" if boot else None
