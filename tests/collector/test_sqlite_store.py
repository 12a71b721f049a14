"""The embedded store: the contract, and what only this store does."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

from ldpstream.collector.store.contract import Store
from ldpstream.collector.store.round_table import FORGET_ASKED
from ldpstream.collector.store.sqlite.migrations import STEPS
from ldpstream.collector.store.sqlite.readers import MOST_IDLE
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake
from ldpstream.oracles.collector_half import Support
from tests.collector.admin_contract import AdminContract
from tests.collector.helpers import SECRETS, device_of, new_round, unsigned
from tests.collector.store_contract import StoreContract, release_of


class FailingDisk:
    """A connection on which the next statements that begin with a given text fail."""

    def __init__(self, connection: sqlite3.Connection, begin: str, times: int) -> None:
        self._connection = connection
        self._begin = begin
        self.left = times

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, statement: str, *given: Any) -> sqlite3.Cursor:
        if self.left and statement.startswith(self._begin):
            self.left -= 1
            raise sqlite3.OperationalError("disk I/O error")
        return self._connection.execute(statement, *given)


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


class TestSqliteStore(StoreContract, AdminContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.file = tmp_path / "new" / "store.sqlite"

    def create(self, master: bytes = SECRETS.master) -> Store:
        return SqliteStore(self.file, master)

    def property(self, name: str) -> str:
        with closing(sqlite3.connect(self.file)) as connection:
            return str(
                *connection.execute("SELECT value FROM property WHERE name = ?", (name,)).fetchone()
            )

    def tamper(self, statements: str) -> None:
        with closing(sqlite3.connect(self.file)) as connection:
            triggers = connection.execute(
                "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
            ).fetchall()
            drop = "".join(f"DROP TRIGGER {name};" for name, _ in triggers)
            again = "".join(f"{sql};" for _, sql in triggers)
            connection.executescript(f"{drop}{statements};{again}")

    def reopened(self) -> Store:
        """Every call has committed, so closing leaves what a crash would leave."""
        self.current.close()
        self.current = SqliteStore(self.file, SECRETS.master)
        return self.current

    def test_one_collector_a_file(self, store: Store) -> None:
        with pytest.raises(Mistake, match="in use by another collector"):
            SqliteStore(self.file, SECRETS.master)

    def test_a_store_of_a_newer_release_is_left_alone(self, store: Store) -> None:
        store.close()
        with sqlite3.connect(self.file) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
        with pytest.raises(Mistake, match="newer release"):
            SqliteStore(self.file, SECRETS.master)
        self.file = self.file.with_name("other.sqlite")
        self.current = SqliteStore(self.file, SECRETS.master)

    def test_commits_reach_the_disk(self, store: Store) -> None:
        assert isinstance(store, SqliteStore)
        connection = store._connect()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        connection.close()

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE release SET content = '{}'",
            "DELETE FROM release",
            "UPDATE stream SET terms = '{}'",
            "UPDATE stream SET last_t = 0",
            "UPDATE round SET state = 'tallied'",
            "UPDATE round SET closed_ms = 1",
            "INSERT INTO report_batch (round, number, records) VALUES (1, 2, x'010203')",
        ],
    )
    def test_the_schema_refuses_what_must_not_happen(self, store: Store, statement: str) -> None:
        store.open_round("a", new_round(2))
        store.release("a", [release_of(1)], {}, 0)
        with sqlite3.connect(self.file) as connection, pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
        connection.close()

    def test_a_failure_of_the_disk_leaves_no_ghosts(self, store: Store) -> None:
        """A report that was not stored must not count as repeated when it is sent again."""
        assert isinstance(store, SqliteStore)
        store.open_round("a", new_round(1))
        store.accept("a", "1-publication", unsigned((1, b"\1a")))
        with sqlite3.connect(self.file) as connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON report_batch"
                " BEGIN SELECT raise(FAIL, 'disk full'); END"
            )
        with pytest.raises(sqlite3.IntegrityError, match="disk full"):
            store.accept("a", "1-publication", unsigned((2, b"\1a")))
        assert store.received("a", "1-publication") == 1
        connection.execute("DROP TRIGGER full")
        connection.close()
        assert store.accept("a", "1-publication", unsigned((2, b"\1a"))).tolist() == [0]

    def test_a_file_of_before_learns_to_forget_without_looking_at_every_round(
        self, store: Store
    ) -> None:
        file = self.file.with_name("before.sqlite")
        with closing(sqlite3.connect(file)) as before:
            before.executescript("".join(STEPS[:2]) + "PRAGMA user_version = 2;")
        SqliteStore(file, SECRETS.master).close()
        for one in (self.file, file):
            with closing(sqlite3.connect(one)) as connection:
                explain = f"EXPLAIN QUERY PLAN {FORGET_ASKED}".replace("%s", "?")
                ((*_, plan),) = connection.execute(explain, (1, 5))
            assert "USING INDEX round_by_asked" in plan

    def test_who_reported_and_who_was_asked_is_off_the_disk(self, store: Store) -> None:
        """A reader that uses the write-ahead log delays the erasure, but blocks nobody."""
        devices = [10**30 + n for n in range(500)]
        asked = np.arange(10**9, 10**9 + 500, dtype="<u4").tobytes()

        def on_disk(wanted: bytes) -> bool:
            files = self.file.parent.iterdir()
            return any(wanted in file.read_bytes() for file in files)

        for t in (1, 2):
            store.open_round("a", new_round(t, asked=asked, roster_size=2 * 10**9))
            store.accept("a", f"{t}-publication", unsigned(*((n, b"\1a") for n in devices)))
            store.close_round("a", f"{t}-publication", 5)
        assert on_disk(device_of(devices[0]))
        reading = store.reports("a", "2-publication")
        next(reading)
        store.tally("a", {"1-publication": Support.none(2)})
        reading.close()  # type: ignore[attr-defined]
        store.tally("a", {"2-publication": Support.none(2)})
        assert not any(on_disk(device_of(number)) for number in devices)
        assert on_disk(asked[-40:])
        store.release("a", [release_of(1), release_of(2)], {}, 2)
        assert not on_disk(asked[:40])
        assert not on_disk(asked[-40:])

    def test_threads_that_come_and_go_leave_no_connection(self, store: Store) -> None:
        assert isinstance(store, SqliteStore)
        made: list[sqlite3.Connection] = []

        def connect() -> sqlite3.Connection:
            made.append(real())
            return made[-1]

        real, store._readers._connect = store._readers._connect, connect
        for _ in range(50):
            thread = Thread(target=store.stream, args=("a",))
            thread.start()
            thread.join()
        assert len(made) == 1
        at_once = 2 * MOST_IDLE
        together = Barrier(at_once)

        def read(_: int) -> None:
            with store._readers.use() as connection:
                together.wait(60)
                connection.execute("SELECT 1")

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(read, range(at_once)))
        assert (len(made), sum(map(is_open, made))) == (at_once, MOST_IDLE)
        store._readers.close()
        assert not any(map(is_open, made))

    @pytest.mark.parametrize("begin", ["SELECT records", "SELECT round.id", "ROLLBACK"])
    def test_a_disk_that_fails_for_a_while_neither_repeats_nor_closes(
        self, store: Store, begin: str
    ) -> None:
        """Memory is reloaded from disk before it is used again, however often that fails."""
        assert isinstance(store, SqliteStore)
        store.open_round("a", new_round(1))
        store.accept("a", "1-publication", unsigned((1, b"\1a")))
        disk = FailingDisk(store._writer._connection, begin, times=3)
        store._writer._connection = disk  # type: ignore[assignment]
        with pytest.raises(sqlite3.OperationalError):
            store._writer.do(lambda connection: connection.execute("nonsense"))
        while disk.left:
            with pytest.raises(sqlite3.OperationalError):
                store.accept("a", "1-publication", unsigned((2, b"\1a")))
            assert store.received("a", "1-publication") <= 1
        both = unsigned((1, b"\1a"), (2, b"\1a"))
        assert store.accept("a", "1-publication", both).tolist() == [1, 0]
        store.close_round("a", "1-publication", 5)
        assert sum(len(part) for part in store.reports("a", "1-publication")) == 2
