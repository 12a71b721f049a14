"""Every benchmark starts as its docstring says, from anywhere, and explains itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
STARTED = [path for path in sorted(BENCHMARKS.glob("*.py")) if "__main__" in path.read_text()]


@pytest.mark.parametrize("path", STARTED, ids=lambda path: path.stem)
def test_a_benchmark_explains_itself(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(path), "--help"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("usage: ")
