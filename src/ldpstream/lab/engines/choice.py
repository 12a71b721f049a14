from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from ldpstream.compiled import cores
from ldpstream.errors import Mistake, Problem
from ldpstream.lab.engines.dask_cluster import SCHEME, DaskCluster
from ldpstream.lab.engines.engine import Engine, InProcess
from ldpstream.lab.engines.process_pool import ProcessPool
from ldpstream.lab.tasks import Task
from ldpstream.streams.stream import Stream

SECONDS_A_TIMESTAMP = 1e-4
SECONDS_A_USER_AND_TIMESTAMP = 1e-9
WORTH_A_POOL = 3.0
"""Seconds of work from which a pool pays: starting its processes costs about one."""


def engine_named(text: str | None) -> Engine:
    """Return the engine that `--engine` names; all cores of this machine if it is not given.

    >>> engine_named("dask://10.0.0.5:8786").address
    'tcp://10.0.0.5:8786'
    """
    if not text:
        return ProcessPool()
    if text.startswith(SCHEME) and text != SCHEME:
        return DaskCluster(text)
    raise Mistake(Problem.OPTION, option="--engine", given=text, expected=f"{SCHEME}HOST:PORT")


def engine_for(tasks: Sequence[Task], streams: Mapping[str, Stream]) -> Engine:
    """Return a pool on all cores for long work; this process for short work or local classes."""
    work = sum(_seconds(streams[task.stream]) for task in tasks)
    alone = cores() == 1 or len(tasks) == 1
    if alone or work < WORTH_A_POOL or any(_only_here(task) for task in tasks):
        return InProcess()
    return ProcessPool()


def _seconds(stream: Stream) -> float:
    """Estimate the time of a run, roughly: to tell a moment from a minute."""
    each = SECONDS_A_TIMESTAMP + SECONDS_A_USER_AND_TIMESTAMP * stream.users
    return stream.timestamps * each


def _only_here(task: Task) -> bool:
    """Return whether the mechanism is from a notebook or prompt, which no worker can import."""
    main = sys.modules["__main__"]
    written_here = any(kind.__module__ == "__main__" for kind in task.classes)
    return written_here and not hasattr(main, "__file__")
