"""Whether a file that is open is still the one at its path.

A file that was deleted or replaced can be written to for as long as it is open, and what is written
is gone when it is closed.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

Identity = tuple[int, int]
"""Device and inode."""


class OpenFiles:
    """The files of a store, as they were when it was opened."""

    def __init__(self, *files: Path) -> None:
        found = {file: _identity(file) for file in files}
        self._known = {file: one for file, one in found.items() if one is not None}

    def trouble(self) -> str | None:
        """Say which file is gone, or is another one now; None if all are as they were."""
        for file, known in self._known.items():
            found = _identity(file)
            if found != known:
                state = "is gone" if found is None else "is another file now"
                return f"the store's file {file.name} {state}: stop the collector, put it back"
        return None

    def check(self) -> None:
        """Refuse to read or write what nobody will find again."""
        trouble = self.trouble()
        if trouble is not None:
            raise sqlite3.OperationalError(trouble)


def _identity(file: Path) -> Identity | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
