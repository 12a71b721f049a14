"""A small pool of connections to the database, which reconnects and retries."""

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
"""Connections of one collector; the counts of its log use as many again. PostgreSQL allows 100 in
all by default."""
CONNECT_SECONDS = 5
CLOSE_SECONDS = 5
PROBES = 3
"""TCP keepalive probes without an answer before a connection is given up."""
ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.05
RETRY_SECONDS = 1

ROLLED_BACK = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.IdleInTransactionSessionTimeout,
)
"""Errors after which it is certain that nothing has changed."""
LOST = (psycopg.OperationalError, psycopg.InterfaceError)
"""Errors after which the transaction may or may not have been committed."""

Result = TypeVar("Result")
Work = Callable[[psycopg.Connection], Result]


@dataclass(frozen=True)
class Transaction:
    """A kind of transaction: its name, and whether it is idempotent."""

    name: str
    again: bool
    """Whether it is idempotent: then it is retried if the connection is lost."""


@dataclass
class Connections:
    """A pool of connections, which runs transactions and retries them with backoff."""

    database: Database
    patience_ms: int
    """A transaction that is idle for so long is ended by the server: its process was stopped, or is
    gone, and others wait for its locks."""
    _idle: queue.LifoQueue[psycopg.Connection | None] = field(default_factory=queue.LifoQueue)
    _closed: bool = False

    def __post_init__(self) -> None:
        for _ in range(MOST_CONNECTIONS):
            self._idle.put(None)

    @classmethod
    def to_tables(cls, database: Database, patience_ms: int) -> Connections:
        """Connect to a database, and bring its tables to their newest version."""
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
        """Close all connections, each once it is no longer in use; no call may follow."""
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
        """Lend a connection in autocommit mode; a broken one is discarded."""
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
        """Run work that changes no data, without a transaction."""
        return self._with_retries(Transaction("read", again=True), work)

    def do(self, transaction: Transaction, work: Work[Result]) -> Result:
        """Run `work` in a transaction; return its result once that is durable."""

        def whole(connection: psycopg.Connection) -> Result:
            with connection.transaction():
                return work(connection)

        return self._with_retries(transaction, whole)

    def _with_retries(self, transaction: Transaction, work: Work[Result]) -> Result:
        retryable = ROLLED_BACK + LOST if transaction.again else ROLLED_BACK
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(ATTEMPTS):
            try:
                with self.use() as connection:
                    return work(connection)
            except errors.LockNotAvailable:
                raise  # whoever set the lock timeout handles it
            except ROLLED_BACK + LOST as error:
                if attempt == ATTEMPTS - 1 or not isinstance(error, retryable):
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
        prepare_threshold=None,  # plans would outlive the tables of rounds
        **_keepalive_options(patience_ms),
    )
    connection.execute(
        f"SET search_path = {SCHEMA}; SET synchronous_commit = on;"
        f" SET idle_in_transaction_session_timeout = {patience_ms};"
        " SET client_min_messages = warning"
    )
    return connection


@contextmanager
def connected(database: Database) -> Iterator[psycopg.Connection]:
    """Connect to a database for a while; report what it refuses as a mistake, in one line."""
    try:
        with connect(database) as connection:
            yield connection
    except psycopg.Error as error:
        raise Mistake(Problem.DATABASE, where=database, what=in_a_line(error)) from None


def _keepalive_options(patience_ms: int) -> dict[str, Any]:
    """Options with which TCP detects a dead peer in about `patience_ms`.

    A machine that lost its power or its network closes no connection, and the system's own timeouts
    are a quarter of an hour or more.
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
    """The first line of an error, without what a connection string may hold."""
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        return "the address cannot be read"  # the driver's message may quote its password
    return str(error).strip().splitlines()[0]
