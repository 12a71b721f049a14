"""A pool of worker processes on all cores, which are started once and driven through pipes.

The two standard pools do not fit: one hangs when a worker dies, and the other cannot be stopped
before the running tasks are done.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait

from ldpstream.compiled import cores
from ldpstream.errors import LdpStreamError, Problem
from ldpstream.lab.engines.engine import Engine
from ldpstream.lab.engines.worker import READY, Order, serve
from ldpstream.lab.plugins import plugins_of
from ldpstream.lab.tasks import Figures, Task
from ldpstream.streams.stream import Stream

SPAWN = multiprocessing.get_context("spawn")
"""Fresh interpreters: forking a process that has threads, such as NumPy's, can deadlock."""
ENDING_SECONDS = 5.0
"""How long a worker may take to end when it is told to."""


class ProcessPool(Engine):
    """A pool whose workers start with the first run and serve the next ones until it is closed."""

    def __init__(self, workers: int | None = None) -> None:
        self.size = workers or cores()
        self._workers: list[Worker] = []

    def run(
        self, tasks: Sequence[Task], streams: Mapping[str, Stream]
    ) -> Generator[tuple[Task, Figures]]:
        waiting = deque(tasks)
        try:
            self._start(min(self.size, len(tasks)))
            for worker in self._workers:
                worker.take_on(waiting, streams)
            while busy := [worker for worker in self._workers if worker.task]:
                for worker in _heard_from(busy):
                    done = worker.hear()
                    if done is not None:
                        # Before the yield: the caller may take a while to handle the result.
                        worker.take_on(waiting, streams)
                        yield done
        except BaseException:  # also Ctrl-C and a closed generator: no task may go on
            self.close()
            raise

    def close(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def _start(self, number: int) -> None:
        with _interrupts_ignored():
            while len(self._workers) < number:
                self._workers.append(Worker())


class Worker:
    """The parent's end of a worker process: at most one task at a time."""

    def __init__(self) -> None:
        self.pipe, theirs = SPAWN.Pipe()
        # A daemon ends with its parent; if the parent is killed, the closed pipe ends it.
        self._process = SPAWN.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._ready = False
        self._streams: set[str] = set()
        self.task: Task | None = None

    def take_on(self, waiting: deque[Task], streams: Mapping[str, Stream]) -> None:
        """Send the next task, if there is one."""
        if not waiting:
            return
        self.task = task = waiting.popleft()
        stream = None if task.stream in self._streams else streams[task.stream]
        self._streams.add(task.stream)
        try:
            self.pipe.send(Order(plugins_of(task.classes), stream, pickle.dumps(task)))
        except OSError:
            raise self._lost() from None

    def hear(self) -> tuple[Task, Figures] | None:
        """Return a finished task with its figures; None if the worker only says it is ready."""
        try:
            message = self.pipe.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        if message == READY:
            self._ready = True
            return None
        if isinstance(message, Exception):
            raise message
        assert self.task is not None
        task, self.task = self.task, None
        return task, message

    def end(self) -> None:
        self._process.terminate()
        self._process.join(ENDING_SECONDS)
        self._process.kill()  # Ctrl-C must end it, whatever a mechanism does with signals
        self._process.join()
        self._process.close()
        self.pipe.close()

    def _lost(self) -> LdpStreamError:
        if not self._ready:
            return LdpStreamError(Problem.WORKER_START)
        return LdpStreamError(Problem.WORKER_LOST, task=self.task)


def _heard_from(workers: list[Worker]) -> Iterator[Worker]:
    by_pipe = {worker.pipe: worker for worker in workers}
    return (by_pipe[pipe] for pipe in wait(list(by_pipe)))  # type: ignore[index]


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Make processes that are started here ignore Ctrl-C from their first instruction on.

    Only the main thread can change that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
