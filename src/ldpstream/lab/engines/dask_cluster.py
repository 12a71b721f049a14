"""A Dask cluster: the same tasks, sent to a scheduler that finds workers for them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.lab import fingerprint
from ldpstream.lab.engines.engine import Engine
from ldpstream.lab.tasks import Figures, Task, perform
from ldpstream.streams.stream import Stream

SCHEME = "dask://"
PATIENCE = 10
"""Seconds to wait for the scheduler."""


class DaskCluster(Engine):
    """The scheduler at `dask://HOST:PORT`. Tasks of a worker that dies are run by another one.

    Workers must have this package in the same version. A user's own mechanism is sent to them. A
    stream that was prepared on disk is not: its folder must exist there under the same path.
    """

    def __init__(self, address: str) -> None:
        self.address = f"tcp://{address.removeprefix(SCHEME)}"

    def run(
        self, tasks: Sequence[Task], streams: Mapping[str, Stream]
    ) -> Generator[tuple[Task, Figures]]:
        distributed = _distributed()
        code = fingerprint.of_package()
        with self._client(distributed) as client:
            # Streams are tasks too, not scattered data: a copy that dies with its worker is remade.
            sent = {
                key: client.submit(pickle.loads, pickle.dumps(streams[key]), key=f"stream-{key}")
                for key in {task.stream for task in tasks}
            }
            futures = {
                client.submit(
                    _perform, _by_value(task), sent[task.stream], code, key=f"task-{task.key}"
                ): task
                for task in tasks
            }
            # Closing the client, for whatever reason, cancels the tasks that are not done.
            for future in distributed.as_completed(futures, loop=client.loop):
                yield futures[future], _result(future, futures[future], distributed)

    @contextmanager
    def _client(self, distributed: Any) -> Generator[Any]:
        try:
            client = distributed.Client(self.address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError):
            raise Mistake(
                Problem.OPTION,
                option="--engine",
                given=f"{self.address.replace('tcp://', SCHEME)}, where no scheduler answers",
                expected="the address of a running Dask scheduler",
            ) from None
        with client:
            yield client


def _result(future: Any, task: Task, distributed: Any) -> Figures:
    try:
        figures: Figures = future.result()
    except distributed.scheduler.KilledWorker:  # after several retries: the task is to blame
        raise LdpStreamError(Problem.WORKER_LOST, task=task) from None
    except CancelledError:
        raise LdpStreamError(Problem.CLUSTER_LOST) from None
    return figures


def _perform(task: bytes, stream: Stream, code: str) -> Figures:
    """Run a task on a Dask worker; refuse other code, whose figures would get the wrong key."""
    if fingerprint.of_package() != code:
        raise Mistake(Problem.WORKER_CODE)
    try:
        return perform(pickle.loads(task), stream)  # nosec B301 # noqa: S301 - from the parent
    except FileNotFoundError as error:
        raise Mistake(Problem.WORKER_DATA, file=error.filename) from None


def _by_value(task: Task) -> bytes:
    """Pickle a task with the code of a user's classes, which workers cannot import."""
    import cloudpickle

    theirs = {
        base.__module__
        for kind in task.classes
        for base in kind.__mro__
        if not fingerprint.is_ours(base) and base.__module__ in sys.modules
    }
    for name in theirs:
        cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        dumped: bytes = cloudpickle.dumps(task)
    finally:
        for name in theirs:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])
    return dumped


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise Mistake(Problem.EXTRA_MISSING, what="a Dask cluster", extra="dask") from None
    return distributed
