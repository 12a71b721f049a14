"""The examples do what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
MECHANISM = EXAMPLES / "own_mechanism.py"
NOTEBOOK = EXAMPLES / "first_stream.ipynb"

COMPARE = "import sys; from ldpstream.cli import run; sys.exit(run(sys.argv[1:]))"
EXECUTE = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


def run_fresh(program: str, *arguments: str, home: Path) -> str:
    """In a process of its own: plug-ins stay registered, and kernels warn."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"LDPSTREAM_HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_own_mechanism_is_short() -> None:
    assert len(MECHANISM.read_text().splitlines()) < 40


def test_own_mechanism_shows_up_in_compare(tmp_path: Path) -> None:
    stream = ("--stream", "sin", "--users", "2000", "--timestamps", "60", "--windows", "6,10")
    grid = ("--epsilons", "1", "--repeats", "2", "--plugin", str(MECHANISM))
    out = tmp_path / "out"
    said = run_fresh(COMPARE, "compare", *stream, *grid, "--out", str(out), "--json", home=tmp_path)
    ranking = {row["mechanism"]: row for row in json.loads(said)["ranking"]}
    assert {"lpa", "periodic"} <= ranking.keys()
    assert 0 < ranking["periodic"]["cfpu"] < ranking["lpu"]["cfpu"] + 0.01
    assert "periodic" in (out / "report.html").read_text(encoding="utf-8")


def test_the_notebook_runs(tmp_path: Path) -> None:
    executed = tmp_path / "executed.ipynb"
    run_fresh(EXECUTE, str(NOTEBOOK), str(executed), home=tmp_path)
    outputs = outputs_of(executed)
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    words = "".join("".join(output.get("text", "")) for output in outputs)
    assert "Use " in words


def test_the_notebook_is_kept_with_its_pictures() -> None:
    assert sum("image/png" in output.get("data", {}) for output in outputs_of(NOTEBOOK)) == 2


def outputs_of(notebook: Path) -> list[dict[str, Any]]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])]
