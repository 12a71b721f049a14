"""A real nats-server for tests: on a free port, with its files in a folder of its own."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ldpstream.collector.report_log.contract import LogSettings
from ldpstream.fleet.folders import memory_folder
from tests.programs import free_port, program

SECONDS = 20.0


@dataclass
class NatsServer:
    """A server that can be killed and started again on the same files."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None)
    keeps: bool = True
    """Whether it has JetStream."""

    @property
    def settings(self) -> LogSettings:
        return LogSettings(f"nats://127.0.0.1:{self.port}", retention_hours=1)

    def start(self) -> None:
        files = ["-js", "-sd", str(self.folder)] if self.keeps else []
        files += ["-l", str(self.folder / "server.log")]
        address = ["-a", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen([program("nats-server"), *files, *address])
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
                    if line.recv(4) == b"INFO":
                        return
            except OSError:
                time.sleep(0.02)
        raise TimeoutError("nats-server does not listen")

    def kill(self) -> None:
        """As kill -9 does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(SECONDS)


@contextmanager
def running_nats(*, in_memory: bool = True, keeps: bool = True) -> Iterator[NatsServer]:
    port = free_port()
    place = memory_folder() if in_memory else None
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
        server = NatsServer(Path(folder), port, keeps=keeps)
        server.start()
        try:
            yield server
        finally:
            server.kill()


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    with running_nats() as server:
        yield server
