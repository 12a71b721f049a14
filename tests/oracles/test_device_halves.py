"""A device half needs the standard library only."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ldpstream.oracles import Oracle


@pytest.mark.parametrize("oracle", list(Oracle))
def test_importing_a_device_half_loads_no_numpy(oracle: Oracle) -> None:
    program = f"import sys, ldpstream.oracles.{oracle.folder}.device; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert not {"numpy", "numba"} & set(run.stdout.decode().split())
