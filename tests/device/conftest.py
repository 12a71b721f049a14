from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldpstream.fleet.folders import memory_folder
from tests.device.collectors import Bench
from tests.device.town import Town


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where possible: what is tested is that it syncs, not how long a disk takes."""
    made = Path(tempfile.mkdtemp(dir=memory_folder()))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def bench(folder: Path) -> Bench:
    return Bench(folder / "device.ldp")


@pytest.fixture
def town(folder: Path) -> Town:
    return Town(folder / "device.ldp")
