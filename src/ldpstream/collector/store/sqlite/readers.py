"""A pool of connections for reading, because the threads that read come and go."""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

MOST_IDLE = 64


class Readers:
    """A pool of connections, which keeps at most `MOST_IDLE` of them for the next readers."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue(MOST_IDLE)
        self._closed = False

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; it is discarded if the reader fails."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)

    def close(self) -> None:
        """Close all connections; those in use are closed when they are given back."""
        self._closed = True
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    def _take(self) -> sqlite3.Connection:
        if self._closed:
            raise RuntimeError("the store is closed")
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._connect()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        try:
            if self._closed:
                raise queue.Full
            self._idle.put_nowait(connection)
        except queue.Full:
            connection.close()
