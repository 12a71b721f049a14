"""Witnesses that detect whether a ledger is the latest one or an older copy that was restored."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Protocol

from ldpstream.machine_clock import SystemClock
from ldpstream.whole_files import write_whole


class Witness(Protocol):
    """A memory of the last commit, outside of what a backup of the ledger includes.

    A stamp is stored in the ledger with every commit. Before anything is sent, the witness is told
    of the committed stamp; when the ledger is opened, it is asked about the stamp found there.

    >>> own: Witness = ChangeTime()  # give another one to Device.create and Device.open: witness=
    """

    def stamp(self, file: os.stat_result) -> str:
        """Return the stamp of the commit that is about to be made to this file."""
        ...

    def committed(self, stamp: str) -> None:
        """Remember that this commit is on disk; raise `OSError` if that is not possible.

        It is told again when a ledger that it vouches for is opened: a crash may have come between.
        """
        ...

    def vouches(self, found: os.stat_result, stamp: str) -> bool:
        """Return whether nothing was committed after this stamp, given the file as it was found."""
        ...


class ChangeTime:
    """The file system as a witness: the file's inode, and its change time (ctime).

    No program can set either. A copy is another file (inode), and a copy that was written over the
    file has the change time of that write, even if its modification time was preserved.

    It does not notice: a copy written over the file within 5 s of the copy's own last commit; the
    very file, moved away with its folder and back again; a whole file system or virtual machine
    rolled back; a machine whose administrator deceives it. Where there is no change time
    (Windows, FAT) it vouches for nothing.

    >>> with open(__file__) as file:  # vouches for no stamp but its own
    ...     ChangeTime().vouches(os.fstat(file.fileno()), "1 another")
    False
    """

    SLOWEST_COMMIT_NS = 5 * 10**9
    COARSENESS_NS = 20 * 10**6
    """Kernels stamp files with the time of the last tick, up to 10 ms ago."""

    def stamp(self, file: os.stat_result) -> str:
        return f"{time.time_ns()} {_identity(file)}"

    def committed(self, stamp: str) -> None:
        """Do nothing: the file system has recorded it."""

    def vouches(self, found: os.stat_result, stamp: str) -> bool:
        at_ns, _, file = stamp.partition(" ")
        if os.name != "posix" or not at_ns.isdecimal():
            return False
        since = found.st_ctime_ns - int(at_ns)
        return _is_same(found, file) and -self.COARSENESS_NS <= since <= self.SLOWEST_COMMIT_NS


def _identity(file: os.stat_result) -> str:
    return f"{file.st_ino} {file.st_dev} {SystemClock().boot()}"


def _is_same(found: os.stat_result, file: str) -> bool:
    """Return whether it is the same file; device numbers are compared within a boot only."""
    inode, device, boot = _identity(found).split(" ")
    match file.split(" "):
        case [was_inode, was_device, was_boot]:
            return inode == was_inode and (device == was_device or boot != was_boot)
    return False


class CounterFile:
    """A counter in a file of its own, which must be kept out of backups.

    It is the pattern for a platform's keystore or a hardware counter, which are better places. A
    counter that was lost continues from the ledger's: from 0, it would vouch for any older copy.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counter = CounterFile(Path(folder) / "counter")
    ...     counter.committed("7")
    ...     [counter.vouches(os.stat(folder), stamp) for stamp in ("6", "7")]
    [False, True]
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of_ledger = 0

    def stamp(self, file: os.stat_result) -> str:
        return str(max(self._read(), self._of_ledger) + 1)

    def committed(self, stamp: str) -> None:
        self._of_ledger = int(stamp)
        counted = max(self._of_ledger, self._read())  # another process may have counted further
        write_whole(self._path, str(counted).encode())

    def vouches(self, found: os.stat_result, stamp: str) -> bool:
        if not stamp.isdecimal():
            return False
        self._of_ledger = int(stamp)
        # A crash between commit and counter leaves the ledger ahead.
        return self._path.exists() and self._of_ledger >= self._read()

    def _read(self) -> int:
        try:
            return int(self._path.read_text("ascii"))
        except FileNotFoundError:
            return 0
