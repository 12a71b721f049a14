"""Reading the database of collectors that may be running: without a lease, and without writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from ldpstream.collector.store.contract import Archive, Release
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.connections import connect, in_a_line
from ldpstream.collector.store.postgres.reading import select_releases
from ldpstream.errors import Mistake, Problem


@dataclass(frozen=True)
class PostgresArchive(Archive):
    """The releases in a database."""

    connection: psycopg.Connection

    def terms(self) -> dict[str, dict[str, Any]]:
        return dict(self.connection.execute("SELECT name, terms FROM stream").fetchall())

    def releases(self, stream: str, since: int) -> list[Release]:
        return select_releases(self.connection, stream, since, None)


@contextmanager
def open_archive(database: Database) -> Iterator[PostgresArchive]:
    """Open the database of collectors for reading."""
    try:
        with connect(database) as connection:
            connection.execute("SET default_transaction_read_only = on")
            yield PostgresArchive(connection)
    except psycopg.Error as error:
        raise Mistake(Problem.DATABASE, where=database, what=in_a_line(error)) from None
