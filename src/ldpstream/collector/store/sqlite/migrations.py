"""Versions of the schema. Each step takes a file from one version to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from importlib.resources import files

from ldpstream.collector.store.versions import CHAINED
from ldpstream.errors import Mistake, Problem

STEPS = tuple(
    files(__package__).joinpath(name).read_text()
    for name in (
        "schema.sql",
        "notes.sql",
        "indexes.sql",
        "chain.sql",
        "roster.sql",
        "successors.sql",
        "keys.sql",
        "silences.sql",
        "summaries.sql",
    )
)
"""Step n leads to version n + 1. A step that was released is never edited: add one."""
NOTED = 2
"""The first version in which there are notes."""


def version_of(connection: sqlite3.Connection, file: object) -> int:
    """Return the version of a file (0: a new one); refuse one that is not known yet."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(STEPS):
        raise Mistake(Problem.STORE_VERSION, file=file, found=version, known=len(STEPS))
    return int(version)


def migrate(connection: sqlite3.Connection, version: int, chain: Callable[[], object]) -> None:
    """Bring a file to the newest version, in one transaction; a new file starts from nothing.

    `chain` is called within it if the file had no chain: so no file ever has half of one.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> migrate(connection, 0, lambda: None)
    >>> version_of(connection, "memory")
    9
    """
    if version == len(STEPS):
        return
    steps = "\n".join(STEPS[version:])
    connection.executescript(f"BEGIN IMMEDIATE;\n{steps}\nPRAGMA user_version = {len(STEPS)};")
    if version < CHAINED:
        chain()
    connection.execute("COMMIT")
