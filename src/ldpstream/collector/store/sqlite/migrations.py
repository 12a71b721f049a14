"""Versions of the schema. Each step takes a file from one version to the next."""

from __future__ import annotations

import sqlite3
from importlib.resources import files

from ldpstream.errors import Mistake, Problem

STEPS = tuple(
    files(__package__).joinpath(name).read_text()
    for name in ("schema.sql", "notes.sql", "indexes.sql", "chain.sql")
)
"""Step n leads to version n + 1. A step that was released is never edited: add one."""
CHAINED = 4
"""The first version in which releases are chained."""


def migrate(connection: sqlite3.Connection, file: object) -> None:
    """Bring a file to the newest version; a new file starts from nothing.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> migrate(connection, "memory")
    >>> connection.execute("PRAGMA user_version").fetchone()
    (4,)
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(STEPS):
        raise Mistake(Problem.STORE_VERSION, file=file, found=version, known=len(STEPS))
    for number, step in enumerate(STEPS[version:], version + 1):
        connection.executescript(f"BEGIN;\n{step}\nPRAGMA user_version = {number};\nCOMMIT;")
