"""Whether a ledger is the one that was last written, or an older copy brought back."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Protocol


class Witness(Protocol):
    """Something that a backup of the ledger does not take along.

    A stamp is stored in the ledger with every commit. Before anything is sent, the witness is told
    that it was committed; when the ledger is opened, the witness is asked about the stamp in it.
    """

    def stamp(self) -> int:
        """The stamp of the commit that is about to be made."""
        ...

    def committed(self, stamp: int) -> None:
        """That commit is on disk; raise `OSError` if this cannot be remembered."""
        ...

    def vouches(self, found: os.stat_result, stamp: int) -> bool:
        """Whether nothing was committed after this stamp, given the file as it was found."""
        ...


class ChangeTime:
    """The file system as a witness: when it changed the file last, which no program can set.

    A copy put back has the time at which it was put back, even if its modification time was
    preserved. It does not notice: a copy put back within 5 s of its own last commit, a whole
    file system or virtual machine rolled back, a machine whose administrator deceives it.
    Where there is no such time (Windows, FAT) it vouches for nothing.
    """

    SLOWEST_COMMIT_NS = 5 * 10**9
    COARSENESS_NS = 20 * 10**6
    """Kernels stamp files with the time of the last tick, up to 10 ms ago."""

    def stamp(self) -> int:
        return time.time_ns()

    def committed(self, stamp: int) -> None:
        """Nothing to do: the file system has seen it."""

    def vouches(self, found: os.stat_result, stamp: int) -> bool:
        since = found.st_ctime_ns - stamp
        return os.name == "posix" and -self.COARSENESS_NS <= since <= self.SLOWEST_COMMIT_NS


class CounterFile:
    """A counter in a file of its own, to be kept where backups do not reach.

    The pattern for a platform's keystore or a hardware counter, which are better places. A counter
    that was lost goes on from the ledger's: begun anew, it would vouch for every older copy.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of_ledger = 0

    def stamp(self) -> int:
        return max(self._read(), self._of_ledger) + 1

    def committed(self, stamp: int) -> None:
        self._of_ledger = stamp
        fresh = self._path.with_name(self._path.name + ".new")
        with open(fresh, "w", encoding="ascii") as file:
            file.write(str(stamp))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def vouches(self, found: os.stat_result, stamp: int) -> bool:
        self._of_ledger = stamp
        # A crash between commit and counter leaves the ledger ahead: nothing was sent from there.
        return self._path.exists() and stamp >= self._read()

    def _read(self) -> int:
        try:
            return int(self._path.read_text("ascii"))
        except FileNotFoundError:
            return 0
