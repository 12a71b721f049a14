"""Ledgers that forget nothing, and what was spent by them."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ldpstream.device.store import Entry, Store
from ldpstream.device.terms import Terms
from ldpstream.fleet.databases import reading


def make_with_history(path: Path) -> None:
    """Make a device's file that keeps what its ledger forgets, in the transaction that forgets."""
    Store(path).create()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE history (t, round, nano, report, at_ms);"
            "CREATE TRIGGER keep AFTER DELETE ON ledger BEGIN INSERT INTO history"
            " VALUES (old.t, old.round, old.nano, old.report, old.at_ms); END;"
        )


@dataclass(frozen=True)
class Account:
    """All that a device ever entered."""

    device: str
    terms: Terms
    entries: tuple[Entry, ...]


def read_account(path: Path) -> Account:
    """From a file that was made with history."""
    columns = "t, round, nano, report, at_ms"
    with reading(path) as connection:
        ((number,),) = connection.execute("SELECT number FROM device")
        ((terms,),) = connection.execute("SELECT terms FROM enrolment")
        rows = connection.execute(
            f"SELECT {columns} FROM history UNION ALL SELECT {columns} FROM ledger"  # nosec B608
        ).fetchall()
    entries = tuple(Entry(*row) for row in sorted(rows, key=lambda row: (row[0], row[1])))
    return Account(number.hex(), Terms.read(json.loads(terms)), entries)


def overspent(account: Account) -> int:
    """Windows of w timestamps, each named by its last one, in which more than epsilon went."""
    spent: defaultdict[int, int] = defaultdict(int)
    for entry in account.entries:
        spent[entry.t] += entry.nano
    window, most = account.terms.window, account.terms.epsilon_nano
    return sum(
        sum(nano for t, nano in spent.items() if last - window < t <= last) > most for last in spent
    )
