"""The tables of a device's file (`schema.sql`)."""

from __future__ import annotations

import secrets
import sqlite3
from importlib.resources import files

from ldpstream.device.clock import OwnTime

FORMAT = 5
"""The PRAGMA user_version of the file, which is raised when the schema changes."""
SECRET_BYTES = 32


def make_tables(connection: sqlite3.Connection, which: str = "") -> None:
    """Create the tables, or the one of this name, within the transaction under way."""
    schema = files(__package__).joinpath("schema.sql").read_text("utf-8")
    lines = (line.partition("--")[0] for line in schema.splitlines())
    for statement in "\n".join(lines).split(";"):  # `executescript` would commit first
        if f"TABLE {which}" in statement or not which:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def insert_device(
    connection: sqlite3.Connection,
    secret: bytes,
    past_known: bool,
    own: OwnTime,
    stamp: str = "",
    rejoins: int = 0,
) -> None:
    """Insert the device."""
    clocks = own.clocks
    connection.execute(
        "INSERT INTO device VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            secret,
            rejoins,
            past_known,
            own.own_ms,
            clocks.wall_ms,
            clocks.steady_ms,
            clocks.boot,
            stamp,
        ),
    )


def new_secret() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)
