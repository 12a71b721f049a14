"""The one thread that writes: what waits is committed together, so that a disk sync serves many."""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

MOST_AT_ONCE = 1000

Result = TypeVar("Result")


@dataclass(frozen=True)
class _Job:
    work: Callable[[sqlite3.Connection], Any]
    future: Future[Any]
    erases: bool


class Writer:
    """Runs work in transactions, in the order in which it comes."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        begin: Callable[[], None],
        undone: Callable[[sqlite3.Connection], None],
    ) -> None:
        self._connection = connection
        self._begin = begin
        """Called before a transaction; if it raises, nothing is done."""
        self._undone = undone
        """Called after a failure: what the work left in memory is not on disk."""
        self._in_doubt = False
        """A transaction failed, and undoing it as well so far."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="ldpstream-writer", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[sqlite3.Connection], Result], *, erases: bool = False) -> Result:
        """Run `work`; return what it gave when that is on disk.

        If it erases something, that is off the disk then, unless a reader still looks at it.
        """
        if self._closed:
            raise RuntimeError("the store is closed")
        future: Future[Result] = Future()
        self._jobs.put(_Job(work, future, erases))
        return future.result()

    def close(self) -> None:
        """Finish what was given before."""
        self._closed = True
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            jobs = [self._jobs.get()]
            while len(jobs) < MOST_AT_ONCE and not self._jobs.empty():
                jobs.append(self._jobs.get())
            self._commit([job for job in jobs if job is not None])
            if None in jobs:
                return

    def _commit(self, jobs: list[_Job]) -> None:
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            if self._in_doubt:
                self._undo()
            self._begin()
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes.extend((job.future, *self._attempt(job)) for job in jobs)
            self._connection.execute("COMMIT")
        except Exception as error:
            outcomes = [(job.future, None, error) for job in jobs]
            self._in_doubt = True
            with contextlib.suppress(Exception):  # the next transaction begins with it
                self._undo()
        else:
            if any(job.erases for job in jobs):
                self._empty_log()
        for future, result, failure in outcomes:
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

    def _empty_log(self) -> None:
        """Move the write-ahead log into the file: what was erased there still stands in the log.

        A reader that is still in the log is not waited for: then it is emptied the next time.
        """
        with contextlib.suppress(sqlite3.Error):  # what was committed is safe in either
            (patience,) = self._connection.execute("PRAGMA busy_timeout").fetchone()
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {patience}")

    def _undo(self) -> None:
        """After a failed transaction."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._undone(self._connection)
        self._in_doubt = False

    def _attempt(self, job: _Job) -> tuple[Any, BaseException | None]:
        """One job of a transaction; if it fails, the others go on without it."""
        self._connection.execute("SAVEPOINT job")
        try:
            result = job.work(self._connection)
        except Exception as error:
            self._connection.execute("ROLLBACK TO job")
            self._connection.execute("RELEASE job")
            self._undone(self._connection)
            return None, error
        self._connection.execute("RELEASE job")
        return result, None
