"""The pages whose commands a reader types: every one is run, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

from tests.programs import free_port
from tests.verify.environments import ROOT
from tests.verify.pages import read_blocks, reading


def test_the_tutorial_prints_what_it_shows(tmp_path: Path) -> None:
    blocks = read_blocks(ROOT / "docs" / "tutorial.md")
    assert sum(1 for block in blocks for _ in block.commands) >= 15
    with reading(tmp_path, free_port()) as reader:
        for block in blocks:
            reader.follow(block)
