"""The only thread that writes: it commits waiting changes together, to share one disk sync."""

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
    """A thread that runs work in transactions, in the order of submission."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        begin: Callable[[], None],
        undone: Callable[[sqlite3.Connection], None],
        done: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._begin = begin
        """Called before a transaction; if it raises, nothing is done."""
        self._undone = undone
        """Called after a rollback: what the work changed in memory must be read from disk again."""
        self._done = done
        """Called after a commit, before anyone hears of it."""
        self._in_doubt = False
        """Whether a transaction has failed and could not be undone yet."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="ldpstream-writer", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[sqlite3.Connection], Result], *, erases: bool = False) -> Result:
        """Run `work` in a transaction; return its result once that is on disk.

        If it erases something, that is off the disk by then, unless a reader still uses it.
        """
        if self._closed:
            raise RuntimeError("the store is closed")
        future: Future[Result] = Future()
        self._jobs.put(_Job(work, future, erases))
        return future.result()

    def close(self) -> None:
        """Finish the work that was submitted before, and stop the thread."""
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
            with contextlib.suppress(Exception):  # the next transaction tries again first
                self._undo()
        else:
            if any(job.erases for job in jobs):
                self._empty_log()
            with contextlib.suppress(OSError):  # told before the next transaction
                self._done()
        for future, result, failure in outcomes:
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

    def _empty_log(self) -> None:
        """Move the write-ahead log into the file, since it still holds what was erased there.

        This does not wait for a reader that still uses the log: then it is emptied the next time.
        """
        with contextlib.suppress(sqlite3.Error):  # commits are safe in the log as well
            (patience,) = self._connection.execute("PRAGMA busy_timeout").fetchone()
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {patience}")

    def _undo(self) -> None:
        """Roll back a failed transaction, in the file and in memory."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._undone(self._connection)
        self._in_doubt = False

    def _attempt(self, job: _Job) -> tuple[Any, BaseException | None]:
        """Run one job of a transaction; if it fails, the others go on without it."""
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
