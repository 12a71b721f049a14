from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldpstream.fleet.folders import memory_folder


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder for ledgers, in memory where there is one: a disk would take minutes."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        yield Path(folder)
