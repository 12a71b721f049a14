"""The folder in which a fleet keeps its ledgers."""

from __future__ import annotations

import os
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # nosec B108 # noqa: S108 - used only if it is there


def memory_folder() -> Path | None:
    """Return a folder in memory, where a sync costs next to nothing, or None if there is none.

    A fleet's ledgers need not outlive it, and a disk syncs some dozens of files a second.
    """
    usable = SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK)
    return SHARED_MEMORY if usable else None
