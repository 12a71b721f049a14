"""The rule that nothing is skipped under CI, tried on a suite that skips in every way there is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SKIPPING = {
    "mark": "import pytest\n@pytest.mark.skip(reason='no wish')\ndef test_it(): pass",
    "call": "import pytest\ndef test_it(): pytest.skip('no wish')",
    "fixture": (
        "import pytest\n@pytest.fixture\ndef thing(): pytest.skip('no wish')\n"
        "def test_it(thing): pass"
    ),
    "module": "import pytest\npytest.skip('no wish', allow_module_level=True)",
    "doctest": "'''\n>>> 1  # doctest: +SKIP\n2\n'''",
}
EXPECTED = "import pytest\n@pytest.mark.xfail\ndef test_it(): assert False"


def run_suite(folder: Path, ci: str) -> subprocess.CompletedProcess[str]:
    # The suite lies beside the conftest's folder, as src/ does.
    for name in ("tests", "elsewhere"):
        (folder / name).mkdir()
    shutil.copy(Path(__file__).with_name("conftest.py"), folder / "tests")
    (folder / "tests" / "test_fine.py").write_text("def test_it(): pass")
    for name, source in {**SKIPPING, "expected": EXPECTED}.items():
        (folder / "elsewhere" / f"test_{name}.py").write_text(source)
    options = ["--doctest-modules", "--continue-on-collection-errors", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests", "elsewhere"],
        cwd=folder,
        env=os.environ | {"CI": ci, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_skip_fails_under_ci(tmp_path: Path) -> None:
    run = run_suite(tmp_path, ci="true")
    assert run.returncode == 1, run.stdout
    summary = run.stdout[run.stdout.index("short test summary") :]
    for way in SKIPPING:
        assert f"elsewhere/test_{way}.py" in summary
    assert "1 passed, 1 xfailed" in summary
    assert "skipped in" not in summary


def test_a_skip_is_a_skip_elsewhere(tmp_path: Path) -> None:
    run = run_suite(tmp_path, ci="")
    assert run.returncode == 0, run.stdout
    assert "skipped, 1 xfailed" in run.stdout.splitlines()[-1]
