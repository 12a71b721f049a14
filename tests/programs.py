"""Programs of the system that tests start; `tools/system.sh` fetches them."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path

import pytest

FETCHED = Path(__file__).parents[1] / ".system" / "bin"


def program(name: str) -> str:
    """The path of a program; without it the test is skipped, which fails under CI."""
    found = shutil.which(name) or shutil.which(name, path=str(FETCHED))
    if found is None:
        pytest.skip(f"there is no {name}; run: tools/system.sh")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, seconds: float = 10.0) -> None:
    """Return when somebody listens there."""
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
