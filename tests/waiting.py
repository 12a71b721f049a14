"""Waiting for what another thread or another process brings about, and never for time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

PATIENCE = 600.0
"""Seconds; far more than any test takes, also on a machine that does much else."""
LONGEST_PAUSE = 0.1
"""Seconds; a program that is asked more often would have less time to get there."""


def eventually(
    holds: Callable[[], Found], what: str = "it holds", seconds: float = PATIENCE
) -> Found:
    """Wait until `holds` returns something true, and return that."""
    end = time.monotonic() + seconds
    pause = 0.005  # another thread needs the interpreter, too
    while not (found := holds()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    return found
