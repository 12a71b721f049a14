"""A machine's file system as a witness sees it: change times by the machine's own wall clock.

The files are real. Their change times are not: a world's weeks take seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from ldpstream.audit.machine import Machine
from ldpstream.device import witness
from ldpstream.device.witness import ChangeTime


@dataclass
class FileSystem:
    """When each file was changed last, by its number."""

    machine: Machine

    def __post_init__(self) -> None:
        self._changed_ns: dict[int, int] = {}

    def changed(self, number: int) -> None:
        """Note that this file was changed now."""
        self._changed_ns[number] = 1_000_000 * self.machine.wall_ms()

    def touch(self, path: Path) -> None:
        self.changed(path.stat().st_ino)

    def seen(self, file: os.stat_result) -> os.stat_result:
        """Return what the machine would say about this file."""
        changed = self._changed_ns.get(file.st_ino, 0)
        there = SimpleNamespace(st_ino=file.st_ino, st_dev=file.st_dev, st_ctime_ns=changed)
        return cast(os.stat_result, there)


class SimulatedChangeTime(ChangeTime):
    """The real witness, on a simulated machine."""

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._stamped: int | None = None

    def stamp(self, file: os.stat_result) -> str:
        self._stamped = file.st_ino
        with self._on_the_machine():
            return super().stamp(self._files.seen(file))

    def committed(self, stamp: str) -> None:
        assert self._stamped is not None
        self._files.changed(self._stamped)
        super().committed(stamp)

    def vouches(self, found: os.stat_result, stamp: str) -> bool:
        with self._on_the_machine():
            return super().vouches(self._files.seen(found), stamp)

    @contextmanager
    def _on_the_machine(self) -> Iterator[None]:
        """Let the witness read this machine's clock and boot in place of the real ones."""
        machine, module = self._files.machine, cast(Any, witness)
        real = module.SystemClock, module.time
        module.SystemClock = lambda: machine
        module.time = SimpleNamespace(time_ns=lambda: 1_000_000 * machine.wall_ms())
        try:
            yield
        finally:
            module.SystemClock, module.time = real
