"""Reading the database of collectors that may be running: without a lease, and without writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from ldpstream.collector.store.chain import Chain, ChainCheck, Progress, ignore
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres import chained
from ldpstream.collector.store.postgres.connections import connected
from ldpstream.collector.store.postgres.migrations import version_of
from ldpstream.collector.store.postgres.running import executing
from ldpstream.collector.store.sql import SqlArchive
from ldpstream.collector.store.statements import Execute
from ldpstream.collector.store.versions import CHAINED


@dataclass(frozen=True)
class PostgresArchive(SqlArchive):
    """The releases in a database."""

    database: Database
    connection: psycopg.Connection
    version: int

    @property
    def _run(self) -> Execute:
        return executing(self.connection)

    def chain(self, master: bytes) -> Chain | None:
        if self.version < CHAINED:
            return None
        return chained.read_chain(self.connection, master, self.database)

    def check_releases(self, chain: Chain, stream: str, progress: Progress = ignore) -> ChainCheck:
        return chained.check(self.connection, chain, stream, progress)


def is_begun(database: Database) -> bool:
    """Return whether a collector has made its tables in the database."""
    with connected(database) as connection:
        row = connection.execute("SELECT to_regclass('stream') IS NOT NULL").fetchone()
    return row is not None and bool(row[0])


@contextmanager
def open_archive(database: Database) -> Iterator[PostgresArchive]:
    """Open the database of collectors for reading."""
    with connected(database) as connection:
        connection.execute(
            "SET default_transaction_read_only = on;"
            " SET default_transaction_isolation = 'repeatable read'"
        )
        with connection.transaction():  # what is checked is what is read
            yield PostgresArchive(database, connection, version_of(connection))
