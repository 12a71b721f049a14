"""Experiments on a Dask cluster of two workers, on this machine."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest

from ldpstream.errors import LdpStreamError, Mistake
from ldpstream.lab import fingerprint
from ldpstream.lab.cache import ResultCache
from ldpstream.lab.engines import DaskCluster, InProcess, engine_named
from ldpstream.lab.plugins import load_plugins
from ldpstream.mechanisms.registry import unregister
from ldpstream.streams.synthetic import sin
from tests.lab.grids import figures, small_grid, write_plugin

dask: Any = distributed  # its classes have no types


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with dask.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        local_directory=str(tmp_path_factory.mktemp("dask")),
    ) as local:
        yield local


@pytest.fixture
def engine(cluster: Any) -> DaskCluster:
    named = engine_named(cluster.scheduler_address.replace("tcp://", "dask://"))
    assert isinstance(named, DaskCluster)
    return named


def test_a_worker_is_killed_half_way(cluster: Any, engine: DaskCluster, tmp_path: Path) -> None:
    with dask.Client(cluster) as client:
        victim, survivor = client.run(os.getpid).values()
    done, at_work = 0, 0

    def kill_half_way(number: int) -> None:
        nonlocal done, at_work
        done += number
        if done == 4:
            os.kill(victim, signal.SIGKILL)
            states = [task.state for task in [*cluster.scheduler.tasks.values()]]
            at_work = states.count("processing")

    grid = small_grid(streams=[sin(20_000, 400)], repeats=4)
    expected = figures(grid.run(engine=InProcess()))
    with ResultCache(tmp_path / "results.db") as cache:
        results = grid.run(engine=engine, cache=cache, progress=kill_half_way)
        assert figures(results) == expected
    assert done == 24
    assert at_work >= 4  # of which, with two workers, one half was the victim's
    with dask.Client(cluster) as client:
        now = set(client.run(os.getpid).values())
    assert survivor in now
    assert victim not in now


def test_a_users_own_mechanism_reaches_the_workers(engine: DaskCluster, tmp_path: Path) -> None:
    load_plugins([write_plugin(tmp_path)])
    try:
        grid = small_grid(mechanisms=["every-other"], repeats=1)
        assert figures(grid.run(engine=engine)) == figures(grid.run(engine=InProcess()))
    finally:
        unregister("every-other")


def test_workers_with_other_code_are_refused(
    engine: DaskCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "of_package", lambda: "newer")
    with pytest.raises(Mistake, match="another version of this package"):
        small_grid(repeats=1).run(engine=engine)


def test_a_consumer_that_goes_away_stops_the_rest(cluster: Any, engine: DaskCluster) -> None:
    def stop(number: int) -> None:
        if number:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small_grid(repeats=20, seed=1).run(engine=engine, progress=stop)
    deadline = time.monotonic() + 20
    while cluster.scheduler.tasks and time.monotonic() < deadline:
        time.sleep(0.02)  # what is running now may finish, and what waits is forgotten
    assert not cluster.scheduler.tasks


def test_a_scheduler_that_goes_away_is_told(
    engine: DaskCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What distributed makes of every future then, after half a minute of trying.
    def lost(future: object) -> None:
        raise dask.client.FutureCancelledError("task", "scheduler-connection-lost")

    monkeypatch.setattr(dask.Future, "result", lost)
    with pytest.raises(LdpStreamError, match=r"scheduler was lost; .* results so far are kept"):
        small_grid(repeats=1).run(engine=engine)


def test_without_a_scheduler_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldpstream.lab.engines.dask_cluster.PATIENCE", 0.5)
    with pytest.raises(Mistake, match=r"dask://127\.0\.0\.1:9, where no scheduler answers"):
        small_grid().run(engine=engine_named("dask://127.0.0.1:9"))


def test_without_the_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(Mistake, match=r"pip install 'ldpstream\[dask\]'"):
        small_grid().run(engine=engine_named("dask://127.0.0.1:9"))
