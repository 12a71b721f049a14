"""What importing the package loads, seen from a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

BARE_DEVICE = """
import sys
sys.modules["numpy"] = sys.modules["numba"] = None  # importing either now fails
from ldpstream.device import Epsilon, Oracle, SystemSource
for oracle in Oracle:
    device = oracle.device(labels=5, epsilon=Epsilon.of(1))
    report = device.perturb(4, SystemSource())
    assert device.decode(device.encode(report)) == report
    print(oracle)
"""


def run_fresh(program: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.parametrize("module", ["ldpstream", "ldpstream.device", "ldpstream.oracles"])
def test_importing_is_light(module: str) -> None:
    loaded = run_fresh(f"import sys, {module}; print(*sys.modules)")
    assert module in loaded
    assert not {"numpy", "numba", "matplotlib", "scipy", "rich", "typer"} & set(loaded)


def test_every_oracle_runs_on_a_device_without_numpy() -> None:
    from ldpstream.oracles import Oracle

    assert run_fresh(BARE_DEVICE) == [oracle.value for oracle in Oracle]
