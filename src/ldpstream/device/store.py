"""The persistent state of a device: one SQLite file, which is open only during a transaction.

So ten thousand devices in one process hold no file handles, and a device that only listens writes
nothing. Every commit is durable when it returns.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ldpstream.device.clock import ClockReading, OwnTime
from ldpstream.device.file_transaction import FileTransaction
from ldpstream.device.memory import (
    COLUMNS,
    Forgotten,
    LedgerContent,
    LedgerEntry,
    Pin,
    RefusalCount,
    Scope,
    StoredEnrolment,
    StoredPromise,
    read_policy,
    read_renamed,
    read_terms,
)
from ldpstream.device.migrations import MIGRATIONS
from ldpstream.device.schema import FORMAT, insert_device, make_tables, new_secret
from ldpstream.device.witness import ChangeTime, Witness
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.machine_clock import MachineClock, SystemClock
from ldpstream.whole_files import OWNER_ONLY

OLD = "is of an earlier release; it is migrated when a device opens it"
BUSY_SECONDS = 5.0


class LedgerUnusable(LdpStreamError):
    """The device's file cannot be read or written, so the device is silent.

    >>> print(LedgerUnusable(Problem.LEDGER_FILE, file="device.ldp", what="disk full"))
    device.ldp: disk full; the device is silent until its file can be written
    """


class DeviceStore:
    """The file of one device."""

    def __init__(
        self, path: Path, witness: Witness | None = None, clock: MachineClock | None = None
    ) -> None:
        # A symbolic link that is switched later must not lead to another ledger.
        self.path = path.resolve()
        self.clock = clock or SystemClock()
        self._witness = witness or ChangeTime()
        self._left: tuple[tuple[int, ...], str] | None = None
        """The file's state and stamp as this process last wrote it, or found it vouched for. While
        they are unchanged, the witness need not be asked again."""

    def create(self, first_install: bool) -> None:
        """Create the file, with a secret; refuse if there is one already.

        It is written to a temporary file and moved into place atomically, never readable by others.
        """
        with self._faults():
            draft = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
            try:
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, OWNER_ONLY))
                stamp = self._fill(draft, first_install)
                self._put_in_place(draft)
            finally:
                draft.unlink(missing_ok=True)
            self._witness.committed(stamp)

    def _fill(self, draft: Path, first_install: bool) -> str:
        stamp = self._witness.stamp(draft.stat())
        with _connection(draft) as connection:
            connection.execute("BEGIN IMMEDIATE")
            make_tables(connection)
            own = OwnTime(0, ClockReading.at(self.clock))
            insert_device(connection, new_secret(), first_install, own, stamp=stamp)
            connection.execute("COMMIT")
        return stamp

    def _put_in_place(self, draft: Path) -> None:
        try:
            try:
                os.link(draft, self.path)  # fails if the file exists
            except FileExistsError:
                raise
            except OSError:  # a file system without links: claim the name first
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, OWNER_ONLY))
                os.replace(draft, self.path)
        except FileExistsError:
            raise Mistake(Problem.LEDGER_EXISTS, file=self.path.name) from None

    def load(self) -> LedgerContent:
        """Return the whole content, and change nothing."""
        with self._faults(), _connection(self.path) as connection:
            self._check_format(connection)
            self._check_content(connection)
            connection.execute("BEGIN")  # one snapshot, whatever other processes do
            return _memory(connection)[0]

    def changed(self) -> bool:
        """Return whether anybody else has written to the file since this process last did."""
        try:
            return self._left is None or self._left[0] != _state(self.path.stat())
        except OSError:
            return True  # gone: the next transaction says so

    @contextmanager
    def change(self) -> Iterator[FileTransaction]:
        """Read, decide and commit in one exclusive transaction, with other processes locked out.

        If it raises, the change may still be on disk: send nothing.
        """
        with self._faults():
            with _connection(self.path) as connection:
                connection.execute("BEGIN IMMEDIATE")
                # Only now: a rollback journal beside the file may have been restored too, and
                # SQLite changes the file when it replays it.
                found = self.path.stat()
                change = self._begin(connection, found)
                yield change
                change.reread()
                if change.made:
                    self._commit(connection, change, found)
            known = change.made or change.vouched_for
            self._left = (_state(self.path.stat()), change.stamp) if known else None

    def _begin(self, connection: sqlite3.Connection, found: os.stat_result) -> FileTransaction:
        if found.st_nlink > 1:  # SQLite finds the journal by the file's name
            raise OSError("has another name too (a hard link); remove that one")
        seen = self._left is not None and self._left[0] == _state(found)
        if not seen:
            self._check_content(connection)
        migrated = None if seen else self._migrate(connection)
        self._check_format(connection)
        memory, stamp = _memory(connection)
        # `_left` was read after the lock was released: the stamp tells whether another wrote then.
        untouched = self._left == (_state(found), stamp)
        # Resumed once, so that all checks, debits and marks of a transaction share one timeline.
        own = memory.own.resumed(ClockReading.at(self.clock))
        another_boot = own.clocks.boot != memory.own.clocks.boot
        memory = replace(memory, own=own)
        # What release 0.1.0 has sent is unknown, whoever vouches for its file.
        vouched_for = untouched or (migrated != 1 and self._witness.vouches(found, stamp))
        if vouched_for and not untouched:
            self._witness.committed(stamp)  # else a rollback of what is sent now could go unnoticed
        change = FileTransaction(connection, memory, stamp, vouched_for, _memory)
        # Own time is most exact within a boot.
        change.made = migrated is not None or another_boot
        return change

    def _commit(
        self, connection: sqlite3.Connection, change: FileTransaction, found: os.stat_result
    ) -> None:
        now, change.stamp = ClockReading.at(self.clock), self._witness.stamp(found)
        connection.execute(
            "UPDATE device SET own_ms = ?, wall_ms = ?, steady_ms = ?, boot = ?, stamp = ?,"
            " past_known = min(past_known, ?)",  # of a restored copy it is not
            (
                change.memory.own.at(now),
                now.wall_ms,
                now.steady_ms,
                now.boot,
                change.stamp,
                change.vouched_for or change.accounted_for,
            ),
        )
        # POSIX locks are lost when any part of this process closes the file: then another process
        # may have written to it, and the state in memory is stale.
        if _state(self.path.stat()) != _state(found):
            raise OSError("was changed or replaced while it was locked")
        if os.name == "posix" and stat.S_IMODE(found.st_mode) != OWNER_ONLY:
            os.chmod(self.path, OWNER_ONLY)
        connection.execute("COMMIT")
        if self.path.stat().st_ino != found.st_ino:
            raise OSError("was replaced while it was being written")
        self._witness.committed(change.stamp)

    def _migrate(self, connection: sqlite3.Connection) -> int | None:
        """Migrate a file of an earlier format; return which one it was, or None."""
        ((found,),) = connection.execute("PRAGMA user_version")
        if found not in MIGRATIONS:
            return None
        MIGRATIONS[found](connection, ClockReading.at(self.clock))
        return int(found)

    def _check_format(self, connection: sqlite3.Connection) -> None:
        ((found,),) = connection.execute("PRAGMA user_version")
        if found != FORMAT:
            what = f"has format {found}, and this program knows {FORMAT}"
            if found in MIGRATIONS:
                what = OLD
            raise LedgerUnusable(Problem.LEDGER_FILE, file=self.path.name, what=what)

    def _check_content(self, connection: sqlite3.Connection) -> None:
        """Refuse a file whose pages, types or CHECKs are broken: its debits cannot be believed."""
        ((found,),) = connection.execute("PRAGMA quick_check(1)")
        if found != "ok":
            raise sqlite3.DatabaseError(f"damaged: {found.splitlines()[-1]}")
        ((mode,),) = connection.execute("PRAGMA journal_mode")
        if mode != "delete":  # in WAL mode, debits would be in a file that can be lost
            raise sqlite3.DatabaseError(f"has the journal mode {mode}, which no device sets")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Raise every fault of the disk as `LedgerUnusable`."""
        try:
            yield
        except (Mistake, LedgerUnusable):
            raise
        except (OSError, sqlite3.Error, ValueError) as error:
            # ValueError: a damaged file may hold malformed texts and terms.
            what = getattr(error, "strerror", None) or str(error)
            raise LedgerUnusable(Problem.LEDGER_FILE, file=self.path.name, what=what) from error


@contextmanager
def _connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection, and close it at the end, which rolls back what was not committed."""
    connection = sqlite3.connect(
        # Never create it here: a file that was lost must not come back empty.
        f"{path.as_uri()}?mode=rw",
        uri=True,
        isolation_level=None,
        timeout=BUSY_SECONDS,
    )
    try:
        # FULL does not sync the folder after the journal is deleted, which is the moment of
        # commit: a power cut could bring the journal back and undo the debit. EXTRA does.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA secure_delete = ON")  # keys of a stream that was left
        yield connection
    finally:
        connection.close()


def _memory(connection: sqlite3.Connection) -> tuple[LedgerContent, str]:
    device = connection.execute(
        "SELECT secret, rejoins, past_known, own_ms, wall_ms, steady_ms, boot, stamp FROM device"
    ).fetchone()
    if device is None:
        raise ValueError("has no device in it")
    enrolled = connection.execute("SELECT * FROM enrolment ORDER BY id")
    promises = connection.execute(
        "SELECT epsilon_nano, span_ms, until_ms, first_id, last_id, since_ms FROM promises"
    )
    entries = connection.execute(
        f"SELECT {COLUMNS} FROM ledger ORDER BY own_ms, t, round"  # nosec B608 # noqa: S608
    )
    forgotten = connection.execute("SELECT own_ms, first_id, last_id FROM forgotten")
    pins = connection.execute("SELECT pin, first_id, last_id FROM pins")
    refusals = connection.execute(
        "SELECT code, times, last_ms, detail, enrolment FROM refusals ORDER BY last_ms"
    )
    secret, rejoins, past_known, own_ms, wall_ms, steady_ms, boot, stamp = device
    memory = LedgerContent(
        secret,
        rejoins,
        bool(past_known),
        OwnTime(own_ms, ClockReading(wall_ms, steady_ms, boot)),
        tuple(map(_enrolment, enrolled)),
        tuple(
            StoredPromise(nano, span, until, Scope(first, last), since)
            for nano, span, until, first, last, since in promises
        ),
        tuple(LedgerEntry(*row) for row in entries),
        tuple(Forgotten(at_ms, Scope(first, last)) for at_ms, first, last in forgotten),
        tuple(Pin(pin, Scope(first, last)) for pin, first, last in pins),
        tuple(RefusalCount(*row) for row in refusals),
    )
    return memory, stamp


@lru_cache(maxsize=256)  # all are read in every transaction, and few change
def _enrolment(row: tuple[Any, ...]) -> StoredEnrolment:
    place, url, terms, level, following, renamed, secret, rejoins, number, key, slot_key = row[:11]
    policy, reserve_nano, reserved_ms, at_ms, others = row[11:]
    return StoredEnrolment(
        url,
        read_terms(terms, level),
        number,
        key,
        slot_key,
        secret,
        rejoins,
        at_ms,
        place,
        None if following is None else read_terms(following, level),
        read_renamed(renamed),
        read_policy(policy),
        reserve_nano,
        reserved_ms,
        None if others is None else (others[: len(key)], others[len(key) :]),
    )


def _state(found: os.stat_result) -> tuple[int, ...]:
    """Return a fingerprint that changes when anybody writes to the file or replaces it."""
    return found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns, found.st_ctime_ns
