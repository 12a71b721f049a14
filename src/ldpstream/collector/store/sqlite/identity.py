"""Checks that an open file is still the one at its path, and was not truncated.

A file that was deleted or replaced can be written to for as long as it is open, and what is written
is gone when it is closed. One that was truncated is no longer what SQLite takes it for.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

Identity = tuple[int, int]
"""Device and inode."""


class OpenFiles:
    """The files of a store, as they were when it was opened."""

    def __init__(self, *files: Path) -> None:
        found = {file: _identity(file) for file in files}
        self._known = {file: one for file, one in found.items() if one is not None}

    def trouble(self) -> str | None:
        """Return which file is gone or was replaced, or None if all are as they were."""
        for file, known in self._known.items():
            found = _identity(file)
            if found != known:
                state = "is gone" if found is None else "is another file now"
                return f"the store's file {file.name} {state}: stop the collector, put it back"
        return None

    def check(self) -> None:
        """Refuse to read or write files that are no longer at their paths."""
        trouble = self.trouble()
        if trouble is not None:
            raise sqlite3.OperationalError(trouble)


class FileLengths:
    """The lengths of a store's file and log after each commit: nobody else truncates them.

    But any process may move the whole log into the file and truncate it: SQLite knows of that.
    """

    def __init__(self, main: Path, log: Path, frames: Callable[[], int]) -> None:
        self._main = main
        self._log = log
        self._frames = frames
        """Asks SQLite how much is in the log."""
        self._known = self._found()
        self.trouble: str | None = None
        """The file that was truncated: nothing heals it but a start on a store that is whole."""

    def remember(self) -> None:
        """Take the files as they are, after a commit."""
        self._known = self._found()

    def check(self) -> None:
        """Refuse to go on with a file that was truncated."""
        if self.trouble is None:
            self.trouble = self._compare()
        if self.trouble is not None:
            raise sqlite3.OperationalError(self.trouble)

    def _compare(self) -> str | None:
        main, log = self._found()
        if main < self._known[0]:
            return _cut(self._main)
        return _cut(self._log) if log < self._known[1] and self._is_filled() else None

    def _is_filled(self) -> bool:
        try:
            return self._frames() > 0
        except sqlite3.Error:  # it cannot be read to its end
            return True

    def _found(self) -> tuple[int, int]:
        return self._main.stat().st_size, self._log.stat().st_size


def _cut(file: Path) -> str:
    return f"the store's file {file.name} was truncated: stop the collector, restore a backup"


def _identity(file: Path) -> Identity | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
