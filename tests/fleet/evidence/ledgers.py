"""Ledgers that forget nothing, and what was spent by them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ldpstream.device.memory import COLUMNS, LedgerEntry
from ldpstream.device.store import DeviceStore
from ldpstream.protocol.terms import Terms
from ldpstream.sqlite_files import reading


def make_with_history(path: Path) -> None:
    """Make a device's file that keeps what its ledger forgets, in the transaction that forgets."""
    DeviceStore(path).create(first_install=True)
    with closing(sqlite3.connect(path)) as connection:
        old = ", ".join(f"old.{name}" for name in COLUMNS.split(", "))
        kept = f"INSERT INTO history VALUES ({old})"
        connection.execute(f"CREATE TABLE history ({COLUMNS})")
        connection.execute(f"CREATE TRIGGER keep AFTER DELETE ON ledger BEGIN {kept}; END")
        connection.commit()


@dataclass(frozen=True)
class Account:
    """All that a device ever entered."""

    device: str
    terms: Terms
    entries: tuple[LedgerEntry, ...]


def read_account(path: Path) -> Account:
    """From a file that was made with history."""
    with reading(path) as connection:
        ((number, terms),) = connection.execute("SELECT number, terms FROM enrolment")
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM history UNION ALL SELECT {COLUMNS} FROM ledger"
        ).fetchall()
    entries = tuple(LedgerEntry(*row) for row in sorted(rows, key=lambda row: (row[0], row[1])))
    return Account(number.hex(), Terms.read(json.loads(terms)), entries)


def overspent(account: Account) -> int:
    """Count the spans of w intervals of own time, each up to a debit, with more than epsilon."""
    debits = [(entry.own_ms, entry.nano) for entry in account.entries]
    span, most = account.terms.promise.span, account.terms.epsilon_nano
    return sum(
        sum(nano for at, nano in debits if last - span < at <= last) > most
        for last in {at for at, _ in debits}
    )
