"""The file system of a simulated machine, with change times by that machine's wall clock.

The files are real. Their change times are simulated, since weeks of a world take seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from zlib import crc32

from ldpstream.audit.machine import Machine
from ldpstream.device import witness
from ldpstream.device.witness import ChangeTime


class FileSystem:
    """The change time of each file, by its inode, and a checksum of its content then."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._known: dict[int, tuple[int, int]] = {}

    def touch(self, path: Path) -> None:
        """Record that this file was changed now."""
        now_ns = 1_000_000 * self.machine.wall_ms()
        self._known[path.stat().st_ino] = now_ns, crc32(path.read_bytes())

    def seen(self, path: Path, file: os.stat_result) -> os.stat_result:
        """Return the file's status on this machine, whoever has written to it."""
        _, content = self._known.get(file.st_ino, (0, None))
        if path.stat().st_ino == file.st_ino and content != crc32(path.read_bytes()):
            self.touch(path)
        changed_ns, _ = self._known.get(file.st_ino, (0, 0))
        there = SimpleNamespace(st_ino=file.st_ino, st_dev=file.st_dev, st_ctime_ns=changed_ns)
        return cast(os.stat_result, there)


class SimulatedChangeTime(ChangeTime):
    """The real witness, on a simulated machine."""

    def __init__(self, files: FileSystem, path: Path) -> None:
        self._files, self._path = files, path
        self._committing = False

    def stamp(self, file: os.stat_result) -> str:
        self._committing = True
        with self._on_the_machine():
            return super().stamp(file)

    def committed(self, stamp: str) -> None:
        if self._committing:  # else it is told again of an earlier commit
            self._files.touch(self._path)
        self._committing = False
        super().committed(stamp)

    def vouches(self, found: os.stat_result, stamp: str) -> bool:
        with self._on_the_machine():
            return super().vouches(self._files.seen(self._path, found), stamp)

    @contextmanager
    def _on_the_machine(self) -> Iterator[None]:
        """Let the witness read this machine's clock and boot id in place of the real ones."""
        machine, module = self._files.machine, cast(Any, witness)
        real = module.SystemClock, module.time
        module.SystemClock = lambda: machine
        module.time = SimpleNamespace(time_ns=lambda: 1_000_000 * machine.wall_ms())
        try:
            yield
        finally:
            module.SystemClock, module.time = real
