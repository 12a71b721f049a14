"""Real collectors on stores that were changed, damaged, deleted, or parted from their secret."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import load
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.service.opening import load_secrets, open_store
from ldpstream.collector.service.service import Service
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake, Problem
from ldpstream.machine_clock import SystemClock
from tests.collector.driving import World
from tests.collector.helpers import SECRETS, config, device_of
from tests.collector.store_contract import TERMS
from tests.collector.test_process import CONFIG, SECONDS, call, report
from tests.serving import SERVE, CollectorProcess
from tests.waiting import eventually

RELEASED = 3
FIXTURE = Path(__file__).parents[1] / "fixtures" / "0.1.0"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The configuration of a collector that has released some timestamps, an hour each."""
    file = tmp_path / "collector.toml"
    file.write_text(CONFIG)
    found = load(file)
    found.folder.mkdir()
    (found.folder / "master.secret").write_bytes(SECRETS.master)
    begun = SystemClock().wall_ms() - RELEASED * 3_600_000 - 60_000
    world = World(found.streams[0], found.store, ManualClock(begun))
    world.enrol_everyone()
    with closing(SqliteStore(found.store, SECRETS.master)) as store:
        world.live(store, RELEASED)
    return file


def refused(file: Path) -> str:
    """Return what a collector says that does not start: one line."""
    ran = subprocess.run(
        [*SERVE, str(file)], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
    return ran.stderr


def change(store: Path, statement: str) -> None:
    """Change a release behind the collector's back; the trigger that refuses it is put back."""
    with closing(sqlite3.connect(store)) as connection:
        find = "SELECT sql FROM sqlite_schema WHERE name = 'a_release_never_changes'"
        (trigger,) = connection.execute(find).fetchone()
        connection.executescript(f"DROP TRIGGER a_release_never_changes; {statement}; {trigger}")


def until(port: int, status: int) -> dict[str, Any]:
    """Return what /v1/ready says once it answers with a status; a second is what it should take."""

    def told() -> dict[str, Any] | None:
        answered, content = call(port, "GET", "/v1/ready")
        return content if answered == status else None

    return eventually(told, f"/v1/ready answers {status}") or {}


def open_round(port: int) -> str:
    """The name of the round of stream a, once it is open: a collector is ready before that."""
    path, device = "/v1/streams/a/rounds", device_of(1).hex()
    (asking,) = eventually(
        lambda: call(port, "GET", path, Ldp_Device=device)[1]["rounds"], "a round is open"
    )
    return str(asking["round"])


# The chain


def test_a_changed_digit_is_refused_until_it_is_accepted(file: Path) -> None:
    store = load(file).store
    with closing(sqlite3.connect(store)) as connection:
        (content,) = connection.execute("SELECT content FROM release WHERE t = 2").fetchone()
    digit = next(one for one in "123456789" if one in content)
    other = content.replace(digit, str(int(digit) % 9 + 1), 1)
    change(store, f"UPDATE release SET content = '{other}' WHERE t = 2")
    said = refused(file)
    assert "stored data of stream a differs from what was released: t=2: " in said
    assert "restore a backup, or list all damage with: ldpstream audit store" in said
    command = [*SERVE[:-1], "audit", "store", str(file), "--accept"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert "t=2" in done.stdout
    with CollectorProcess(file) as collector:
        port = collector.port
        assert call(port, "GET", "/v1/streams/a/releases")[0] == 200


# The master secret


def test_a_store_without_its_master_secret_is_refused(file: Path) -> None:
    folder = load(file).folder
    (folder / "master.secret").unlink()
    said = refused(file)
    assert str(folder / "master.secret") in said
    assert "LDPSTREAM_MASTER_SECRET" in said
    assert "every device must enrol anew" in said
    assert list(folder.glob("*.secret")) == []


def test_a_store_of_0_1_0_without_its_master_secret_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LDPSTREAM_MASTER_SECRET", raising=False)
    found = config(tmp_path)
    shutil.copy(FIXTURE / "collector.sqlite", found.store)
    with pytest.raises(Mistake) as mistake:
        load_secrets(found)
    assert mistake.value.problem is Problem.MASTER_MISSING
    assert [one.name for one in tmp_path.iterdir()] == [found.store.name]


def test_another_master_secret_is_refused(file: Path) -> None:
    (load(file).folder / "master.secret").write_text("another secret, restored by mistake")
    said = refused(file)
    assert "another master secret" in said
    assert "every device must enrol anew" in said


def test_a_secret_that_was_drawn_for_nothing_is_removed(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second collector of a database, whose secret was not copied to it."""
    monkeypatch.delenv("LDPSTREAM_MASTER_SECRET", raising=False)
    shared = replace(config(tmp_path), database=database)
    Service(shared, SECRETS).store.close()
    for _ in range(2):
        secrets = load_secrets(shared)
        assert (tmp_path / "master.secret").exists()
        with pytest.raises(Mistake, match="another master secret"):
            open_store(shared, secrets)
        assert not (tmp_path / "master.secret").exists()
    (tmp_path / "master.secret").write_text("a secret that the operator wrote")
    with pytest.raises(Mistake, match="another master secret"):
        open_store(shared, load_secrets(shared))
    assert (tmp_path / "master.secret").exists()


# The file of a running collector


def test_a_store_that_is_gone_is_not_ready_until_it_is_back(file: Path) -> None:
    store = load(file).store
    away = store.with_name("away.sqlite")
    (store.parent / "admin.secret").write_text("admin token of this test")
    token = "Bearer admin token of this test"
    with CollectorProcess(file) as collector:
        port = collector.port
        until(port, 200)
        asking = open_round(port)
        store.rename(away)
        said = until(port, 503)["failures"]["a"]
        assert "collector.sqlite is gone" in said
        status = call(port, "GET", "/v1/admin/status", Authorization=token)[1]
        assert (status["ready"], status["streams"]["a"]["failure"]) == (False, said)
        assert said in call(port, "GET", "/v1/streams/a/status")[1]["doing"]
        answer = report(port, DeviceKeys(SECRETS.master, "a"), 1, asking)
        assert answer[0] == 503, "nothing is accepted that nobody will find again"
        assert not store.exists(), "no new file is made in its place"
        away.rename(store)
        until(port, 200)
        store.unlink()
        until(port, 503)


def replaced(store: Path) -> None:
    copy = store.with_name("copy.sqlite")
    shutil.copy(store, copy)
    copy.rename(store)


def without_log(store: Path) -> None:
    store.with_name(f"{store.name}-wal").unlink()


@pytest.mark.parametrize(
    ("lose", "said"),
    [
        (Path.unlink, "c.sqlite is gone"),
        (replaced, "c.sqlite is another file now"),
        (without_log, "c.sqlite-wal is gone"),
    ],
)
def test_nothing_is_stored_in_files_that_are_lost(
    tmp_path: Path, lose: Callable[[Path], None], said: str
) -> None:
    file = tmp_path / "c.sqlite"
    with closing(SqliteStore(file, SECRETS.master)) as store:
        store.create_stream("a", TERMS)
        assert store.trouble() is None
        lose(file)
        assert said in str(store.trouble())
        with pytest.raises(sqlite3.OperationalError, match=said):
            store.create_stream("b", TERMS)
        assert said in str(store.trouble())


# A damaged file


def test_a_damaged_store_is_refused_in_one_line(file: Path) -> None:
    store = load(file).store
    content = bytearray(store.read_bytes())
    content[4096:8192] = bytes(4096)
    store.write_bytes(content)
    said = refused(file)
    assert f"{store} cannot be read as a store: " in said
    assert "restore a backup" in said


def test_a_note_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    """It was a traceback: the note is whole JSON, and not what the collector writes."""
    found = config(tmp_path)
    Service(found, SECRETS).store.close()
    with closing(sqlite3.connect(found.store)) as connection, connection:
        connection.execute("INSERT INTO note VALUES (1, 'alert-rules', '[1]')")
    for _ in range(2):  # a refused one leaves no lock behind
        with pytest.raises(Mistake, match="cannot be read as a store: TypeError") as refusal:
            Service(found, SECRETS)
        assert "\n" not in str(refusal.value)


def test_a_log_without_its_file_is_refused_in_one_line(tmp_path: Path) -> None:
    """SQLite would delete it, with all that is in it."""
    file = tmp_path / "c.sqlite"
    log = file.with_name("c.sqlite-wal")
    log.write_bytes(b"left behind")
    for empty in (False, True):
        if empty:
            file.touch()
        with pytest.raises(Mistake, match=r"its write-ahead log c\.sqlite-wal is there"):
            SqliteStore(file, SECRETS.master)
        assert log.exists()


# Links, and locks that are deleted


def by_link(file: Path) -> Path:
    other = file.parent / "elsewhere" / "linked.sqlite"
    other.parent.mkdir()
    other.symlink_to(file)
    return other


def by_hard_link(file: Path) -> Path:
    other = file.parent / "elsewhere" / "linked.sqlite"
    other.parent.mkdir()
    other.hardlink_to(file)
    return other


def without_lock(file: Path) -> Path:
    file.with_name(f"{file.name}.lock").unlink()
    return file


OPEN = """
import sys
from pathlib import Path
from ldpstream.collector.store.sqlite.store import SqliteStore
SqliteStore(Path(sys.argv[1]), sys.argv[2].encode())
"""


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (by_link, "is in use by another collector"),
        (by_hard_link, "it has another name too"),
        (without_lock, "is in use by another collector"),
    ],
)
def test_a_file_has_one_collector_by_whatever_name(
    tmp_path: Path, second: Callable[[Path], Path], said: str
) -> None:
    file = tmp_path / "c.sqlite"
    with closing(SqliteStore(file, SECRETS.master)) as store:
        command = [sys.executable, "-c", OPEN, str(second(file)), SECRETS.master.decode()]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert said in ran.stderr.splitlines()[-1]
        store.create_stream("a", TERMS)


def test_the_log_of_a_file_behind_a_link_is_watched(tmp_path: Path) -> None:
    file, link = tmp_path / "c.sqlite", tmp_path / "linked" / "l.sqlite"
    SqliteStore(file, SECRETS.master).close()
    link.parent.mkdir()
    link.symlink_to(file)
    with closing(SqliteStore(link, SECRETS.master)) as store:
        store.create_stream("a", TERMS)
        without_log(file)
        assert "c.sqlite-wal is gone" in str(store.trouble())
    assert [one.name for one in link.parent.iterdir()] == ["l.sqlite"]
    with closing(SqliteStore(link, SECRETS.master)) as store:
        link.unlink()
        assert "l.sqlite is gone" in str(store.trouble())


def left_log(store: Path) -> None:
    store.with_name(f"{store.name}-wal").write_bytes(b"left behind")


def left_log_and_empty(store: Path) -> None:
    left_log(store)
    store.touch()


def dangling(store: Path) -> None:
    store.symlink_to(store.parent / "gone" / "real.sqlite")


@pytest.mark.parametrize("how", [left_log, left_log_and_empty, dangling, Path.mkdir])
def test_a_refused_start_draws_no_master_secret(
    tmp_path: Path, how: Callable[[Path], None]
) -> None:
    file = tmp_path / "collector.toml"
    file.write_text(CONFIG)
    found = load(file)
    found.folder.mkdir()
    how(found.store)
    refused(file)
    assert not (found.folder / "master.secret").exists()
    assert not (found.folder / "gone").exists()


def test_a_secret_that_was_drawn_for_a_locked_store_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LDPSTREAM_MASTER_SECRET", raising=False)
    found = config(tmp_path)
    lock = found.store.with_name(f"{found.store.name}.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Mistake, match="in use"):
            open_store(found, load_secrets(found))
    assert not (tmp_path / "master.secret").exists()


# Files that are truncated in place


def emptied(file: Path) -> None:
    os.truncate(file, 0)


def halved(file: Path) -> None:
    os.truncate(file, 8192)


def emptied_log(file: Path) -> None:
    os.truncate(file.with_name(f"{file.name}-wal"), 0)


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (emptied, "c.sqlite was truncated"),
        (halved, "c.sqlite was truncated"),
        (emptied_log, "c.sqlite-wal was truncated"),
    ],
)
def test_nothing_is_stored_in_files_that_are_cut_off(
    tmp_path: Path, cut: Callable[[Path], None], said: str
) -> None:
    file = tmp_path / "c.sqlite"
    SqliteStore(file, SECRETS.master).close()
    store = SqliteStore(file, SECRETS.master)
    store.create_stream("a", TERMS)
    cut(file)
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError, match=said):
            store.create_stream("b", TERMS)
        assert said in str(store.trouble())
    store.close()


def test_a_log_that_another_process_has_moved_into_the_file_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    with closing(SqliteStore(file, SECRETS.master)) as store:
        store.create_stream("a", TERMS)
        command = "import sqlite3, sys; connection = sqlite3.connect(sys.argv[1])\n"
        command += "print(connection.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone())"
        subprocess.run([sys.executable, "-c", command, str(file)], timeout=SECONDS, check=True)
        assert file.with_name("c.sqlite-wal").stat().st_size == 0
        store.create_stream("b", TERMS)
        assert store.trouble() is None
