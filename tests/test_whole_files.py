"""Files that survive a power cut as they were, or as they were to become."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from ldpstream.collector.credentials.secrets import _draw
from ldpstream.device.witness import CounterFile
from ldpstream.lab.files import write_whole as write_report

WRITERS: dict[str, Callable[[Path], object]] = {
    "a report": lambda path: write_report(path, "text"),
    "a device's counter": lambda path: CounterFile(path).committed("1"),
    "a drawn secret": _draw,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_content_is_on_disk_before_its_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], object]
) -> None:
    path, steps = tmp_path / "file", []
    fsync, rename = os.fsync, os.replace

    def sync(handle: int) -> None:
        found = os.fstat(handle)
        folder = stat.S_ISDIR(found.st_mode)
        steps.append("the folder" if folder else f"{found.st_size} bytes")
        fsync(handle)

    def replace(old: Path, new: Path) -> None:
        steps.append("the name")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    write(path)
    assert steps == [f"{path.stat().st_size} bytes", "the name", "the folder"]
    assert list(tmp_path.iterdir()) == [path]


def test_secrets_and_counters_are_their_owners_and_reports_everyones(tmp_path: Path) -> None:
    modes = []
    for number, write in enumerate(WRITERS.values()):
        write(tmp_path / str(number))
        modes.append(stat.S_IMODE((tmp_path / str(number)).stat().st_mode))
    assert modes == [0o644, 0o600, 0o600]
