"""Fixtures of the collector's tests; their stores are in memory where /dev/shm exists.

The tests make thousands of disk syncs. They are about crashes of a process, not of a machine, and
those are the same on a disk and in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.api import Api, running
from tests.postgres import database, postgres_server

__all__ = ["database", "postgres_server"]

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with running(tmp_path) as api:
        yield api
