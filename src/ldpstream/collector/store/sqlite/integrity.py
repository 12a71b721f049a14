"""Integrity checks of a SQLite file, before anything is released from it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ldpstream.collector.store.sqlite.migrations import STEPS
from ldpstream.errors import Mistake, Problem

Part = tuple[str, str, str, str | None]
"""A table, index, trigger or view: its type, name, table and statement."""
_STATISTICS: set[Part] = {
    ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    (
        "table",
        "sqlite_stat4",
        "sqlite_stat4",
        "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
    ),
}
"""What ANALYZE adds, which an operator may run."""


def find_main_file(given: Path) -> Path:
    """Return the file itself, behind all links; refuse one that must not be made or opened.

    SQLite finds the log by the file's name: of two hard links each would have its own. And it
    would throw away a log without its file, with what only that has.
    """
    file = Path(os.path.realpath(given))
    if given.is_symlink() and not file.exists():
        raise Mistake(Problem.STORE_FILE, file=given, what="it is a link that leads nowhere")
    if file.exists() and not file.is_file():
        raise Mistake(Problem.STORE_FILE, file=given, what="it is not a file")
    if file.exists() and file.stat().st_nlink > 1:
        what = "it has another name too (a hard link); remove that one"
        raise Mistake(Problem.STORE_FILE, file=given, what=what)
    log = log_of(file)
    if not is_begun(file) and is_begun(log):
        what = f"it is missing or empty, and its write-ahead log {log.name} is there"
        raise Mistake(Problem.STORE_DAMAGED, file=given, what=what)
    return file


def log_of(file: Path) -> Path:
    """Return where SQLite keeps the write-ahead log of a file that is no link."""
    return file.with_name(f"{file.name}-wal")


def is_begun(file: Path) -> bool:
    """Return whether there is a file that something was written to."""
    return file.is_file() and file.stat().st_size > 0


def check_content(connection: sqlite3.Connection, version: int) -> None:
    """Refuse pages, types, CHECKs, references, indexes and a schema that are broken.

    An index that differs from its table would show other releases than those that are chained.
    """
    _check_schema(_parts(connection), _parts_of(version))
    ((found,),) = connection.execute("PRAGMA integrity_check(1)")
    if found != "ok":
        raise sqlite3.DatabaseError(found.splitlines()[-1])
    stray = connection.execute("PRAGMA foreign_key_check").fetchone()
    if stray is not None:
        raise sqlite3.DatabaseError(f"a {stray[0]} refers to a {stray[2]} that is missing")


def _check_schema(found: set[Part], expected: set[Part]) -> None:
    """Refuse tables, triggers and views that migrations do not make: they could alter releases."""
    for parts, others, state in (
        (expected, found, "is missing, or was changed"),
        (found - _STATISTICS, expected, "was added"),
    ):
        names = sorted(f"{kind} {name}" for kind, name, _, _ in parts - others)
        if names:
            raise sqlite3.DatabaseError(f"{names[0]} {state}")


def _parts_of(version: int) -> set[Part]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript("\n".join(STEPS[:version]))
        return _parts(connection)


def _parts(connection: sqlite3.Connection) -> set[Part]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))
