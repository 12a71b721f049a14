"""A database's store as a SQLite file, and back: tables and columns have the same names in both."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.connections import connected
from ldpstream.collector.store.postgres.migrations import (
    SCHEMA,
    STEPS,
    migrate,
    take_turns,
    version_of,
)
from ldpstream.collector.store.sqlite import migrations as sqlite_migrations
from ldpstream.collector.store.sqlite.portable import tables_of
from ldpstream.collector.store.sqlite.store import make_private
from ldpstream.errors import Mistake, Problem
from ldpstream.sqlite_files import reading

PAGE = 1000
_READ = {"json": "{}::text", "uuid": "uuid_send({})"}
"""How a column of a type is read; all others are read as they are."""
_WRITTEN: dict[str, Callable[[Any], Any]] = {"uuid": bytes.hex, "boolean": bool}
"""How a value of SQLite is written to a column of a type."""
_KEPT = {"round": sql.SQL("WHERE state = 'tallied'")}
"""Which rows of a table a backup holds, if not all."""


def dump(database: Database, target: Path) -> None:
    """Write the tables of collectors that may be running, as they are at one moment, to a file."""
    with connected(database) as connection, closing(sqlite3.connect(make_private(target))) as copy:
        connection.execute("SET default_transaction_isolation = 'repeatable read'")
        copy.isolation_level = None
        sqlite_migrations.migrate(copy, 0, lambda: None)
        with connection.transaction(), _without_triggers(copy):
            _check_version(connection, database)
            for table, columns in tables_of(copy).items():
                places = ", ".join("?" * len(columns))
                insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # nosec B608 # noqa: S608
                copy.executemany(insert, _rows(connection, table, columns))


def load(source: Path, database: Database) -> None:
    """Fill an empty database from a file of the newest version, all or nothing."""
    with connected(database) as connection, reading(source) as origin:
        migrate(connection, database)
        with connection.transaction():
            take_turns(connection)
            if connection.execute("SELECT 1 FROM stream LIMIT 1").fetchone() is not None:
                raise Mistake(Problem.RESTORE_OCCUPIED, where=database)
            tables = tables_of(origin)
            _set_triggers(connection, tables, "DISABLE")
            for table, columns in tables.items():
                _fill(connection, origin, table, columns)
            _set_triggers(connection, tables, "ENABLE")
            for table in ("stream", "round"):
                name = sql.Identifier(SCHEMA, table)
                statement = "SELECT setval(pg_get_serial_sequence({}, 'id'), max(id)) FROM {}"
                place = sql.Literal(f"{SCHEMA}.{table}")
                connection.execute(sql.SQL(statement).format(place, name))


def _fill(
    connection: psycopg.Connection, origin: sqlite3.Connection, table: str, columns: list[str]
) -> None:
    types = _types(connection, table)
    written = [_WRITTEN.get(types[column], lambda value: value) for column in columns]
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
    with connection.cursor().copy(statement) as copy:
        select = f"SELECT {', '.join(columns)} FROM {table}"  # nosec B608 # noqa: S608
        for row in origin.execute(select):
            pairs = zip(written, row, strict=True)
            copy.write_row([None if value is None else write(value) for write, value in pairs])


def _rows(connection: psycopg.Connection, table: str, columns: list[str]) -> Iterator[Any]:
    """Yield the rows of a table with values as SQLite has them, some at a time."""
    types = _types(connection, table)
    read = [
        sql.SQL(_READ.get(types[column], "{}")).format(sql.Identifier(column)) for column in columns
    ]
    select = sql.SQL("SELECT {} FROM {} {}").format(
        sql.SQL(", ").join(read), sql.Identifier(table), _KEPT.get(table, sql.SQL(""))
    )
    with connection.cursor("rows") as cursor:
        cursor.itersize = PAGE
        yield from cursor.execute(select)


def _types(connection: psycopg.Connection, table: str) -> dict[str, str]:
    rows = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s",
        (SCHEMA, table),
    )
    return dict(rows.fetchall())


def _check_version(connection: psycopg.Connection, database: Database) -> None:
    found, known = version_of(connection), len(STEPS)
    if found != known:
        problem = Problem.STORE_VERSION if found > known else Problem.STORE_OLD
        raise Mistake(problem, file=database, found=found, known=known)


def _set_triggers(connection: psycopg.Connection, tables: dict[str, list[str]], how: str) -> None:
    """Disable or enable the triggers: they check single changes, and would refuse a whole store."""
    for table in tables:
        statement = sql.SQL("ALTER TABLE {} {} TRIGGER USER")
        connection.execute(statement.format(sql.Identifier(table), sql.SQL(how)))


@contextmanager
def _without_triggers(connection: sqlite3.Connection) -> Iterator[None]:
    """Fill a file in one transaction, with its triggers put back at the end."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    triggers = dict(rows.fetchall())
    connection.execute("BEGIN")
    for name in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    yield
    for statement in triggers.values():
        connection.execute(statement)
    connection.execute("COMMIT")
