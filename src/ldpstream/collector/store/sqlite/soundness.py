"""Whether a SQLite file is whole: looked at before anything is released from it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ldpstream.collector.store.sqlite.migrations import migrate
from ldpstream.errors import Mistake, Problem

_PARTS = (
    "SELECT type || ' ' || name FROM sqlite_schema WHERE sql NOT NULL"
    " UNION ALL SELECT 'column ' || one.name || '.' || two.name FROM sqlite_schema one"
    " JOIN pragma_table_info(one.name) two WHERE one.type = 'table'"
)


def check_main_file(file: Path) -> None:
    """Refuse a write-ahead log without its file: SQLite would throw away what only it has."""
    log = log_of(file)
    lost = not file.exists() or (file.is_file() and not file.stat().st_size)
    if lost and log.is_file() and log.stat().st_size:
        what = f"it is missing or empty, and its write-ahead log {log.name} is there"
        raise Mistake(Problem.STORE_DAMAGED, file=file, what=what)


def log_of(file: Path) -> Path:
    """Return where SQLite keeps the write-ahead log of a file."""
    return file.with_name(f"{file.name}-wal")


def check_content(connection: sqlite3.Connection) -> None:
    """Refuse pages, types, CHECKs, references and a schema that are broken."""
    missing = _parts_of_a_new_file() - _parts(connection)
    if missing:
        raise sqlite3.DatabaseError(f"{min(missing)} is missing")
    ((found,),) = connection.execute("PRAGMA quick_check(1)")
    if found != "ok":
        raise sqlite3.DatabaseError(found.splitlines()[-1])
    stray = connection.execute("PRAGMA foreign_key_check").fetchone()
    if stray is not None:
        raise sqlite3.DatabaseError(f"a {stray[0]} refers to a {stray[2]} that is missing")


def _parts_of_a_new_file() -> set[str]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, "memory")
        return _parts(connection)


def _parts(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute(_PARTS)}
