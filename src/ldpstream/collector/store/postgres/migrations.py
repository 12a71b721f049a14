"""Versions of the schema. Each step takes a database from one version to the next."""

from __future__ import annotations

from importlib.resources import files

import psycopg

from ldpstream.errors import Mistake, Problem

SCHEMA = "ldpstream"
"""The schema of all tables, so that the database may hold other things, too."""
STEPS = tuple(
    files(__package__).joinpath(name).read_text()
    for name in (
        "schema.sql",
        "log_counts.sql",
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
_LOCK = 0x6C64707374726561
"""The advisory lock ("ldpstrea") of a migration: collectors may start at the same time."""


def take_turns(connection: psycopg.Connection) -> None:
    """Wait for others that change the store as a whole; they wait until the transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))


def version_of(connection: psycopg.Connection) -> int:
    """Return the version of the schema; 0: nothing was made yet."""
    row = connection.execute("SELECT max(number) FROM version").fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


def migrate(connection: psycopg.Connection, where: object) -> None:
    """Bring a database to the newest version; one without the schema starts from nothing."""
    with connection.transaction():
        take_turns(connection)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.execute("CREATE TABLE IF NOT EXISTS version (number integer NOT NULL)")
        version = version_of(connection)
        if version > len(STEPS):
            raise Mistake(Problem.STORE_VERSION, file=where, found=version, known=len(STEPS))
        for number, step in enumerate(STEPS[version:], version + 1):
            connection.execute(step.encode())
            connection.execute("INSERT INTO version VALUES (%s)", (number,))
