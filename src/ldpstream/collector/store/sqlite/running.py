"""How the statements that both stores share are run on SQLite."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from ldpstream.collector.store.sqlite.readers import Readers
from ldpstream.collector.store.sqlite.writer import Writer
from ldpstream.collector.store.statements import Execute, Result, Work


@dataclass(frozen=True)
class SqliteTables:
    """Runs statements by the one thread that writes, and by readers of their own."""

    writer: Writer
    readers: Readers

    def read(self, work: Work[Result]) -> Result:
        with self.readers.use() as connection:
            return work(executing(connection))

    def change(self, work: Work[Result]) -> Result:
        return self.writer.do(lambda connection: work(executing(connection)))

    def change_alone(self, work: Work[Result]) -> Result:
        """Run work as the only writer; what was replaced is erased, since it may be a secret."""
        return self.writer.do(lambda connection: work(executing(connection)), erases=True)


def executing(connection: sqlite3.Connection) -> Execute:
    """Return what runs a statement on a connection."""

    def run(statement: str, *given: object) -> sqlite3.Cursor:
        return connection.execute(statement.replace("%s", "?"), given)

    return run
