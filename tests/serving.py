"""Real collectors, each in a process of its own, for tests and benchmarks."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self

from ldpstream.cli.admin_client import AdminClient
from ldpstream.collector.credentials.read_tokens import read_token
from ldpstream.errors import Mistake

SERVE = (sys.executable, "-m", "ldpstream", "serve")
START_SECONDS = 120
"""Deadline of a start; one that compiles all kernels on a busy machine takes a part of it."""
STOP_SECONDS = 120
"""Deadline of a graceful shutdown."""
LATE = {
    "round-closed",
    "round-past",
    "unreachable",
    "unavailable",
    "rate-limited",
    "collector-refused",
}
"""Why reports of honest devices may be refused or lost on a busy machine."""
TOKEN = "a token for enrolment"
ENROLMENT = {"LDPSTREAM_ENROLMENT_TOKEN": TOKEN}
ANY_PORT = "127.0.0.1:0"
HEAD = f'[collector]\nlisten = "{ANY_PORT}"\nstore = "collector.sqlite"\n'


def read_announcement(stdout: IO[str]) -> dict[str, Any]:
    """Return the object that `ldpstream serve --json` prints when it listens."""
    waiting = select.poll()  # unlike select(), for any number of open files
    waiting.register(stdout, select.POLLIN)
    if not waiting.poll(START_SECONDS * 1000):
        raise TimeoutError(f"the collector does not listen after {START_SECONDS} s")
    if not (line := stdout.readline()):
        raise RuntimeError("the collector ended before it listened")
    announced: dict[str, Any] = json.loads(line)
    return announced


@dataclass
class CollectorProcess:
    """A process of `ldpstream serve`: started by a `with` block, and stopped at its end.

    Inside it can be stopped or killed, and started again on the same port and data. Errors that
    leave the block have its log as a note.
    """

    file: Path
    """The configuration."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment; secrets that are not given, the collector makes itself."""
    command: tuple[str, ...] = SERVE
    """A program that does as `ldpstream serve FILE --json`."""
    process: subprocess.Popen[str] = field(init=False, repr=False)
    announced: dict[str, Any] = field(init=False, default_factory=dict)
    """What it said when it listened: its address, and facts about each stream."""

    @classmethod
    def of(cls, folder: Path, configuration: str, secrets: Mapping[str, str] | None = None) -> Self:
        """Write the configuration into a folder; the process is not started yet."""
        file = folder / "collector.toml"
        file.write_text(configuration)
        return cls(file, secrets or {})

    @property
    def url(self) -> str:
        return str(self.announced["url"])

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def log(self) -> Path:
        """The file of its standard error; every process of this configuration appends to it."""
        return self.file.with_suffix(".log")

    @property
    def complaints(self) -> list[str]:
        """The lines of its log, apart from those on the condition of streams: tests starve some."""
        lines = self.log.read_text().splitlines()
        return [line for line in lines if "ldpstream.collector.service.watch" not in line]

    def start(self) -> None:
        """Start the process and wait until it listens, on the port it had before, if any."""
        if self.announced:
            address = self.url.removeprefix("http://")
            self.file.write_text(self.file.read_text().replace(ANY_PORT, address))
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*self.command, str(self.file), "--json"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **self.secrets},
            )
        assert self.process.stdout is not None
        try:
            self.announced = read_announcement(self.process.stdout)
        except BaseException as error:
            self.kill()
            self._add_log(error)
            raise

    def stop(self) -> int:
        """Send SIGTERM and return the exit status; kill a process that does not stop, and raise."""
        self.process.terminate()
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            self._add_log(error)
            raise
        finally:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL and wait for the end of the process, if it still runs."""
        self.process.kill()
        with self.process:  # waits, and closes the pipe
            pass

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        self.stop()
        if error is not None:
            self._add_log(error)

    def _add_log(self, error: BaseException) -> None:
        error.add_note(f"The log of the collector:\n{self.log.read_text()}")


@contextmanager
def serving(folder: Path, *streams: str) -> Iterator[str]:
    """Run a collector of these streams, and give its address."""
    with CollectorProcess.of(folder, HEAD + "\n".join(streams), ENROLMENT) as collector:
        yield collector.url


def drop_earlier(admin: AdminClient) -> bool:
    """Drop the earlier master secret; return whether no device has a key of it any more."""
    try:
        admin.post("keys/drop")
    except Mistake as refused:
        if "devices-left" not in str(refused):
            raise
        return False
    return True


def token_of(folder: Path, stream: str) -> str:
    """Return the read token of a stream that `serving` serves from this folder."""
    return read_token((folder / "admin.secret").read_text().strip().encode(), stream)


def stream_table(name: str, start: datetime, **settings: object) -> str:
    """Return a [[stream]] of the configuration; settings are written as in TOML."""
    usual: dict[str, object] = {
        "name": f'"{name}"',
        "labels": '["0", "1"]',
        "epsilon": 1,
        "window": 5,
        "interval": '"600ms"',
        "mechanism": '"lpu"',
        "oracle": '"grr"',
        "selection": '"open"',
        "population": 150,
        "start": start.astimezone(UTC).isoformat(timespec="milliseconds"),
    }
    lines = [f"{key} = {value}" for key, value in {**usual, **settings}.items()]
    return "\n".join(["[[stream]]", *lines])
