"""Migrations of a device's file from earlier formats.

Numbers and keys of before are not valid any more. So the device has left its stream: its promise
has ended and binds for another span, and the application enrols again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from ldpstream.device.clock import Look, OwnTime
from ldpstream.device.schema import insert_device, make_tables
from ldpstream.privacy.ledger import Promise
from ldpstream.protocol.terms import Terms, TermsRefused

_TABLES = ("device", "enrolment", "ledger", "refusals")


def _from_1(connection: sqlite3.Connection, now: Look) -> None:
    """Migrate a file of release 0.1.0, whose debits are dropped.

    They were entered by label time, and more than they say may have been sent: everything counts
    as spent.
    """
    secrets = connection.execute("SELECT secret FROM device").fetchall()
    promise = _promise(connection)
    _make_anew(connection)
    for (secret,) in secrets:
        insert_device(connection, secret, False, OwnTime(0, now), forgotten_ms=0)
    if promise is not None:
        _end(connection, promise, 0)
        unknown = (0, "", promise.epsilon_nano, None, 0, now.wall_ms)
        connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", unknown)


def _from_2(connection: sqlite3.Connection, now: Look) -> None:
    """Migrate a file of the development of 0.2.0, with its own time and its debits."""
    devices = connection.execute(
        "SELECT secret, first, own_ms, wall_ms, steady_ms, boot, forgotten_ms, stamp FROM device"
    ).fetchall()
    promise = _promise(connection)
    debits = connection.execute("SELECT t, round, nano, NULL, own_ms, at_ms FROM ledger").fetchall()
    unknown = [own_ms for _, round_name, _, _, own_ms, _ in debits if not round_name]
    _make_anew(connection)
    for secret, first, own_ms, wall_ms, steady_ms, boot, forgotten_ms, stamp in devices:
        own = OwnTime(own_ms, Look(wall_ms, steady_ms, boot))
        known = bool(first) or promise is not None
        newest = max([*unknown, *([] if forgotten_ms is None else [forgotten_ms])], default=None)
        insert_device(connection, secret, known, own, newest, stamp)
        if promise is not None:
            _end(connection, promise, own.resumed(now).own_ms)
    connection.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", debits)


MIGRATIONS: dict[int, Callable[[sqlite3.Connection, Look], None]] = {1: _from_1, 2: _from_2}
"""By the format that they migrate from; each runs within a transaction."""


def _promise(connection: sqlite3.Connection) -> Promise | None:
    found = connection.execute("SELECT terms FROM enrolment").fetchone()
    try:
        return None if found is None else Terms.read(json.loads(found[0])).promise
    except TermsRefused as error:
        raise ValueError(str(error)) from None


def _make_anew(connection: sqlite3.Connection) -> None:
    """Replace all tables but the counts of refusals, which have not changed."""
    refusals = connection.execute("SELECT * FROM refusals").fetchall()
    for table in _TABLES:
        connection.execute(f"DROP TABLE {table}")
    make_tables(connection)
    connection.executemany("INSERT INTO refusals VALUES (?, ?, ?, ?)", refusals)


def _end(connection: sqlite3.Connection, promise: Promise, own_ms: int) -> None:
    until_ms = own_ms + promise.span
    connection.execute(
        "INSERT INTO ended VALUES (?, ?, ?)", (promise.epsilon_nano, promise.span, until_ms)
    )
