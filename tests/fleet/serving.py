"""A real collector in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ldpstream.collector.credentials.read_tokens import read_token

TOKEN = "a token for enrolment"


def stream_table(name: str, start: datetime, **settings: object) -> str:
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


@contextmanager
def serving(folder: Path, *streams: str) -> Iterator[str]:
    """Run `ldpstream serve` for these streams; its address."""
    file = folder / "collector.toml"
    head = '[collector]\nlisten = "127.0.0.1:0"\nstore = "collector.sqlite"'
    file.write_text("\n".join([head, *streams]))
    collector = subprocess.Popen(
        [sys.executable, "-c", "from ldpstream.cli import main; main()", "serve", str(file)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LDPSTREAM_ENROLMENT_TOKEN": TOKEN},
    )
    assert collector.stdout is not None
    with collector:
        try:
            for line in collector.stdout:
                if line.startswith("listening on "):
                    yield line.removeprefix("listening on ").strip()
                    break
            else:
                raise AssertionError("the collector did not start")
        finally:
            collector.terminate()
            collector.wait(20)


def token_of(folder: Path, stream: str) -> str:
    """The read token of a stream that `serving` serves from this folder."""
    return read_token((folder / "admin.secret").read_text().strip().encode(), stream)
