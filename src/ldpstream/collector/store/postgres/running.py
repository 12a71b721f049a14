"""How the statements that both stores share are run on PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from ldpstream.collector.store.postgres.connections import Connections, Transaction
from ldpstream.collector.store.postgres.migrations import take_turns
from ldpstream.collector.store.statements import Execute, Result, Work

CHANGE = Transaction("change", again=True)
CHANGE_ALONE = Transaction("change_alone", again=False)


@dataclass(frozen=True)
class PostgresTables:
    """Runs statements in transactions of their own."""

    connections: Connections

    def read(self, work: Work[Result]) -> Result:
        return self.connections.read(lambda connection: work(executing(connection)))

    def change(self, work: Work[Result]) -> Result:
        return self.connections.do(CHANGE, lambda connection: work(executing(connection)))

    def change_alone(self, work: Work[Result]) -> Result:
        def alone(connection: psycopg.Connection) -> Result:
            take_turns(connection)
            return work(executing(connection))

        return self.connections.do(CHANGE_ALONE, alone)


def executing(connection: psycopg.Connection) -> Execute:
    """Return what runs a statement on a connection."""

    def run(statement: str, *given: object) -> psycopg.Cursor:
        return connection.execute(statement.encode(), given)

    return run
