"""The servers that are measured: the real ones of the tests, with their files on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.jetstream import NatsServer, running_nats
from tests.postgres import new_database, running_server

from ldpstream.collector.store.database import Database


@dataclass(frozen=True)
class Servers:
    """Temporary PostgreSQL and NATS servers."""

    postgres: str
    nats: NatsServer
    folder: Path

    @contextmanager
    def database(self) -> Iterator[Database]:
        with new_database(self.postgres) as found:
            yield found


@contextmanager
def servers() -> Iterator[Servers]:
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name,
        running_server(in_memory=False) as postgres,
        running_nats(in_memory=False) as nats,
    ):
        yield Servers(postgres, nats, Path(name))


def cpu_seconds(pids: list[int]) -> float:
    """Return the processor seconds of processes and of their children that have ended."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))  # utime, stime and those of ended children
    return total / os.sysconf("SC_CLK_TCK")


def memory_mb(pids: list[int]) -> int:
    """Return the sum of the peak memory of each process."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return round(total / 1024)
