"""`ldpstream serve --check --against STORE`: what a file changes of a store."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ldpstream.cli import run
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import load
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.store import PostgresStore
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake, Problem
from tests.collector.helpers import SECRETS, START_MS

STREAM = """\
[collector]
store = "c.sqlite"

[[stream]]
name = "a"
labels = ["x", "y", "z"]
epsilon = 1
window = 4
interval = "10s"
mechanism = "lpf"
oracle = "grr"
population = 40
"""
LEVEL = """
[[stream.level]]
name = "careful"
epsilon = 0.5
window = 8
"""


class World:
    """A store that was begun from one file, and other files to compare with it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "stream.toml"
        self.store = folder / "c.sqlite"

    def begin(self, text: str = STREAM, timestamps: int = 3) -> World:
        self.file.write_text(text)
        config = load(self.file).streams[0]
        clock = ManualClock(START_MS)
        with closing(SqliteStore(self.store, SECRETS.master)) as store:
            coordinator = Coordinator(config, store, clock)
            for _ in range(2 * timestamps):
                clock.advance_to(coordinator.advance())
            store.write_note("a", "alert-rules", {"rules": [{"label": "y", "above": 0.3}]})
        return self

    def check(self, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
        """The exit status, and what is said of the one stream."""
        self.file.write_text(text)
        before = self.store.read_bytes()
        capsys.readouterr()
        command = ["serve", "--check", str(self.file), "--against", str(self.store)]
        status = run([*command, "--json"])
        told = json.loads(capsys.readouterr().out)
        assert told["served"] == (status == 0)
        assert run(command) == status
        assert self.store.read_bytes() == before
        (stream,) = told["streams"]
        return status, stream

    def serve(self) -> Mistake | None:
        """What `serve` says to the file, which then is in the store, or is refused."""
        with closing(SqliteStore(self.store, SECRETS.master)) as store:
            try:
                Coordinator(load(self.file).streams[0], store, ManualClock(START_MS + 60_000))
            except Mistake as mistake:
                return mistake
        return None


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_file_that_changes_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = world.begin().check(STREAM, capsys)
    assert (status, told["version"], told["differences"]) == (0, 1, [])
    run(["serve", "--check", str(world.file), "--against", str(world.store)])
    out = capsys.readouterr().out
    assert "a: version 1 in the store, nothing changes" in out
    assert "always free: population, mechanism, alerts" in out


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [("population = 40", "population = 90", "population"), ('"lpf"', '"lpu"', "mechanism")],
)
def test_what_is_free_is_said_to_be(
    world: World, capsys: pytest.CaptureFixture[str], old: str, new: str, key: str
) -> None:
    status, told = world.begin().check(STREAM.replace(old, new), capsys)
    (change,) = told["differences"]
    assert (status, change["key"], change["verdict"]) == (0, key, "free")
    assert world.serve() is None


SUCCESSORS = [
    ('["x", "y", "z"]', '["x", "y", "z", "new"]', "labels", 6),
    ('["x", "y", "z"]', '["z", "y", "x"]', "labels", 6),
    ("epsilon = 1", "epsilon = 0.5", "epsilon", 7),
    ("window = 4", "window = 6", "window", 8),
    ('oracle = "grr"', 'oracle = "oue"', "oracle", 11),
    ("population = 40", 'population = 40\nother = "z"', "other", 13),
    ("population = 40", f"population = 40\n{LEVEL}", "level", 14),
]


@pytest.mark.parametrize(("old", "new", "key", "line"), SUCCESSORS)
def test_what_needs_a_successor_is_said_with_its_line_and_what_to_write(
    world: World, capsys: pytest.CaptureFixture[str], old: str, new: str, key: str, line: int
) -> None:
    changed = STREAM.replace(old, new)
    status, told = world.begin().check(changed, capsys)
    (change,) = told["differences"]
    assert (status, change["verdict"], change["key"], change["line"]) == (2, "successor", key, line)
    refused = world.serve()
    assert refused is not None
    assert refused.problem is Problem.TERMS_CHANGED
    assert str(refused) == told["refusal"]
    assert f"line {line}" in str(refused)
    assert told["to_write"].startswith("[stream.successor]\nversion = 2")
    status, told = world.check(f"{changed}\n{told['to_write']}\n", capsys)
    assert (status, told["refusal"]) == (0, None)
    assert told["successor"]["version"] == 2
    assert world.serve() is None
    status, told = world.check(world.file.read_text(), capsys)
    assert (status, told["version"], told["differences"]) == (0, 2, [])


IMPOSSIBLE = [
    ("epsilon = 1", "epsilon = 2", "epsilon", 7, "epsilon would grow"),
    ("window = 4", "window = 3", "window", 8, "the window would become shorter"),
    ('interval = "10s"', 'interval = "20s"', "interval", 9, "interval_ms would change"),
    ('labels = ["x", "y", "z"]', "range = [0, 1]", "range", 6, "query would change"),
    ("population = 40", 'population = 40\nselection = "open"', "selection", 13, "selection would"),
]


@pytest.mark.parametrize(("old", "new", "key", "line", "why"), IMPOSSIBLE)
def test_what_cannot_be_is_said_with_its_line_and_the_reason(
    world: World,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    key: str,
    line: int,
    why: str,
) -> None:
    changed = STREAM.replace(old, new)
    if key == "range":
        changed = re.sub("oracle = .*\n", "", changed)
    status, told = world.begin().check(changed, capsys)
    (change,) = [one for one in told["differences"] if one["key"] == key]
    assert (status, change["verdict"], change["line"]) == (2, "impossible", line)
    assert why in change["why"]
    assert told["to_write"] is None
    for text in (changed, f"{changed}\n[stream.successor]\nversion = 2\n"):
        world.file.write_text(text)
        refused = world.serve()
        assert refused is not None
        assert why in str(refused)


def test_a_level_may_come_and_cannot_go(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = world.begin(STREAM + LEVEL).check(STREAM, capsys)
    (change,) = told["differences"]
    assert (status, change["verdict"]) == (2, "impossible")
    assert "do not have the level careful" in change["why"]


def test_labels_that_go_must_be_mapped_and_rules_about_them_are_named(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = STREAM.replace('"y", "z"', '"w"')
    status, told = world.begin().check(changed, capsys)
    assert status == 2
    assert 'rename = { "y" = "...", "z" = "..." }' in told["to_write"]
    (remark,) = told["remarks"]
    assert "'y above 0.3' is about label 'y', which is gone: it will never fire" in remark
    section = '[stream.successor]\nversion = 2\nrename = { y = "w" }\n'
    status, told = world.check(f"{changed}\n{section}", capsys)
    assert status == 2
    assert "label 'z' of version 1 is gone, and nothing says where to" in told["refusal"]
    whole = section.replace("}", ', z = "x" }')
    status, told = world.check(f"{changed}\n{whole}", capsys)
    assert (status, told["successor"]["labels"]) == (0, ["x", "w", "x"])
    assert world.serve() is None


def test_a_new_stream_and_one_that_is_not_served(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.begin()
    world.file.write_text(STREAM.replace('"a"', '"b"'))
    assert run(["serve", "--check", str(world.file), "--against", str(world.store)]) == 0
    out = capsys.readouterr().out
    assert "b: not in the store: it will be created" in out
    assert "a: in the store, but not in the file" in out


def test_a_mistake_is_one_line(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.file.write_text(STREAM)
    missing = str(world.store)
    for command in (["--check", "--against", missing], ["--against", missing]):
        assert run(["serve", str(world.file), *command]) == 2
        assert capsys.readouterr().err.count("\n") == 1


# `serve --check` by itself


def checked(world: World, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    capsys.readouterr()
    status = run(["serve", "--check", str(world.file), "--json"])
    told: list[str] = json.loads(capsys.readouterr().out)["refused"]
    assert (status == 2) == bool(told)
    assert run(["serve", "--check", str(world.file)]) == status
    return status, told


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPSTREAM_MASTER_SECRET", SECRETS.master.decode())


@pytest.mark.usefixtures("secret")
def test_a_check_compares_the_file_with_its_own_store(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.begin()
    assert checked(world, capsys) == (0, [])
    world.file.write_text(STREAM.replace('"z"]', '"z", "new"]'))
    status, (why,) = checked(world, capsys)
    assert status == 2
    refused = world.serve()
    assert refused is not None
    assert why == str(refused)
    assert "Domain(" not in why


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('listen = "192.0.2.1:80"', "cannot listen on 192.0.2.1"),
        ('admin_file = "nowhere.secret"', "name a readable file"),
    ],
)
def test_a_check_finds_what_the_file_alone_does_not_show(
    world: World, capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    world.file.write_text(STREAM.replace("[collector]", f"[collector]\n{line}"))
    _, (why,) = checked(world, capsys)
    assert told in why
    assert not world.store.exists()  # nothing is begun


def test_a_check_finds_a_store_without_its_master_secret(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.begin()
    _, (why,) = checked(world, capsys)
    assert "its master secret is neither" in why


POSTGRES = "ldpstream.collector.store.postgres"
NO_DATABASE = 'store = "postgresql://127.0.0.1:1/none?connect_timeout=1"'


def test_a_check_finds_a_database_that_does_not_answer(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether or not there is a master secret: without one, `serve` would draw it and connect."""
    world.file.write_text(STREAM.replace('store = "c.sqlite"', NO_DATABASE))
    _, (why,) = checked(world, capsys)
    assert "127.0.0.1:1/none" in why
    assert "refused" in why


def test_a_check_finds_a_database_whose_extra_is_missing(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.file.write_text(STREAM.replace('store = "c.sqlite"', NO_DATABASE))
    for name in [one for one in sys.modules if one.startswith(POSTGRES)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    _, (why,) = checked(world, capsys)
    assert why.endswith("install it: pip install 'ldpstream[postgres]'")


def test_a_check_finds_a_database_of_another_master_secret(
    world: World, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    world.file.write_text(STREAM.replace('"c.sqlite"', json.dumps(database.url)))
    assert checked(world, capsys) == (0, [])
    PostgresStore(database, SECRETS.master, 5000).close()
    _, (why,) = checked(world, capsys)
    assert "was created with another master secret" in why


@pytest.mark.usefixtures("secret")
def test_a_check_finds_releases_that_were_changed(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.begin()
    find = "SELECT sql FROM sqlite_master WHERE name = 'a_release_never_changes'"
    with closing(sqlite3.connect(world.store)) as store:
        (trigger,) = store.execute(find).fetchone()
        change = "UPDATE release SET received = received + 1 WHERE t = 1"
        store.executescript(f"DROP TRIGGER a_release_never_changes; {change}; {trigger}")
    _, (why,) = checked(world, capsys)
    assert "stored data of stream a differs from what was released" in why
