"""Kernels of several processes share one cache on disk, and one process runs them on threads."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import numpy as np

from ldpstream.compiled import LEAST_CHUNK, in_chunks

KERNELS = """
import sys, time
from pathlib import Path
import numpy as np
from numba.core import caching
from ldpstream.compiled import compiled

class Slow(caching.IndexDataCacheFile):
    def _save_index(self, overloads):
        time.sleep({"int": 0.5, "float": 1.0}[sys.argv[1]])  # both have taken number 1 by now
        super()._save_index(overloads)

    def _save_data(self, name, data):
        time.sleep({"int": 1.5, "float": 0.0}[sys.argv[1]])  # index of one, code of the other
        super()._save_data(name, data)

caching.IndexDataCacheFile = Slow

def meet():
    here = Path(sys.argv[0]).parent
    (here / sys.argv[1]).touch()
    for _ in range(6000):
        if (here / "int").exists() and (here / "float").exists():
            return
        time.sleep(0.01)

@compiled()
def double(values):
    return values + values

meet()
kind = {"int": np.int64, "float": np.float64}[sys.argv[1]]
print(double(np.array([1.5]).astype(kind))[0])
"""
TWINS = """
import sys
from pathlib import Path
import numpy as np
from ldpstream.compiled import compiled

@compiled()
def inner(values):
    return values + values

@compiled()
def outer(values):
    return inner(values) + 1

sys.stdin.readline()
assert outer(np.ones(3))[0] == 3
misses = [sum(kernel.stats.cache_misses.values()) for kernel in (inner, outer)]
print(sum(misses))
"""


def run_kernel(script: Path, kind: str, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(script), kind],
        env={"NUMBA_CACHE_DIR": str(cache), "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_that_compile_at_once_do_not_mix_up_their_signatures(tmp_path: Path) -> None:
    script = tmp_path / "kernels.py"
    script.write_text(KERNELS)
    for _ in range(2):  # the second time from the cache
        both = [run_kernel(script, kind, tmp_path / "cache") for kind in ("int", "float")]
        answers = [process.communicate(timeout=120)[0].strip() for process in both]
        assert answers == ["2", "3.0"]


def test_what_one_process_compiles_the_others_load(tmp_path: Path) -> None:
    script = tmp_path / "twins.py"
    script.write_text(TWINS)
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""}
    three = [
        subprocess.Popen(
            [sys.executable, str(script)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in three:  # all at once
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    compiled = [int(process.communicate(timeout=120)[0]) for process in three]
    assert sum(compiled) == 2  # each kernel once


def test_nobody_waits_for_good_for_a_process_that_is_suspended(tmp_path: Path) -> None:
    (tmp_path / "float").touch()
    script = tmp_path / "kernels.py"
    script.write_text("import ldpstream.compiled as c\nc.COMPILING_SECONDS = 0.1\n" + KERNELS)
    first = run_kernel(script, "int", tmp_path / "cache")  # leaves its lock behind
    assert first.communicate(timeout=120)[0].strip() == "2"
    (held,) = (tmp_path / "cache").rglob("*.lock")
    with held.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        late = run_kernel(script, "float", tmp_path / "cache")
        assert late.communicate(timeout=120)[0].strip() == "3.0"


def test_a_kernel_works_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "int").touch()  # nobody to wait for
    script = tmp_path / "kernels.py"
    script.write_text(
        "from numba.core import caching\n"
        "caching.CacheImpl._locator_classes = []  # as where no folder is writable\n" + KERNELS
    )
    output, _ = run_kernel(script, "float", tmp_path / "cache").communicate(timeout=120)
    assert output.strip() == "3.0"


def test_chunks_cover_all_rows_once_and_in_order() -> None:
    rows = 5 * LEAST_CHUNK + 7
    parts = in_chunks(rows, lambda start, stop: np.arange(start, stop), multiple=64)
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(rows))
