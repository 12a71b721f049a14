"""Connections to the database: few, used by turns, and replaced when they are lost."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.migrations import SCHEMA, migrate
from ldpstream.errors import Mistake, Problem

MOST_CONNECTIONS = 8
"""Of one collector, and as many again for the counts of its log. PostgreSQL allows 100 in all
unless it is told otherwise."""
CONNECT_SECONDS = 5
CLOSE_SECONDS = 5
PROBES = 3
"""Of a line on which nothing moves, before it is given up."""
ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.05
RETRY_SECONDS = 1

ROLLED_BACK = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.IdleInTransactionSessionTimeout,
)
"""After these it is certain that nothing has changed."""
LOST = (psycopg.OperationalError, psycopg.InterfaceError)
"""After these the transaction may have been committed, or not."""

Result = TypeVar("Result")
Work = Callable[[psycopg.Connection], Result]


@dataclass(frozen=True)
class Transaction:
    """A named piece of work that is done as a whole, or not at all."""

    name: str
    again: bool
    """Whether doing it twice is like doing it once: then it is repeated if the line breaks."""


@dataclass
class Connections:
    """Hands out connections, and runs transactions on them."""

    database: Database
    patience_ms: int
    """A transaction that does nothing for so long is ended by the server: its process was stopped,
    or is gone, and others wait for its locks."""
    _idle: queue.LifoQueue[psycopg.Connection | None] = field(default_factory=queue.LifoQueue)
    _closed: bool = False

    def __post_init__(self) -> None:
        for _ in range(MOST_CONNECTIONS):
            self._idle.put(None)

    @classmethod
    def to_tables(cls, database: Database, patience_ms: int) -> Connections:
        """To a database that has our tables, in their newest version."""
        connections = cls(database, patience_ms)
        try:
            with connections.use() as connection:
                migrate(connection, database)
        except Exception as error:
            connections.close()
            if not isinstance(error, psycopg.Error):
                raise
            raise Mistake(Problem.DATABASE, where=database, what=in_a_line(error)) from None
        return connections

    def close(self) -> None:
        """Close them, each when it is not in use any more; nothing is run afterwards."""
        self._closed = True
        with suppress(queue.Empty):
            for _ in range(MOST_CONNECTIONS):
                connection = self._idle.get(timeout=CLOSE_SECONDS)
                if connection is not None:
                    connection.close()
        for _ in range(MOST_CONNECTIONS):
            self._idle.put(None)

    @contextmanager
    def use(self) -> Iterator[psycopg.Connection]:
        """A connection in autocommit mode; one that broke is thrown away."""
        connection = self._idle.get()
        try:
            if self._closed:
                raise RuntimeError("the store is closed")
            if connection is None:
                connection = connect(self.database, self.patience_ms)
            yield connection
        finally:
            if connection is not None and connection.closed:
                connection = None
            self._idle.put(connection)

    def read(self, work: Work[Result]) -> Result:
        """Run what changes nothing."""
        return self._repeated(Transaction("read", again=True), work)

    def do(self, transaction: Transaction, work: Work[Result]) -> Result:
        """Run `work` in a transaction; return what it gave when that is on disk."""

        def whole(connection: psycopg.Connection) -> Result:
            with connection.transaction():
                return work(connection)

        return self._repeated(transaction, whole)

    def _repeated(self, transaction: Transaction, work: Work[Result]) -> Result:
        harmless = ROLLED_BACK + LOST if transaction.again else ROLLED_BACK
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(ATTEMPTS):
            try:
                with self.use() as connection:
                    return work(connection)
            except errors.LockNotAvailable:
                raise  # who set the limit knows what to do
            except ROLLED_BACK + LOST as error:
                if attempt == ATTEMPTS - 1 or not isinstance(error, harmless):
                    raise Mistake(Problem.UNAVAILABLE, seconds=RETRY_SECONDS) from error
            time.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")


def connect(database: Database, patience_ms: int = 0) -> psycopg.Connection:
    connection = psycopg.connect(
        database.url,
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        application_name="ldpstream",
        prepare_threshold=None,  # the tables of rounds come and go, and plans would stay
        **_signs_of_life(patience_ms),
    )
    connection.execute(
        f"SET search_path = {SCHEMA}; SET synchronous_commit = on;"
        f" SET idle_in_transaction_session_timeout = {patience_ms};"
        " SET client_min_messages = warning"
    )
    return connection


def _signs_of_life(patience_ms: int) -> dict[str, Any]:
    """How TCP notices, in about `patience_ms`, that nobody is at the other end any more.

    A machine that lost its power or its network says no goodbye, and the system's own patience is
    a quarter of an hour, or two.
    """
    if not patience_ms:
        return {}
    probe = max(1, patience_ms // 1000 // (PROBES + 1))
    return {
        "keepalives_idle": probe,
        "keepalives_interval": probe,
        "keepalives_count": PROBES,
        "tcp_user_timeout": patience_ms,
    }


def in_a_line(error: psycopg.Error) -> str:
    """What the server or the driver says, without what a connection string may hold."""
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        return "the address cannot be read"  # the driver's words would quote it, password and all
    return str(error).strip().splitlines()[0]
