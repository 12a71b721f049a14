"""kill -9 between every two lines of the device's code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_device_survives_being_killed_anywhere(folder: Path) -> None:
    lab = [sys.executable, "-m", "tests.device.crash_lab", str(folder)]
    run = subprocess.run(lab, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["faults"] == []
    assert found["crashes"] > 100  # it did die in many places,
    assert found["sent"] > 3  # also after something had left it
