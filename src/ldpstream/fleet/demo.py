"""A temporary collector: a real process on loopback that leaves nothing behind."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ldpstream.errors import LdpStreamError, Problem
from ldpstream.fleet.city import REGIONS
from ldpstream.fleet.folders import memory_folder

STREAM = "city"
WINDOW = 10
STOPPING_SECONDS = 10

CONFIGURATION = """
[collector]
listen = "127.0.0.1:0"
store = "collector.sqlite"

[[stream]]
name = "{stream}"
labels = {labels}
epsilon = 2.0
window = {window}
interval = "1s"
mechanism = "lpf"
selection = "slots"
population = {population}
public = true

[[stream.alert]]
name = "The stadium fills up"
label = "Stadium"
above = 0.2
on = "interval"
for = "1s"
keep_firing_for = "3s"
"""


@dataclass(frozen=True)
class Demo:
    """A running collector."""

    url: str
    token: str
    """Lets devices enrol."""
    truth: Path
    """The file for the truth, which the page can draw over its lines (`truth.py`)."""

    @property
    def page(self) -> str:
        """The address of the stream's page; the stream is public, so it needs no token."""
        return f"{self.url}/?demo#/streams/{STREAM}"


@contextmanager
def demo_collector(population: int) -> Iterator[Demo]:
    """Run a collector of one stream of second-long timestamps, with the regions of a city.

    It is the one of `truth.py`, with its files in memory.
    """
    text = CONFIGURATION.format(
        stream=STREAM, labels=json.dumps(REGIONS), window=WINDOW, population=population
    )
    token = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        file, truth = Path(folder) / "demo.toml", Path(folder) / "truth.json"
        file.write_text(text)
        process = subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-m", "ldpstream.fleet.truth", str(file), str(truth)],
            env=os.environ | {"LDPSTREAM_ENROLMENT_TOKEN": token},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches us alone, and we stop it
        )
        try:
            yield Demo(_address(process), token, truth)
        finally:
            _stop(process)


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    if address := process.stdout.readline().strip():
        return address
    raise LdpStreamError(Problem.COLLECTOR_DIED, status=process.wait())


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOPPING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
