"""A device's memory: one SQLite file, opened for each transaction and for no longer.

So ten thousand devices in one process need no file handles, and a device that only listens writes
nothing. Every commit is on disk, in full, when it returns.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path

from ldpstream.device.terms import Terms, TermsRefused
from ldpstream.device.witness import ChangeTime, Witness
from ldpstream.errors import LdpStreamError, Problem

FORMAT = 1
"""PRAGMA user_version of the file; raised when the schema changes."""
BUSY_SECONDS = 5.0


class LedgerUnusable(LdpStreamError):
    """The device's file cannot be read or written, so it keeps silent."""


class LedgerMoved(LdpStreamError):
    """Another process has written to the file since this one read it."""


@dataclass(frozen=True)
class Entry:
    """A debit with its report, or with none where the past is unknown."""

    t: int
    round: str
    nano: int
    report: bytes | None
    at_ms: int


@dataclass(frozen=True)
class Enrolment:
    """What a collector and this device agreed on."""

    url: str
    terms: Terms
    key: bytes = field(repr=False)
    selection: str
    offset_ms: int
    at_ms: int


@dataclass(frozen=True)
class RefusalCount:
    """How often something was refused, and the last time in words."""

    code: str
    times: int
    last_ms: int
    detail: str


@dataclass(frozen=True)
class Memory:
    """All that is in the file."""

    number: bytes
    secret: bytes = field(repr=False)
    commits: int
    enrolment: Enrolment | None
    entries: tuple[Entry, ...]
    refusals: tuple[RefusalCount, ...]
    vouched_for: bool = False
    """Whether this is the file as it was last written, and no older copy."""


class Store:
    """The file of one device."""

    def __init__(self, path: Path, witness: Witness | None = None) -> None:
        self.path = path.absolute()
        self._witness = witness or ChangeTime()
        self._left: tuple[int, ...] | None = None
        """The file as this process has left it, for `_check_untouched`."""

    def create(self) -> None:
        """Make the file, with a device number and a secret; do nothing if there is one."""
        with self._faults():
            try:
                # Before SQLite would, and closed to others from the first instant.
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            except FileExistsError:
                if self.path.stat().st_size:
                    return  # an empty file is a creation that was cut short
            with self._connection() as connection:
                connection.executescript(
                    "BEGIN IMMEDIATE;"
                    + files(__package__).joinpath("schema.sql").read_text("utf-8")
                    + f"PRAGMA user_version = {FORMAT};"
                )
                stamp = self._witness.stamp()
                drawn = (secrets.token_bytes(16), secrets.token_bytes(32), stamp)
                connection.execute("INSERT INTO device VALUES (1, ?, ?, 0, ?)", drawn)
                connection.execute("COMMIT")
            self._witness.committed(stamp)

    def load(self) -> Memory:
        """Read everything, and ask the witness whether it is the latest."""
        with self._faults():
            found = self.path.stat()  # before SQLite mends what a crash left, which changes it
            memory, stamp = self._read()
            self._left = self._identity()
            return replace(memory, vouched_for=self._witness.vouches(found, stamp))

    def _read(self) -> tuple[Memory, int]:
        with self._connection() as connection:
            self._check_format(connection)
            self._check_content(connection)
            connection.execute("BEGIN")  # one look, whatever another process does meanwhile
            device = connection.execute(
                "SELECT number, secret, commits, stamp FROM device"
            ).fetchone()
            if device is None:
                raise ValueError("has no device in it")
            enrolled = connection.execute(
                "SELECT url, terms, key, selection, offset_ms, at_ms FROM enrolment"
            ).fetchone()
            entries = connection.execute(
                "SELECT t, round, nano, report, at_ms FROM ledger ORDER BY t, at_ms, round"
            ).fetchall()
            refusals = connection.execute(
                "SELECT code, times, last_ms, detail FROM refusals ORDER BY last_ms"
            ).fetchall()
        number, secret, commits, stamp = device
        memory = Memory(
            number,
            secret,
            commits,
            _enrolment(*enrolled) if enrolled else None,
            tuple(Entry(*row) for row in entries),
            tuple(RefusalCount(*row) for row in refusals),
        )
        return memory, stamp

    def enrol(self, commits: int, enrolment: Enrolment, entries: Iterable[Entry]) -> int:
        """Keep an enrolment, and with a first one what the ledger starts with."""
        with self._commit(commits) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO enrolment VALUES (1, ?, ?, ?, ?, ?, ?)",
                (
                    enrolment.url,
                    enrolment.terms.canonical,
                    enrolment.key,
                    enrolment.selection,
                    enrolment.offset_ms,
                    enrolment.at_ms,
                ),
            )
            for entry in entries:
                _insert(connection, entry)
        return commits + 1

    def add(
        self, commits: int, entry: Entry, forget: int, refusals: Iterable[RefusalCount] = ()
    ) -> int:
        """Commit a debit with its report, and forget those of timestamps up to `forget`."""
        with self._commit(commits) as connection:
            _insert(connection, entry)
            connection.execute("DELETE FROM ledger WHERE t <= ?", (forget,))
            _count(connection, refusals)
        return commits + 1

    def count(self, commits: int, refusals: Iterable[RefusalCount]) -> int:
        """Add to the counts of refusals."""
        with self._commit(commits) as connection:
            _count(connection, refusals)
        return commits + 1

    @contextmanager
    def _commit(self, commits: int) -> Iterator[sqlite3.Connection]:
        """A transaction on the file as this process knows it; on disk, and witnessed, at the end.

        If it fails, it may still be on disk: read the file again, and send nothing.
        """
        with self._faults():
            self._check_untouched()
            with self._connection() as connection:
                connection.execute("BEGIN IMMEDIATE")
                stamp = self._witness.stamp()
                moved = connection.execute(
                    "UPDATE device SET commits = commits + 1, stamp = ? WHERE commits = ?",
                    (stamp, commits),
                )
                if moved.rowcount != 1:
                    raise LedgerMoved(Problem.LEDGER_MOVED, file=self.path.name)
                yield connection
                connection.execute("COMMIT")
            self._witness.committed(stamp)
            self._left = self._identity()

    def _check_untouched(self) -> None:
        """Refuse to write over what somebody else has changed since this process looked.

        Its commit would make the file the latest again in the eyes of the witness, with whatever
        became of the debits in it.
        """
        if self._left is not None and self._identity() != self._left:
            raise LedgerMoved(Problem.LEDGER_MOVED, file=self.path.name)

    def _identity(self) -> tuple[int, ...]:
        found = self.path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection that is closed at the end, which rolls back what was not committed."""
        connection = sqlite3.connect(
            # Never made here: a file that has gone missing must not come back empty.
            f"{self.path.as_uri()}?mode=rw",
            uri=True,
            isolation_level=None,
            timeout=BUSY_SECONDS,
        )
        try:
            # FULL does not sync the folder after the journal is deleted, which is the moment of
            # commit: after a power cut the journal could be back, and the debit gone. EXTRA does.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")
            yield connection
        finally:
            connection.close()

    def _check_format(self, connection: sqlite3.Connection) -> None:
        ((found,),) = connection.execute("PRAGMA user_version")
        if found != FORMAT:
            what = f"has format {found}, and this program knows {FORMAT}"
            raise LedgerUnusable(Problem.LEDGER_FILE, file=self.path.name, what=what)

    def _check_content(self, connection: sqlite3.Connection) -> None:
        """Refuse a file whose pages, types or CHECKs are broken: its debits cannot be believed."""
        ((found,),) = connection.execute("PRAGMA quick_check(1)")
        if found != "ok":
            raise sqlite3.DatabaseError(f"damaged: {found.splitlines()[-1]}")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Whatever the disk does is told in one way."""
        try:
            yield
        except (OSError, sqlite3.Error, ValueError, TermsRefused) as error:
            # The last two: in a damaged file, texts may be none, and terms may be none.
            what = getattr(error, "strerror", None) or str(error)
            raise LedgerUnusable(Problem.LEDGER_FILE, file=self.path.name, what=what) from error


def _enrolment(
    url: str, terms: str, key: bytes, selection: str, offset_ms: int, at_ms: int
) -> Enrolment:
    return Enrolment(url, Terms.read(json.loads(terms)), key, selection, offset_ms, at_ms)


def _insert(connection: sqlite3.Connection, entry: Entry) -> None:
    # An unknown past that is entered twice at one t is as spent as entered once; but a second
    # report of one round is a fault.
    verb = "INSERT OR IGNORE" if entry.report is None else "INSERT"
    connection.execute(
        f"{verb} INTO ledger VALUES (?, ?, ?, ?, ?)",
        (entry.t, entry.round, entry.nano, entry.report, entry.at_ms),
    )


def _count(connection: sqlite3.Connection, refusals: Iterable[RefusalCount]) -> None:
    connection.executemany(
        "INSERT INTO refusals VALUES (?, ?, ?, ?) ON CONFLICT (code) DO UPDATE SET"
        " times = times + excluded.times, last_ms = excluded.last_ms, detail = excluded.detail",
        [(one.code, one.times, one.last_ms, one.detail) for one in refusals],
    )
