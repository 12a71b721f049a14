"""A store as one SQLite file that no collector uses: what a backup holds.

Rounds under way are left out, and with them all reports: what a device has sent is on no disk for
longer than its round. A collector that goes on from such a file asks anew.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from errno import ENOSPC
from graphlib import TopologicalSorter
from os import strerror
from pathlib import Path

from ldpstream.collector.store.sqlite.migrations import version_of
from ldpstream.collector.store.sqlite.store import make_private
from ldpstream.errors import Mistake, Problem
from ldpstream.sqlite_files import reading

REPORTS = "report_batch"
"""The one table that is left out."""


def copy_file(source: Path, target: Path) -> None:
    """Copy the file of a collector that may be running; SQLite takes it at one moment."""
    if not source.is_file():
        what = "there is no such file"
        raise Mistake(Problem.DATA_FILE, file=source, what=what, fix="give a collector's store")
    try:
        with reading(source) as origin, closing(sqlite3.connect(make_private(target))) as copy:
            version_of(origin, source)
            origin.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            with copy:
                copy.execute(f"DELETE FROM {REPORTS}")  # nosec B608 # noqa: S608
                copy.execute("DELETE FROM round WHERE state <> 'tallied'")
            copy.execute("VACUUM")  # so that nothing of it is left in free pages
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_FULL:  # the disk of the copy is: nothing is damaged
            raise OSError(ENOSPC, strerror(ENOSPC)) from None
        raise Mistake(Problem.STORE_DAMAGED, file=source, what=error) from None


def tables_of(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns of each table that a backup holds; what others refer to comes first."""
    rows = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    names = [name for (name,) in rows.fetchall() if name != REPORTS]
    before = {
        name: [row[2] for row in connection.execute(f"PRAGMA foreign_key_list({name})")]
        for name in names
    }
    return {
        name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        for name in TopologicalSorter(before).static_order()
    }
