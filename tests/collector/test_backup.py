"""Backups: of a store that is in use, of either kind, into either kind."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path
from zipfile import ZipFile

import pytest

from ldpstream.cli import run
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import Config, SelectionMethod
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.service.backup import MANIFEST, STORE, Content, back_up, restore
from ldpstream.collector.service.opening import open_store
from ldpstream.collector.store.contract import Store
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake, Problem
from ldpstream.sqlite_files import reading
from tests.collector.admin_contract import TOKEN, entry
from tests.collector.helpers import SECRETS, START_MS, config, device_of, new_round, unsigned
from tests.collector.store_contract import (
    SUPPORT,
    TERMS,
    as_leader,
    later,
    release_of,
    summary_of,
)
from tests.postgres import new_database

KINDS = ("sqlite", "postgres")
REPORT = b"\x01a report under way"


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str, str], Config]]:
    """Make configurations in folders of their own, with empty stores of a kind."""
    databases: list[object] = []

    @contextmanager
    def database() -> Iterator[Database]:
        with new_database(request.getfixturevalue("postgres_server")) as found:
            yield found

    def make(name: str, kind: str) -> Config:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "master.secret").write_bytes(SECRETS.master)
        made = config(folder)
        if kind == "postgres":
            opened = database()
            databases.append(opened)
            made = replace(made, database=opened.__enter__())
        return made

    yield make
    for one in databases:
        one.__exit__(None, None, None)  # type: ignore[attr-defined]


def fill(store: Store) -> None:
    """Put something into every table."""
    store.create_stream("b", TERMS)
    store.create_stream("a", TERMS)
    held = as_leader(store)
    for number in (1, 2, 3):
        held.enrol("a", device_of(number))
    held.leave("a", device_of(2))
    for t in range(1, 8):
        held.open_round("a", new_round(t))
        held.close_round("a", f"{t}-publication", 9)
        held.tally("a", {f"{t}-publication": SUPPORT})
        held.release("a", [release_of(t, missed=t == 3)], {"t": t}, 0)
    held.prune("a", 3, added=[summary_of(1, last_t=2)])
    held.succeed("a", later(2))
    held.write_note("a", "alerts", {"known": [1, 2.5, None]})
    held.admin.add_token(TOKEN, entry())
    held.admin.use_token(TOKEN.name, "a", device_of(1), 0)
    held.admin.deny("a", [device_of(3)], entry())
    held.open_round("a", new_round(8, report_bytes=len(REPORT)))
    held.accept("a", "8-publication", unsigned((1, REPORT)))


def contents(store: Store) -> list[object]:
    """All that a store shows, but for rounds under way."""
    return [
        store.stream("a"),
        store.stream("b"),
        store.releases("a", 0, 100),
        store.summaries("a"),
        [repr(vars(one)) for one in store.rounds("a", 0) if one.support is not None],
        store.note("a", "alerts"),
        store.roster("a"),
        store.left("a").tolist(),
        store.admin.tokens(),
        store.admin.denied(),
        store.admin.log(0, 100),
        [store.check_releases(name) for name in ("a", "b", "*")],
        store.admin.check_log(),
    ]


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_a_store_in_use_is_restored_as_it_was(
    source: str, target: str, place: Callable[[str, str], Config], tmp_path: Path
) -> None:
    old, new, file = place("old", source), place("new", target), tmp_path / "backup"
    with closing(open_store(old, SECRETS)) as store:
        fill(store)
        before = contents(store)
        made = back_up(old, file, with_secrets=False)
    assert made == Content({"a": 7, "b": 0}, ())
    assert oct(file.stat().st_mode) == "0o100600"
    assert restore(file, new) == made
    with closing(open_store(new, SECRETS)) as store:
        assert contents(store) == before
        assert [one.t for one in store.rounds("a", 0)] == [3, 4, 5, 6, 7]
        held = as_leader(store)  # and it goes on: numbers, rounds, releases and the log
        assert held.enrol("a", device_of(9)) == 3
        held.open_round("a", new_round(8))
        held.close_round("a", "8-publication", 9)
        held.tally("a", {"8-publication": SUPPORT})
        held.release("a", [release_of(8)], {"t": 8}, 0)
        held.create_stream("c", TERMS)
        held.admin.allow("a", [device_of(3)], entry())
    with closing(open_store(new, SECRETS)) as store:
        assert store.check_releases("a").damage is None
        assert store.admin.check_log().damage is None
    with pytest.raises(Mistake, match="already has a store"):
        restore(file, new)


def test_no_report_is_in_a_backup(place: Callable[[str, str], Config], tmp_path: Path) -> None:
    old = place("old", "sqlite")
    with closing(open_store(old, SECRETS)) as store:
        fill(store)
        log = old.store.with_name(f"{old.store.name}-wal").read_bytes()
        assert REPORT in old.store.read_bytes() + log
        back_up(old, tmp_path / "backup", with_secrets=False)
    with ZipFile(tmp_path / "backup") as packed:
        assert REPORT not in packed.read(STORE)


def test_a_store_that_is_written_to_is_taken_at_one_moment(
    place: Callable[[str, str], Config], tmp_path: Path
) -> None:
    old, stop = place("old", "sqlite"), threading.Event()
    with closing(open_store(old, SECRETS)) as store:
        store.create_stream("a", TERMS)

        def write() -> None:
            t = 1
            while not stop.is_set():
                store.release("a", [release_of(t)], {"t": t}, 0)
                t += 1

        writing = threading.Thread(target=write)
        writing.start()
        try:
            found = [
                back_up(old, tmp_path / str(number), with_secrets=False) for number in range(3)
            ]
        finally:
            stop.set()
            writing.join()
    last = [one.streams["a"] for one in found]
    assert last == sorted(set(last))  # it went on meanwhile, and every chain held


def test_a_collector_goes_on_from_a_restored_store(
    place: Callable[[str, str], Config], tmp_path: Path
) -> None:
    """Also from the middle of a timestamp: the round under way is asked for anew, or missed."""
    old, new = place("old", "sqlite"), place("new", "sqlite")
    stream = replace(old.streams[0], mechanism="lbd", selection=SelectionMethod.OPEN)
    clock = ManualClock(START_MS)
    with closing(open_store(old, SECRETS)) as store:
        coordinator = Coordinator(stream, store, clock)
        while coordinator.last_t < 3 or coordinator.open is None:
            clock.advance_to(coordinator.advance())
        back_up(old, tmp_path / "backup", with_secrets=False)
    restore(tmp_path / "backup", new)
    with closing(open_store(new, SECRETS)) as store:
        coordinator = Coordinator(stream, store, clock)
        assert coordinator.last_t == 3
        while coordinator.last_t < 6:
            clock.advance_to(max(coordinator.advance(), clock.now_ms()))
        assert store.check_releases("a").damage is None
        assert [one.t for one in store.releases("a", 0, 10)] == [1, 2, 3, 4, 5, 6]


def test_secrets_come_along_if_asked_for(
    place: Callable[[str, str], Config], tmp_path: Path
) -> None:
    old, new, file = place("old", "sqlite"), place("new", "sqlite"), tmp_path / "backup"
    (old.folder / "admin.secret").write_bytes(SECRETS.admin)
    with closing(open_store(old, SECRETS)) as store:
        fill(store)
    assert back_up(old, file, with_secrets=True).secrets == ("master", "admin")
    (new.folder / "master.secret").write_bytes(b"another secret of 16 or more")
    with pytest.raises(Mistake, match="another master secret than that of the backup"):
        restore(file, new)
    (new.folder / "master.secret").unlink()
    restore(file, new)
    assert (new.folder / "master.secret").read_bytes() == SECRETS.master
    assert (new.folder / "admin.secret").read_bytes() == SECRETS.admin
    assert not (new.folder / "enrolment.secret").exists()


def test_a_backup_without_secrets_needs_the_right_one(
    place: Callable[[str, str], Config], tmp_path: Path
) -> None:
    old, new, file = place("old", "sqlite"), place("new", "sqlite"), tmp_path / "backup"
    with closing(open_store(old, SECRETS)) as store:
        fill(store)
    back_up(old, file, with_secrets=False)
    with ZipFile(file) as packed:
        assert packed.namelist() == [MANIFEST, STORE]
    (new.folder / "master.secret").write_bytes(b"another secret of 16 or more")
    with pytest.raises(Mistake) as refused:
        restore(file, new)
    assert refused.value.problem is Problem.MASTER_DIFFERS
    (new.folder / "master.secret").unlink()
    with pytest.raises(Mistake) as refused:
        restore(file, new)
    assert refused.value.problem is Problem.BACKUP_NEEDS_MASTER
    assert [one.name for one in new.folder.iterdir()] == []


def test_a_backup_replaces_no_file(place: Callable[[str, str], Config], tmp_path: Path) -> None:
    old = place("old", "sqlite")
    with closing(open_store(old, SECRETS)) as store:
        fill(store)
    secret = old.folder / "master.secret"
    for file in (old.store, secret):
        before = file.read_bytes()
        with pytest.raises(Mistake, match="it is there already"):
            back_up(old, file, with_secrets=False)
        assert file.read_bytes() == before


def test_a_full_disk_is_blamed_on_neither_store_nor_backup(
    place: Callable[[str, str], Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(connection: sqlite3.Connection) -> closing[sqlite3.Connection]:
        connection.execute("PRAGMA max_page_count = 3")
        return closing(connection)

    def no_room(source: object, target: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    old, new, file = place("old", "sqlite"), place("new", "sqlite"), tmp_path / "a.backup"
    with closing(open_store(old, SECRETS)) as store:
        fill(store)
    with monkeypatch.context() as patched:
        patched.setattr("ldpstream.collector.store.sqlite.portable.closing", full)
        with pytest.raises(Mistake, match=r"a\.backup: No space left on device; name a file"):
            back_up(old, file, with_secrets=False)
    back_up(old, file, with_secrets=True)
    monkeypatch.setattr("shutil.copyfileobj", no_room)
    with pytest.raises(Mistake, match=r"sqlite: No space left on device; name a file"):
        restore(file, new)


def test_any_changed_byte_of_a_backup_is_refused_in_a_line(
    place: Callable[[str, str], Config], tmp_path: Path
) -> None:
    old, new, file = place("old", "sqlite"), place("new", "sqlite"), tmp_path / "backup"
    with closing(open_store(old, SECRETS)) as store:
        fill(store)
    back_up(old, file, with_secrets=True)
    whole = file.read_bytes()
    with ZipFile(file) as packed:
        directory, begin = packed.start_dir, packed.getinfo(STORE).header_offset
    places = [begin + 6, begin + 8, begin + 50, directory + 8, directory + 10, len(whole) // 2]
    for number in places:  # flags, methods of packing, and packed content
        for flipped in (0x01, 0x0E, 0xFF):
            damaged = bytearray(whole)
            damaged[number] ^= flipped
            file.write_bytes(damaged)
            with suppress(Mistake):  # what is not read may be damaged
                restore(file, new)
            for one in new.folder.iterdir():
                one.unlink()


def test_a_log_that_an_earlier_store_left_is_named(
    place: Callable[[str, str], Config], tmp_path: Path
) -> None:
    old, new, file = place("old", "sqlite"), place("new", "sqlite"), tmp_path / "backup"
    with closing(open_store(old, SECRETS)) as store:
        fill(store)
    back_up(old, file, with_secrets=True)
    log = new.store.with_name(f"{new.store.name}-wal")
    log.write_bytes(b"x")
    with pytest.raises(Mistake, match=f"{log.name}: it is the write-ahead log"):
        restore(file, new)
    log.unlink()
    restore(file, new)


def test_a_damaged_store_is_not_backed_up(
    place: Callable[[str, str], Config], tmp_path: Path
) -> None:
    old = place("old", "sqlite")
    with closing(open_store(old, SECRETS)) as store:
        fill(store)
    with closing(SqliteStore(old.store, SECRETS.master)) as opened:
        opened._writer.do(  # as somebody else would, without the key
            lambda connection: connection.execute("UPDATE stream SET last_t = 9 WHERE name = 'a'")
        )
    with pytest.raises(Mistake, match="stored data of stream a differs from what was released"):
        back_up(old, tmp_path / "backup", with_secrets=False)
    assert [one.name for one in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is not a valid backup: File is not a zip file"),
        (b"PK\5\6" + bytes(18), "is not a valid backup: .*no item named 'manifest.json'"),
    ],
)
def test_another_file_is_refused_in_a_line(
    content: bytes, told: str, place: Callable[[str, str], Config], tmp_path: Path
) -> None:
    new = place("new", "sqlite")
    (tmp_path / "backup").write_bytes(content)
    with pytest.raises(Mistake, match=told):
        restore(tmp_path / "backup", new)
    with pytest.raises(Mistake, match="not a valid backup: No such file"):
        restore(tmp_path / "none", new)
    with ZipFile(tmp_path / "newer", "w") as packed:
        packed.writestr(MANIFEST, json.dumps({"format": 2}))
    with pytest.raises(Mistake, match="it is of format 2, and this release knows 1"):
        restore(tmp_path / "newer", new)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, backup = tmp_path / "old.toml", tmp_path / "backup"
    table = (
        '[[stream]]\nname = "a"\nlabels = ["x", "y"]\nepsilon = 1\nwindow = 4\ninterval = "1s"\n'
        "population = 9\n"
    )
    file.write_text(f'[collector]\nstore = "old/c.sqlite"\n{table}')
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "master.secret").write_bytes(SECRETS.master)
    with closing(SqliteStore(tmp_path / "old" / "c.sqlite", SECRETS.master)) as store:
        fill(store)
        assert run(["backup", str(file), str(backup), "--secrets"]) == 0
    told = capsys.readouterr().out
    assert told == (
        f"{backup}: 2 stream(s) backed up and checked, with the secrets master\n"
        "  a: up to t=7\n  b: up to t=0\n"
    )
    other = tmp_path / "new.toml"
    other.write_text(f'[collector]\nstore = "new/c.sqlite"\n{table}')
    assert run(["restore", str(backup), str(other), "--json"]) == 0
    expected = {"file": str(backup), "streams": {"a": 7, "b": 0}, "secrets": ["master"]}
    assert json.loads(capsys.readouterr().out) == expected
    assert run(["restore", str(backup), str(other)]) == 2
    assert capsys.readouterr().err == (
        f"ldpstream: {tmp_path}/new/c.sqlite already has a store; move it away, or name another"
        " place in the configuration\n"
    )
    with reading(tmp_path / "new" / "c.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM release").fetchone() == (5,)
