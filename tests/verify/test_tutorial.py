"""The pages whose commands a reader types: every one is run, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import free_port
from tests.verify.environments import ROOT
from tests.verify.pages import read_blocks, reading


@pytest.mark.parametrize("page", ["tutorial.md", "curl.md"])
def test_a_page_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    blocks = read_blocks(ROOT / "docs" / page)
    commands = [one for block in blocks if block.language == "console" for one in block.commands]
    assert len(commands) >= 15
    with reading(tmp_path, free_port()) as reader:
        for block in blocks:
            reader.follow(block)
