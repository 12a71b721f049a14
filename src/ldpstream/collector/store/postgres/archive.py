"""Reading the database of collectors that may be running: without a lease, and without writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from ldpstream.collector.store.admin_tables import check_log
from ldpstream.collector.store.chain import Chain, Checked, Progress, ignore
from ldpstream.collector.store.chain_key import LOG
from ldpstream.collector.store.contract import EVER, Archive, Release, Round, Stream, TalliedRounds
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres import chained
from ldpstream.collector.store.postgres.connections import connect, in_a_line
from ldpstream.collector.store.postgres.reading import (
    select_note,
    select_releases,
    select_rounds,
    select_stream,
    select_tallied,
    select_versions,
)
from ldpstream.collector.store.postgres.running import executing
from ldpstream.collector.store.versions import CHAINED, LOGGED
from ldpstream.errors import Mistake, Problem


@dataclass(frozen=True)
class PostgresArchive(Archive):
    """The releases in a database."""

    database: Database
    connection: psycopg.Connection

    def terms(self) -> dict[str, dict[str, Any]]:
        return dict(self.connection.execute("SELECT name, terms FROM stream").fetchall())

    def versions(self, stream: str) -> list[dict[str, Any]]:
        return select_versions(self.connection, stream=stream)

    def stream(self, name: str) -> Stream | None:
        return select_stream(self.connection, name=name)

    def note(self, stream: str, name: str) -> dict[str, Any] | None:
        return select_note(self.connection, stream=stream, name=name)

    def releases(self, stream: str, since: int, limit: int | None = None) -> list[Release]:
        return select_releases(self.connection, stream, since, limit)

    def rounds(self, stream: str, after_t: int, until_t: int = EVER) -> list[Round]:
        return select_rounds(self.connection, stream, after_t, until_t)

    def tallied(self, stream: str, after_t: int, until_t: int) -> TalliedRounds:
        return select_tallied(self.connection, stream, after_t, until_t)

    def chain(self, master: bytes) -> Chain | None:
        if self._version < CHAINED:
            return None
        return chained.read_chain(self.connection, master, self.database)

    def check_releases(self, chain: Chain, stream: str, progress: Progress = ignore) -> Checked:
        return chained.check(self.connection, chain, stream, progress)

    def check_log(self, chain: Chain) -> Checked:
        if self._version < LOGGED:
            return Checked(LOG)
        return check_log(executing(self.connection), chain)

    @property
    def _version(self) -> int:
        row = self.connection.execute("SELECT max(number) FROM version").fetchone()
        return 0 if row is None or row[0] is None else int(row[0])


def is_begun(database: Database) -> bool:
    """Return whether a collector has made its tables in the database."""
    try:
        with connect(database) as connection:
            row = connection.execute("SELECT to_regclass('stream') IS NOT NULL").fetchone()
    except psycopg.Error as error:
        raise Mistake(Problem.DATABASE, where=database, what=in_a_line(error)) from None
    return row is not None and bool(row[0])


@contextmanager
def open_archive(database: Database) -> Iterator[PostgresArchive]:
    """Open the database of collectors for reading."""
    try:
        with connect(database) as connection:
            connection.execute(
                "SET default_transaction_read_only = on;"
                " SET default_transaction_isolation = 'repeatable read'"
            )
            with connection.transaction():  # what is checked is what is read
                yield PostgresArchive(database, connection)
    except psycopg.Error as error:
        raise Mistake(Problem.DATABASE, where=database, what=in_a_line(error)) from None
