"""Migrations of a device's file from earlier formats.

Numbers and keys of formats 1 and 2 are not valid any more. So the device has left its stream: its
promise has ended and binds for another span, and the application enrols again. A file of format 3
(release 0.2.0) keeps its enrolment, and becomes a wallet with one stream in it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from ldpstream.device.clock import ClockReading, OwnTime
from ldpstream.device.memory import EVERYONE, LEFT, Scope, lineage, policy_text, read_terms
from ldpstream.device.schema import insert_device, make_tables, new_secret
from ldpstream.privacy.ledger import Promise
from ldpstream.protocol.succession import Policy
from ldpstream.protocol.terms import Terms, TermsRefused


def _from_1(connection: sqlite3.Connection, now: ClockReading) -> None:
    """Migrate a file of release 0.1.0, whose debits are dropped.

    They were entered by label time, and more than they say may have been sent: everything counts
    as spent.
    """
    secrets = connection.execute("SELECT secret FROM device").fetchall()
    promise = _promise(connection)
    _make_anew(connection)
    for (secret,) in secrets:
        insert_device(connection, secret, False, OwnTime(0, now))
        _forget(connection, 0)
    if promise is not None:
        _end(connection, promise.epsilon_nano, promise.span, promise.span)
        _debit(connection, (0, "", promise.epsilon_nano, None, 0, now.wall_ms))


def _from_2(connection: sqlite3.Connection, now: ClockReading) -> None:
    """Migrate a file of the development of 0.2.0, with its own time and its debits."""
    devices = connection.execute(
        "SELECT secret, first, own_ms, wall_ms, steady_ms, boot, forgotten_ms, stamp FROM device"
    ).fetchall()
    promise = _promise(connection)
    debits = connection.execute("SELECT t, round, nano, NULL, own_ms, at_ms FROM ledger").fetchall()
    unknown = [own_ms for _, round_name, _, _, own_ms, _ in debits if not round_name]
    _make_anew(connection)
    for secret, first, own_ms, wall_ms, steady_ms, boot, forgotten_ms, stamp in devices:
        own = OwnTime(own_ms, ClockReading(wall_ms, steady_ms, boot))
        insert_device(connection, secret, bool(first) or promise is not None, own, stamp)
        for moment in (*unknown, *([] if forgotten_ms is None else [forgotten_ms])):
            _forget(connection, moment)
        if promise is not None:
            until_ms = own.resumed(now).own_ms + promise.span
            _end(connection, promise.epsilon_nano, promise.span, until_ms)
    for debit in debits:
        _debit(connection, debit)


def _from_3(connection: sqlite3.Connection, _: ClockReading) -> None:
    """Migrate a file of release 0.2.0; nothing is lost, and the stream goes on."""
    (device,) = connection.execute(
        "SELECT secret, rejoins, past_known, own_ms, wall_ms, steady_ms, boot, forgotten_ms, stamp"
        " FROM device"
    ).fetchall()
    secret, rejoins, past_known, own_ms, wall_ms, steady_ms, boot, forgotten_ms, stamp = device
    enrolled = connection.execute("SELECT url, terms, number, key, at_ms FROM enrolment").fetchall()
    ended = connection.execute("SELECT epsilon_nano, span_ms, until_ms FROM ended").fetchall()
    debits = connection.execute("SELECT t, round, nano, report, own_ms, at_ms FROM ledger")
    entries = debits.fetchall()
    connection.execute("DROP TABLE ended")
    _make_anew(connection)
    own = OwnTime(own_ms, ClockReading(wall_ms, steady_ms, boot))
    # An enrolment keeps the secret that its number and its coins come from.
    root = new_secret() if enrolled else secret
    insert_device(connection, root, bool(past_known or enrolled), own, stamp, rejoins)
    place = rejoins + 1
    for url, terms, number, key, at_ms in enrolled:
        policy = policy_text(Policy())
        connection.execute(
            "INSERT INTO enrolment"
            " VALUES (?, ?, ?, '', NULL, '{}', ?, ?, ?, ?, ?, ?, 0, 0, ?, NULL)",
            (place, url, terms, secret, rejoins, number, key, key, policy, at_ms),
        )
    _hold(connection)
    connection.execute("UPDATE refusals SET enrolment = ?", (place if enrolled else 0,))
    if forgotten_ms is not None:
        _forget(connection, forgotten_ms)
    for nano, span_ms, until_ms in ended:
        _end(connection, nano, span_ms, until_ms)
    for entry in entries:
        own_debit = enrolled and entry[1] not in ("", LEFT)
        _debit(connection, entry, Scope.of(place) if own_debit else EVERYONE)


def _from_4(connection: sqlite3.Connection, _: ClockReading) -> None:
    """Migrate a file of the development of 0.3.0, which knows only the pins of terms in force."""
    connection.execute(
        "ALTER TABLE enrolment ADD COLUMN other_keys BLOB CHECK (length(other_keys) = 64)"
    )
    make_tables(connection, "pins")
    _hold(connection)


MIGRATIONS: dict[int, Callable[[sqlite3.Connection, ClockReading], None]] = {
    1: _from_1,
    2: _from_2,
    3: _from_3,
    4: _from_4,
}
"""By the format that they migrate from; each runs within a transaction."""


def _promise(connection: sqlite3.Connection) -> Promise | None:
    found = connection.execute("SELECT terms FROM enrolment").fetchone()
    try:
        return None if found is None else Terms.read(json.loads(found[0])).promise
    except TermsRefused as error:
        raise ValueError(str(error)) from None


def _make_anew(connection: sqlite3.Connection) -> None:
    """Replace all tables, and keep the counts of refusals."""
    refusals = connection.execute("SELECT 0, code, times, last_ms, detail FROM refusals").fetchall()
    for table in ("device", "enrolment", "ledger", "refusals"):
        connection.execute(f"DROP TABLE {table}")
    make_tables(connection)
    connection.executemany("INSERT INTO refusals VALUES (?, ?, ?, ?, ?)", refusals)


def _hold(connection: sqlite3.Connection) -> None:
    """Store which terms the enrolments have."""
    enrolled = connection.execute("SELECT id, terms, successor FROM enrolment").fetchall()
    for place, *texts in enrolled:
        for pin in {pin for text in texts if text for pin in lineage(read_terms(text))}:
            connection.execute("INSERT INTO pins VALUES (?, ?, ?)", (pin, place, place))


def _forget(connection: sqlite3.Connection, own_ms: int) -> None:
    connection.execute(
        "INSERT INTO forgotten VALUES (?, ?, ?) ON CONFLICT DO UPDATE"
        " SET own_ms = max(own_ms, excluded.own_ms)",
        (own_ms, EVERYONE.first_id, EVERYONE.last_id),
    )


def _end(connection: sqlite3.Connection, nano: int, span_ms: int, until_ms: int) -> None:
    connection.execute(
        "INSERT INTO promises VALUES (?, ?, 0, ?, ?, ?)",
        (nano, span_ms, until_ms, EVERYONE.first_id, EVERYONE.last_id),
    )


def _debit(
    connection: sqlite3.Connection, entry: tuple[object, ...], scope: Scope = EVERYONE
) -> None:
    connection.execute(
        "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*entry, scope.first_id, scope.last_id),
    )
