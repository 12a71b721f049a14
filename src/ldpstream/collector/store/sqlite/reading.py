"""Reading the file of a collector that may be running: without its lock, and without writing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldpstream.collector.store.chain import Chain, ChainCheck, Progress, ignore
from ldpstream.collector.store.contract import Archive
from ldpstream.collector.store.damage import reading_store
from ldpstream.collector.store.sql import SqlArchive
from ldpstream.collector.store.sqlite import chained
from ldpstream.collector.store.sqlite.integrity import check_content
from ldpstream.collector.store.sqlite.migrations import NOTED, version_of
from ldpstream.collector.store.sqlite.running import executing
from ldpstream.collector.store.statements import Execute
from ldpstream.collector.store.versions import CHAINED
from ldpstream.errors import Mistake, Problem


@dataclass(frozen=True)
class SqliteArchive(SqlArchive):
    """The releases in a file."""

    file: Path
    connection: sqlite3.Connection
    version: int

    @property
    def _run(self) -> Execute:
        return executing(self.connection)

    def note(self, stream: str, name: str) -> dict[str, Any] | None:
        return super().note(stream, name) if self.version >= NOTED else None

    def chain(self, master: bytes) -> Chain | None:
        if self.version < CHAINED:
            return None
        return chained.read_chain(self.connection, master, self.file)

    def check_releases(self, chain: Chain, stream: str, progress: Progress = ignore) -> ChainCheck:
        return chained.check(self.connection, chain, stream, progress)


@contextmanager
def open_archive(file: Path) -> Iterator[Archive]:
    """Open the file of a collector for reading."""
    try:
        if not file.is_file():
            raise sqlite3.OperationalError("there is no such file")
        uri = f"{file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("BEGIN")  # what is checked is what is read
            version = version_of(connection, file)
            with reading_store(file):
                check_content(connection, version)
                yield SqliteArchive(file, connection, version)
    except sqlite3.Error as error:
        fix = "give the store of a collector"
        raise Mistake(Problem.DATA_FILE, file=file, what=error, fix=fix) from None
