"""Experiments on all cores: the same figures, and what happens when they are stopped or fail."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldpstream.errors import GuaranteeBroken, LdpStreamError, Mistake
from ldpstream.lab.cache import ResultCache
from ldpstream.lab.engines import DaskCluster, InProcess, ProcessPool, engine_for, engine_named
from ldpstream.lab.experiment import Experiment
from ldpstream.lab.plugins import load_plugins
from ldpstream.mechanisms.registry import names, unregister
from ldpstream.streams.synthetic import sin
from tests.lab.grids import (
    OWN_MECHANISM,
    Counting,
    figures,
    prepared_stream,
    small_grid,
    write_plugin,
)

PATIENCE = 60


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPool]:
    with ProcessPool(workers=2) as engine:
        yield engine  # the suite shares one: it must survive whatever a test does to it


@pytest.fixture
def own(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A user's file, loaded; a test may give the body of `decide`."""
    text = OWN_MECHANISM.replace("if t % 2:", f"{getattr(request, 'param', '')}\n        if t % 2:")
    path = write_plugin(tmp_path, text)
    load_plugins([path])
    yield path
    unregister("every-other")


def one_run(mechanism: str) -> Experiment:
    return Experiment([sin(2000, 40)], [mechanism], windows=[5], repeats=1)


def test_a_pool_gives_the_figures_of_one_process(pool: ProcessPool, tmp_path: Path) -> None:
    grid = small_grid(streams=[sin(2000, 40), prepared_stream(tmp_path)])
    expected = figures(grid.run(engine=InProcess()))
    assert figures(grid.run(engine=pool)) == expected
    assert figures(grid.run(engine=pool)) == expected  # and again, by the same workers


@pytest.mark.parametrize("own", ["fresh = 'loaded'"], indirect=True)
def test_a_users_own_mechanism_reaches_the_workers(pool: ProcessPool, own: Path) -> None:
    grid = small_grid(mechanisms=["every-other"])
    results = grid.run(engine=pool)  # loaded after the workers were started
    assert figures(results) == figures(grid.run(engine=InProcess()))
    assert results.rows[0]["publications"] == 20


@pytest.mark.parametrize("own", ["import os; os._exit(3)"], indirect=True)
def test_a_worker_that_dies_is_told_and_replaced(pool: ProcessPool, own: Path) -> None:
    with pytest.raises(LdpStreamError, match="worker process ended while it ran every-other on"):
        one_run("every-other").run(engine=pool)
    assert len(small_grid(repeats=1).run(engine=pool).rows) == 12


@pytest.mark.parametrize("own", ["raise KeyError('who')"], indirect=True)
def test_an_error_comes_with_its_traceback(pool: ProcessPool, own: Path) -> None:
    with pytest.raises(KeyError, match="who") as caught:
        one_run("every-other").run(engine=pool)
    assert "own.py" in "".join(caught.value.__notes__)


@pytest.mark.parametrize(
    "own",
    ["yield self.division.ask(self.division.total - 1, 'x')\n"
     "        yield self.division.ask(self.division.total - 1, 'x')"],
    indirect=True,
)  # fmt: skip
def test_a_broken_promise_is_told_as_one(pool: ProcessPool, own: Path) -> None:
    with pytest.raises(GuaranteeBroken, match="more users than a window has"):
        one_run("every-other").run(engine=pool)


def test_stopping_half_way_keeps_what_arrived(pool: ProcessPool, tmp_path: Path) -> None:
    told = 0

    def stop(number: int) -> None:
        nonlocal told
        told += number
        if told == 5:
            raise KeyboardInterrupt

    with ResultCache(tmp_path / "results.db") as cache:
        with pytest.raises(KeyboardInterrupt):
            small_grid().run(engine=pool, cache=cache, progress=stop)
        rest = Counting()
        small_grid().run(engine=rest, cache=cache)
    assert len(rest.ran) == 19


QUICK_RUNS = 5
HELD_UP = OWN_MECHANISM.replace(
    "        if t % 2:",
    f"""        EveryOther.runs += t == 1
        while EveryOther.runs > {QUICK_RUNS} and os.getppid() == EveryOther.parent:
            time.sleep(0.01)
        if t % 2:""",
).replace(
    "(Mechanism):",
    """(Mechanism):
    runs, parent = 0, os.getppid()
""",
)
"""Of each worker the first few runs are quick; the next one goes on for as long as its parent."""

SCRIPT = f"""
import os, sys, time
from pathlib import Path
from ldpstream.lab.engines import ProcessPool
from ldpstream.lab.experiment import Experiment, ResultCache
from ldpstream.streams.synthetic import sin
{HELD_UP}
if __name__ == "__main__":
    grid = Experiment([sin(2000, 100)], ["every-other"], windows=[5], repeats=1000)
    with ResultCache(Path(sys.argv[1])) as cache, ProcessPool(workers=2) as pool:
        try:
            grid.run(engine=pool, cache=cache, progress=lambda n: print(n, flush=True))
        except KeyboardInterrupt:
            sys.exit("stopped")
"""


class Script:
    """A user's script, with a mechanism in it, in a process group as a shell makes one."""

    def __init__(self, folder: Path) -> None:
        path = folder / "script.py"
        path.write_text(SCRIPT)
        self.store = folder / "results.db"
        self.process = subprocess.Popen(
            [sys.executable, str(path), str(self.store)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for_results(self, number: int) -> int:
        """Wait for so many new ones; the number of those that were known before."""
        assert self.process.stdout is not None
        known, *_ = [int(self.process.stdout.readline()) for _ in range(number + 1)]
        return known

    def end(self) -> tuple[str, str]:
        return self.process.communicate(timeout=PATIENCE)

    def wait_for_workers_to_end(self) -> None:
        """No process is left in the group."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.02)
        raise AssertionError("a worker goes on")

    def stored(self) -> int:
        store = sqlite3.connect(self.store)
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (number,) = store.execute("SELECT count(*) FROM results").fetchone()
        store.close()
        return int(number)


def test_killed_it_goes_on_where_it_was_and_ctrl_c_ends_it_quietly(tmp_path: Path) -> None:
    killed = Script(tmp_path)
    killed.wait_for_results(QUICK_RUNS)
    killed.process.kill()
    killed.end()
    killed.wait_for_workers_to_end()
    before = killed.stored()
    assert before >= QUICK_RUNS

    stopped = Script(tmp_path)
    known = stopped.wait_for_results(QUICK_RUNS)
    os.killpg(stopped.process.pid, signal.SIGINT)  # as a terminal does: to parent and workers
    _, err = stopped.end()
    assert (stopped.process.returncode, err) == (1, "stopped\n")
    stopped.wait_for_workers_to_end()
    assert known == before
    assert stopped.stored() >= before + QUICK_RUNS


def test_a_script_without_a_main_guard_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bare.py"
    path.write_text(SCRIPT.replace('if __name__ == "__main__":', "if True:"))
    store = str(tmp_path / "results.db")
    run = subprocess.run(
        [sys.executable, str(path), store],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    assert "below: if __name__ == '__main__'" in run.stderr.splitlines()[-1]


class TestChoice:
    def test_by_name(self) -> None:
        assert isinstance(engine_named(None), ProcessPool)
        assert isinstance(engine_named("dask://host:1"), DaskCluster)
        for wrong in ("spark", "dask://", "host:8786"):
            with pytest.raises(Mistake, match=r"--engine is .*; give dask://HOST:PORT"):
                engine_named(wrong)

    def test_short_work_stays_here_and_long_work_spreads(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def chosen(grid: Experiment) -> type:
            streams = {stream.fingerprint: stream for stream in grid.streams}
            return type(engine_for(grid.tasks(), streams))

        monkeypatch.setattr("ldpstream.lab.engines.choice.cores", lambda: 2)
        long = Experiment([sin()], names(), repeats=10)
        assert chosen(small_grid()) is InProcess
        assert chosen(long) is ProcessPool
        monkeypatch.setattr("ldpstream.lab.engines.choice.cores", lambda: 1)
        assert chosen(long) is InProcess
