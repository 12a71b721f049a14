"""The persistent state of a device: one SQLite file, which is open only during a transaction.

So ten thousand devices in one process hold no file handles, and a device that only listens writes
nothing. Every commit is durable when it returns.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from ldpstream.device.clock import Look, OwnTime
from ldpstream.device.witness import ChangeTime, Witness
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.machine_clock import MachineClock, SystemClock
from ldpstream.protocol.terms import Terms, TermsRefused

FORMAT = 2
"""The PRAGMA user_version of the file, which is raised when the schema changes."""
OLD = "is of release 0.1.0; it is migrated when a device opens it"
BUSY_SECONDS = 5.0
OWNER_ONLY = 0o600


class LedgerUnusable(LdpStreamError):
    """The device's file cannot be read or written, so the device is silent."""


@dataclass(frozen=True)
class Entry:
    """A debit with its report, or without one where the past is unknown."""

    t: int
    round: str
    nano: int
    report: bytes | None
    own_ms: int
    at_ms: int

    @property
    def key(self) -> tuple[int, str]:
        """The identity of the round, by which it is recognised when it is asked again."""
        return self.t, self.round


COLUMNS = ", ".join(Entry.__dataclass_fields__)


@dataclass(frozen=True)
class Enrolment:
    """The agreement between a collector and this device."""

    url: str
    terms: Terms
    key: bytes = field(repr=False)
    selection: str
    at_ms: int


@dataclass(frozen=True)
class RefusalCount:
    """How often something was refused, and the text of the last refusal."""

    code: str
    times: int
    last_ms: int
    detail: str


@dataclass(frozen=True)
class Memory:
    """The whole content of the file."""

    number: bytes
    secret: bytes = field(repr=False)
    first: bool
    """Whether an installer said that this person's device has no past; false once enrolled."""
    own: OwnTime
    forgotten_ms: int | None
    enrolment: Enrolment | None
    entries: tuple[Entry, ...]
    refusals: tuple[RefusalCount, ...]


class Change:
    """An exclusive transaction on the file; it is durable when its block ends without a fault."""

    def __init__(
        self, connection: sqlite3.Connection, memory: Memory, stamp: str, vouched_for: bool
    ) -> None:
        self._connection = connection
        self.memory = memory
        self.stamp = stamp
        self.vouched_for = vouched_for
        """Whether this is the file as it was last written, and not an older copy."""
        self.made = False

    def enter(self, entry: Entry) -> None:
        """Enter a debit with its report."""
        # A newer unknown past replaces an older one; a second report of a round is a fault.
        verb = "INSERT OR REPLACE" if entry.report is None else "INSERT"
        self._execute(
            f"{verb} INTO ledger ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
            (entry.t, entry.round, entry.nano, entry.report, entry.own_ms, entry.at_ms),
        )

    def forget(self, up_to_ms: int) -> None:
        """Delete the debits up to this own time, and store the time of the newest of them."""
        ((newest,),) = self._connection.execute(
            "SELECT max(own_ms) FROM ledger WHERE own_ms <= ?", (up_to_ms,)
        )
        if newest is not None:
            self._execute("DELETE FROM ledger WHERE own_ms <= ?", (up_to_ms,))
            self._execute(
                "UPDATE device SET forgotten_ms = max(coalesce(forgotten_ms, ?1), ?1)", (newest,)
            )

    def enrol(self, enrolment: Enrolment) -> None:
        """Store an enrolment. From then on it is no first install any more."""
        self._execute("UPDATE device SET first = 0")
        self._execute(
            "INSERT OR REPLACE INTO enrolment VALUES (1, ?, ?, ?, ?, ?)",
            (
                enrolment.url,
                enrolment.terms.canonical,
                enrolment.key,
                enrolment.selection,
                enrolment.at_ms,
            ),
        )

    def count(self, refusals: Iterable[RefusalCount]) -> None:
        """Add to the counts of refusals."""
        for one in refusals:
            self._execute(
                "INSERT INTO refusals VALUES (?, ?, ?, ?) ON CONFLICT (code) DO UPDATE SET"
                " times = times + excluded.times, last_ms = excluded.last_ms,"
                " detail = excluded.detail",
                (one.code, one.times, one.last_ms, one.detail),
            )

    def mark_time(self) -> None:
        """Commit own time, even if nothing else has changed."""
        self.made = True

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> None:
        self.made = True
        self._connection.execute(statement, values)


class Store:
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
        """Create the file, with a device number and a secret; refuse if there is one already.

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
            _make_tables(connection)
            drawn = (secrets.token_bytes(16), secrets.token_bytes(32))
            _insert_device(connection, *drawn, first_install, Look.at(self.clock), stamp)
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

    def load(self) -> Memory:
        """Return the whole content, and change nothing."""
        with self._faults(), _connection(self.path) as connection:
            self._check_format(connection)
            self._check_content(connection)
            connection.execute("BEGIN")  # one snapshot, whatever other processes do
            return _memory(connection)[0]

    @contextmanager
    def change(self) -> Iterator[Change]:
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
                if change.made:
                    self._commit(connection, change, found)
            known = change.made or change.vouched_for
            self._left = (_state(self.path.stat()), change.stamp) if known else None

    def _begin(self, connection: sqlite3.Connection, found: os.stat_result) -> Change:
        if found.st_nlink > 1:  # SQLite finds the journal by the file's name
            raise OSError("has another name too (a hard link); remove that one")
        seen = self._left is not None and self._left[0] == _state(found)
        if not seen:
            self._check_content(connection)
        taken_over = not seen and self._take_over(connection)
        self._check_format(connection)
        memory, stamp = _memory(connection)
        # `_left` was read after the lock was released: the stamp tells whether another wrote then.
        untouched = self._left == (_state(found), stamp)
        # Resumed once, so that all checks, debits and marks of a transaction share one timeline.
        own = memory.own.resumed(Look.at(self.clock))
        another_boot = own.look.boot != memory.own.look.boot
        memory = replace(memory, own=own)
        vouched_for = untouched or (not taken_over and self._witness.vouches(found, stamp))
        if vouched_for and not untouched:
            self._witness.committed(stamp)  # else a rollback of what is sent now could go unnoticed
        change = Change(connection, memory, stamp, vouched_for)
        change.made = taken_over or another_boot  # own time is most exact within a boot
        return change

    def _commit(
        self, connection: sqlite3.Connection, change: Change, found: os.stat_result
    ) -> None:
        now, change.stamp = Look.at(self.clock), self._witness.stamp(found)
        connection.execute(
            "UPDATE device SET own_ms = ?, wall_ms = ?, steady_ms = ?, boot = ?, stamp = ?,"
            " first = min(first, ?)",  # a restored copy is no first install
            (
                change.memory.own.at(now),
                now.wall_ms,
                now.steady_ms,
                now.boot,
                change.stamp,
                change.vouched_for,
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

    def _take_over(self, connection: sqlite3.Connection) -> bool:
        """Migrate a file of release 0.1.0 to this format; return whether it was one.

        Its debits are dropped, and the caller counts everything as spent: they were entered by
        label time, and more than they say may have been sent.
        """
        ((found,),) = connection.execute("PRAGMA user_version")
        if found != 1:
            return False
        device = connection.execute("SELECT number, secret FROM device").fetchall()
        enrolled = connection.execute(
            "SELECT url, terms, key, selection, at_ms FROM enrolment"
        ).fetchall()
        refusals = connection.execute("SELECT * FROM refusals").fetchall()
        for table in ("device", "enrolment", "ledger", "refusals"):
            connection.execute(f"DROP TABLE {table}")
        _make_tables(connection)
        for number, secret in device:
            _insert_device(connection, number, secret, False, Look.at(self.clock), "")
        connection.executemany("INSERT INTO enrolment VALUES (1, ?, ?, ?, ?, ?)", enrolled)
        connection.executemany("INSERT INTO refusals VALUES (?, ?, ?, ?)", refusals)
        return True

    def _check_format(self, connection: sqlite3.Connection) -> None:
        ((found,),) = connection.execute("PRAGMA user_version")
        if found != FORMAT:
            what = f"has format {found}, and this program knows {FORMAT}"
            if found == 1:
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
        yield connection
    finally:
        connection.close()


def _make_tables(connection: sqlite3.Connection) -> None:
    schema = files(__package__).joinpath("schema.sql").read_text("utf-8")
    lines = (line.partition("--")[0] for line in schema.splitlines())
    for statement in "\n".join(lines).split(";"):  # `executescript` would commit first
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _insert_device(
    connection: sqlite3.Connection,
    number: bytes,
    secret: bytes,
    first: bool,
    now: Look,
    stamp: str,
) -> None:
    """Insert the device; its own time begins now."""
    connection.execute(
        "INSERT INTO device VALUES (1, ?, ?, ?, 0, ?, ?, ?, NULL, ?)",
        (number, secret, first, now.wall_ms, now.steady_ms, now.boot, stamp),
    )


def _memory(connection: sqlite3.Connection) -> tuple[Memory, str]:
    device = connection.execute(
        "SELECT number, secret, first, own_ms, wall_ms, steady_ms, boot, forgotten_ms, stamp"
        " FROM device"
    ).fetchone()
    if device is None:
        raise ValueError("has no device in it")
    enrolled = connection.execute("SELECT url, terms, key, selection, at_ms FROM enrolment")
    entries = connection.execute(
        f"SELECT {COLUMNS} FROM ledger ORDER BY own_ms, t, round"  # nosec B608 # noqa: S608
    )
    refusals = connection.execute(
        "SELECT code, times, last_ms, detail FROM refusals ORDER BY last_ms"
    )
    number, secret, first, own_ms, wall_ms, steady_ms, boot, forgotten_ms, stamp = device
    memory = Memory(
        number,
        secret,
        bool(first),
        OwnTime(own_ms, Look(wall_ms, steady_ms, boot)),
        forgotten_ms,
        next((_enrolment(*row) for row in enrolled), None),
        tuple(Entry(*row) for row in entries),
        tuple(RefusalCount(*row) for row in refusals),
    )
    return memory, stamp


def _enrolment(url: str, terms: str, key: bytes, selection: str, at_ms: int) -> Enrolment:
    return Enrolment(url, _terms(terms), key, selection, at_ms)


@lru_cache(maxsize=16)  # terms may have 65,536 labels, and are read in every transaction
def _terms(text: str) -> Terms:
    try:
        return Terms.read(json.loads(text))
    except TermsRefused as error:
        raise ValueError(str(error)) from None


def _state(found: os.stat_result) -> tuple[int, ...]:
    """Return a fingerprint that changes when anybody writes to the file or replaces it."""
    return found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns, found.st_ctime_ns
