"""The embedded store: SQLite in WAL mode, fully synchronous."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ldpstream.collector.kernels.device_table import ABSENT, DeviceTable
from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import Verdict, Verdicts, all_of
from ldpstream.collector.store import chain_tables, round_table
from ldpstream.collector.store.admin_tables import AdminTables
from ldpstream.collector.store.chain import ChainCheck, Progress, ignore
from ldpstream.collector.store.contract import (
    NO_RESTS,
    Change,
    NewRound,
    Places,
    ReleaseSummary,
    Rests,
    StoredRelease,
    StoredStream,
    observed,
)
from ldpstream.collector.store.damage import reading_store
from ldpstream.collector.store.sql import SqlStore
from ldpstream.collector.store.sqlite import chained
from ldpstream.collector.store.sqlite.identity import FileLengths, OpenFiles
from ldpstream.collector.store.sqlite.integrity import check_content, find_main_file, log_of
from ldpstream.collector.store.sqlite.migrations import migrate, version_of
from ldpstream.collector.store.sqlite.readers import Readers
from ldpstream.collector.store.sqlite.running import SqliteTables, executing
from ldpstream.collector.store.sqlite.writer import Writer
from ldpstream.collector.store.statements import id_of, next_serial, write_note
from ldpstream.errors import Mistake, Problem
from ldpstream.oracles.collector_half import Support

_INSERT_RELEASE = "INSERT INTO release VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass
class _OpenRound:
    """An open round, and the fingerprint of what each device has reported in it."""

    id: int
    seen: DeviceTable = field(default_factory=DeviceTable)


class SqliteStore(SqlStore):
    """A store in one file: one thread writes, and each reader has a connection of its own."""

    def __init__(self, file: Path, master: bytes) -> None:
        self._file = Path(os.path.realpath(file))
        self._readers = Readers(self._connect)
        self._setting_lock = threading.Lock()
        self._open_rounds: dict[tuple[str, str], _OpenRound] = {}
        self._files = OpenFiles()
        with ExitStack() as opening:
            with _writable(file):
                find_main_file(file)
                self._file.parent.mkdir(parents=True, exist_ok=True)
                opening.enter_context(_lock(self._file.with_name(f"{self._file.name}.lock"), file))
                find_main_file(file)  # again, now that nobody else changes it
                opening.enter_context(_own(self._file, file))
            with reading_store(file):
                writing = opening.enter_context(closing(self._connect()))
                version = version_of(writing, file)
                check_content(writing, version)
                migrate(writing, version, lambda: chained.begin_chain(writing, master))
                self._chain = chained.read_chain(writing, master, file)
                self._recall(writing)
            self._files = OpenFiles(file, self._file, log_of(self._file))
            self._lengths = FileLengths(
                self._file, log_of(self._file), lambda: _frames_in_log(writing)
            )
            self._resources = opening.pop_all()
        self._writer = Writer(
            writing, begin=self._check_files, undone=self._recall, done=self._lengths.remember
        )
        self._tables = SqliteTables(self._writer, self._readers)
        self.admin = AdminTables(self._tables, self._chain)

    def close(self) -> None:
        self._writer.close()
        self._readers.close()
        self._resources.close()

    def trouble(self) -> str | None:
        return self._files.trouble() or self._lengths.trouble

    def _check_files(self) -> None:
        self._files.check()
        self._lengths.check()

    def _connect(self) -> sqlite3.Connection:
        self._files.check()
        # No file is made in place of one that was deleted; readers pass from thread to thread.
        uri = f"{self._file.as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        connection.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
            "PRAGMA busy_timeout = 10000; PRAGMA temp_store = MEMORY;"
            "PRAGMA secure_delete = ON;"
        )
        return connection

    # Streams and devices

    def create_stream(self, name: str, terms: dict[str, Any]) -> StoredStream:
        self._tables.change(lambda run: chain_tables.create_stream(run, self._chain, name, terms))
        return StoredStream(terms, 0, 0, None)

    @observed
    def succeed(self, stream: str, terms: dict[str, Any]) -> int:
        def work(connection: sqlite3.Connection) -> int:
            known = chained.read_ends(connection, stream)
            return chain_tables.succeed(executing(connection), self._chain, stream, known, terms)

        return self._writer.do(work)

    @observed
    def enrol(self, stream: str, device: bytes) -> int:
        def work(connection: sqlite3.Connection) -> int:
            key = id_of(executing(connection), stream)
            known = connection.execute(
                "SELECT number FROM device WHERE stream = ? AND device = ?", (key, device)
            ).fetchone()
            if known:
                return int(known[0])
            (number,) = connection.execute(
                "SELECT coalesce(max(number) + 1, 0) FROM device WHERE stream = ?", (key,)
            ).fetchone()
            connection.execute(
                "INSERT INTO device (stream, number, device) VALUES (?, ?, ?)",
                (key, number, device),
            )
            return int(number)

        return self._writer.do(work)

    def roster(self, stream: str, first: int = 0) -> bytes:
        with self._readers.use() as connection:
            rows = connection.execute(
                "SELECT device FROM device WHERE stream = (SELECT id FROM stream WHERE name = ?)"
                " AND number >= ? ORDER BY number",
                (stream, first),
            ).fetchall()
        return b"".join(device for (device,) in rows)

    @observed
    def leave(self, stream: str, device: bytes) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE device SET has_left = 1 WHERE stream = ? AND device = ?",
                (id_of(executing(connection), stream), device),
            )

        self._writer.do(work)

    def left(self, stream: str) -> Places:
        return self._of_roster("number", "has_left = 1", stream).reshape(-1)

    # Rounds

    @observed
    def open_round(self, stream: str, *new: NewRound) -> int:
        def work(connection: sqlite3.Connection) -> int:
            run = executing(connection)
            key = id_of(run, stream)
            for one in new:
                self._open_rounds[stream, one.name] = _OpenRound(round_table.insert(run, key, one))
            return next_serial(run, key)

        return self._writer.do(work)

    @observed
    def accept(self, stream: str, round_name: str, records: Records) -> Verdicts:
        def work(connection: sqlite3.Connection) -> Verdicts:
            taking = self._open_rounds.get((stream, round_name))
            if taking is None:
                return all_of(Verdict.CLOSED, len(records))
            prints = records.fingerprints
            before = taking.seen.add(records.devices, prints)
            verdicts = all_of(Verdict.CONFLICT, len(records))
            verdicts[before == prints] = Verdict.REPEATED
            verdicts[before == ABSENT] = Verdict.ACCEPTED
            fresh = records.where(verdicts == Verdict.ACCEPTED)
            if len(fresh):
                connection.execute(
                    "INSERT INTO report_batch (round, number, records) VALUES (?, ?, ?)",
                    (taking.id, len(fresh), fresh.packed),
                )
            return verdicts

        return self._writer.do(work)

    def received(self, stream: str, round_name: str) -> int:
        taking = self._open_rounds.get((stream, round_name))
        return 0 if taking is None else len(taking.seen)

    @observed
    def close_round(self, stream: str, round_name: str, at_ms: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            run = executing(connection)
            serial = round_table.close(run, id_of(run, stream), round_name, at_ms)
            self._open_rounds.pop((stream, round_name), None)
            return serial

        return self._writer.do(work)

    def reports(self, stream: str, round_name: str) -> Iterator[Records]:
        with self._readers.use() as connection:
            rows = connection.execute(
                "SELECT records, report_bytes FROM report_batch"
                " JOIN round ON round.id = report_batch.round"
                " JOIN stream ON stream.id = round.stream"
                " WHERE stream.name = ? AND round.name = ? ORDER BY report_batch.id",
                (stream, round_name),
            )
            for packed, report_bytes in rows:
                yield Records.of(packed, report_bytes)

    @observed
    def tally(self, stream: str, supports: Mapping[str, Support], rests: Rests = NO_RESTS) -> None:
        def work(connection: sqlite3.Connection) -> None:
            run = executing(connection)
            key = id_of(run, stream)
            for name, support in supports.items():
                round_table.tally(run, key, name, support)
                connection.execute(
                    "DELETE FROM report_batch WHERE round ="
                    " (SELECT id FROM round WHERE stream = ? AND name = ?)",
                    (key, name),
                )
            connection.executemany(
                "UPDATE device SET unanswered = ?, rests_until = ? WHERE stream = ? AND number = ?",
                [(times, until, key, number) for number, times, until in rests.tolist()],
            )

        self._writer.do(work, erases=True)

    # Releases

    @observed
    def release(
        self,
        stream: str,
        releases: Sequence[StoredRelease],
        mechanism: dict[str, Any],
        forget_t: int,
    ) -> None:
        def work(connection: sqlite3.Connection) -> None:
            chain_tables.release(
                executing(connection),
                self._chain,
                stream,
                chained.read_ends(connection, stream),
                releases,
                mechanism,
                forget_t,
                partial(connection.executemany, _INSERT_RELEASE),
            )

        self._writer.do(work, erases=True)

    def check_releases(self, stream: str, progress: Progress = ignore) -> ChainCheck:
        with self._readers.use() as connection:
            connection.execute("BEGIN")
            try:
                return chained.check(connection, self._chain, stream, progress)
            finally:
                connection.execute("ROLLBACK")

    def accept_releases(self, stream: str) -> None:
        self._writer.do(lambda connection: chained.accept(connection, self._chain, stream))

    @observed
    def prune(
        self,
        stream: str,
        before_t: int,
        added: Sequence[ReleaseSummary] = (),
        gone: Sequence[int] = (),
    ) -> None:
        def work(connection: sqlite3.Connection) -> None:
            known, run = chained.read_ends(connection, stream), executing(connection)
            chain_tables.prune(run, self._chain, stream, known, before_t, added, gone)

        self._writer.do(work, erases=True)

    # Notes

    @observed
    def write_note(self, stream: str, name: str, content: dict[str, Any]) -> None:
        self._tables.change(lambda run: write_note(run, stream, name, content))

    @observed
    def change_setting(self, stream: str, name: str, change: Change) -> dict[str, Any]:
        with self._setting_lock:  # no other process writes to the file
            content = change(self.note(stream, name))
            self.write_note(stream, name, content)
        return content

    def _recall(self, connection: sqlite3.Connection) -> None:
        """Read the open rounds from the file into memory; if that fails, forget all of them."""
        try:
            self._open_rounds = _open_rounds(connection)
        except Exception:
            self._open_rounds = {}
            raise


def _open_rounds(connection: sqlite3.Connection) -> dict[tuple[str, str], _OpenRound]:
    found: dict[tuple[str, str], _OpenRound] = {}
    for round_id, stream, name, report_bytes in connection.execute(
        "SELECT round.id, stream.name, round.name, report_bytes FROM round"
        " JOIN stream ON stream.id = round.stream WHERE state = 'open'"
    ).fetchall():
        taking = found[stream, name] = _OpenRound(round_id)
        for (packed,) in connection.execute(
            "SELECT records FROM report_batch WHERE round = ? ORDER BY id", (round_id,)
        ):
            records = Records.of(packed, report_bytes)
            taking.seen.add(records.devices, records.fingerprints)
    return found


def make_private(file: Path) -> Path:
    """Make a file that only its owner may use, whatever the umask; SQLite's WAL has its mode."""
    os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    file.chmod(0o600)
    return file


@contextmanager
def _writable(file: Path) -> Iterator[None]:
    """Report a place where no file can be written as a mistake, in one line."""
    try:
        yield
    except OSError as error:
        raise Mistake(Problem.STORE_FILE, file=file, what=error.strerror) from None


def _lock(lock: Path, store: Path) -> Any:
    """Lock a file for this process: two collectors on one store would ask everyone twice."""
    held = make_private(lock).open("rb")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        raise Mistake(Problem.STORE_LOCKED, file=store) from None
    return held


def _own(file: Path, store: Path) -> Any:
    """Lock the store's file itself, because a lock beside it can be deleted.

    On Linux only: elsewhere this lock and SQLite's own exclude each other. It is taken before
    SQLite's and given back after them, because they end when any descriptor of the file is closed.
    """
    if sys.platform == "linux":
        return _lock(file, store)
    make_private(file)
    return nullcontext()


def _frames_in_log(connection: sqlite3.Connection) -> int:
    _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(frames)
