"""Running engines as processes of their own, and killing parts of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from ldpstream.collector.store.database import Database
from tests.jetstream import NatsServer
from tests.waiting import eventually

MASTER = "local-cluster[2,1,1024]"
SECONDS = 1200.0
"""Far more than anything here takes."""
ENGINE = [sys.executable, "-c", "from ldpstream.cli import main; main()", "engine"]
CONFIG = """\
[collector]
store = "{store}"
ingest = "{ingest}"
log = {{ retention = "1h" }}

[[stream]]
name = "{stream}"
labels = {labels}
epsilon = 1
window = 4
interval = "30m"
mechanism = "lpu"
oracle = "olh"
population = 1000
"""


def write_config(
    file: Path, database: Database, server: NatsServer, stream: str, labels: int
) -> Path:
    names = [f"l{number}" for number in range(labels)]
    file.write_text(
        CONFIG.format(store=database.url, ingest=server.settings.url, stream=stream, labels=names)
    )
    return file


def _environment(folder: Path, kind: str) -> dict[str, str]:
    """For Spark: on loopback, and with virtual machines that are made to start fast."""
    if kind != "spark":
        return dict(os.environ)
    home = folder / "spark"
    if not home.exists():
        _spark_home(home)
    fast = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    own = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": fast}
    return os.environ | own


def _spark_home(folder: Path) -> None:
    """Spark as it is installed, but with a place of its own for what a local cluster writes."""
    folder.mkdir()
    for inner in Path(pyspark.__file__).parent.iterdir():
        if inner.name != "work":
            (folder / inner.name).symlink_to(inner)


@dataclass(frozen=True)
class Engine:
    """A process and its virtual machines, in one group; their Python workers end with them."""

    process: subprocess.Popen[str]

    def kill_executor(self) -> None:
        """One of the two, as soon as there is one."""
        eventually(self._executors, "there is an executor")
        os.kill(self._executors()[0], signal.SIGKILL)

    def _executors(self) -> list[int]:
        return [
            number for number in family_of(self.process.pid) if b"ExecutorBackend" in _words(number)
        ]

    def kill(self) -> None:
        """The driver, its virtual machine and the executors, at the same moment."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(SECONDS)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


@contextmanager
def running(folder: Path, *words: str) -> Iterator[Engine]:
    """An engine that has said that it counts."""
    environment = _environment(folder, words[0])
    with (folder / "engine.log").open("a") as log:
        process = subprocess.Popen(
            [*ENGINE, *words],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
            start_new_session=True,
        )
    engine = Engine(process)
    try:
        assert process.stdout is not None
        if not any(line.startswith("counting ") for line in process.stdout):
            raise AssertionError((folder / "engine.log").read_text()[-2000:])
        yield engine
    finally:
        if process.poll() is None:
            engine.kill()
        process.stdout.close()  # type: ignore[union-attr]


def run_engine(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """An engine that ends by itself."""
    return subprocess.run(
        [*ENGINE, *words],
        capture_output=True,
        text=True,
        env=_environment(folder, words[0]),
        timeout=SECONDS,
        check=False,
    )


def family_of(head: int) -> list[int]:
    """A process and all that it, and they, have started; Spark's Python workers leave the group."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent_of(entry)):
            children.setdefault(parent, []).append(int(entry.name))
    family = [head]
    for member in family:
        family += children.get(member, [])
    return family


def _parent_of(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _words(number: int) -> bytes:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return b""
