"""Stores of these tests lie in memory where there is such a place.

They make thousands of disk syncs. What they look into is the death of a process, not of a disk, and
that is the same on either.
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
