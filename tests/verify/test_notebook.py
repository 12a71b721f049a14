"""The notebook of the examples runs from its first cell to its last, and draws its pictures."""

from __future__ import annotations

from pathlib import Path

from tests.test_examples import NOTEBOOK, outputs_of, run_fresh

EXECUTE = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


def test_the_notebook_runs(tmp_path: Path) -> None:
    executed = tmp_path / "executed.ipynb"
    run_fresh(EXECUTE, str(NOTEBOOK), str(executed), home=tmp_path)
    outputs = outputs_of(executed)
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    words = "".join("".join(output.get("text", "")) for output in outputs)
    assert "Use " in words
