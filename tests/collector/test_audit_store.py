"""`ldpstream audit store` and `ldpstream export`, on stores that somebody has changed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from ldpstream.cli import run
from ldpstream.collector.config import load
from ldpstream.collector.service.checking import check_releases
from ldpstream.collector.service.opening import open_place
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.connections import connect
from ldpstream.errors import Mistake
from tests.collector.helpers import SECRETS
from tests.collector.store_contract import TERMS, release_of

VARIABLE = "LDPSTREAM_MASTER_SECRET"
NDJSON = ("--format", "ndjson")
CONFIG = """\
[collector]
listen = "127.0.0.1:0"
store = "{store}"
[[stream]]
name = "a"
labels = ["x", "y"]
epsilon = 1
window = 4
interval = "1s"
population = 40
"""


@dataclass(frozen=True)
class Place:
    """A configuration and its store, of two streams."""

    config: Path
    store: str

    def damage(self) -> None:
        """Let the second release of stream b say another number of reports."""
        change = "UPDATE release SET received = 9 WHERE t = 2 AND stream = 2"
        if "://" in self.store:
            with connect(Database(self.store)) as connection:
                connection.execute("SET session_replication_role = replica")
                connection.execute(change.encode())
            return
        with closing(sqlite3.connect(self.store)) as connection:
            (trigger,) = connection.execute(
                "SELECT sql FROM sqlite_schema WHERE name = 'a_release_never_changes'"
            ).fetchone()
            connection.executescript(f"DROP TRIGGER a_release_never_changes; {change}; {trigger}")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    given = "c.sqlite"
    if request.param == "postgres":
        given = request.getfixturevalue("database").url
        monkeypatch.setenv(VARIABLE, SECRETS.master.decode())
    else:
        (tmp_path / "master.secret").write_bytes(SECRETS.master)
    file = tmp_path / "collector.toml"
    file.write_text(CONFIG.format(store=given))
    config = load(file)
    store = str(config.store) if config.database is None else config.database.url
    with closing(open_place(store, SECRETS.master)) as opened:
        for name in ("a", "b"):
            opened.create_stream(name, TERMS)
            lease = opened.lease(name, "me", 60)
            assert lease is not None
            opened.under(lease).release(name, [release_of(t) for t in (1, 2, 3)], {}, 0)
    return Place(file, store)


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    told: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return told


def test_a_store_is_found_by_its_configuration_or_its_place(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"releases": 3, "from": 1, "to": 3, "pruned": 0, "summaries": 0}
    whole = {**found, "checked": "yes", "damage": None}
    for given in (str(place.config), place.store):
        assert run(["audit", "store", given, "--json"]) == 0
        assert rows(capsys) == [{"stream": name, **whole} for name in ("a", "b")]


def test_damage_is_named_and_can_be_accepted(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.damage()
    for _ in range(2):
        assert run(["audit", "store", str(place.config), "--json"]) == 1
        sound, damaged = rows(capsys)
        assert (sound["stream"], sound["damage"]) == ("a", None)
        assert damaged["stream"] == "b"
        assert str(damaged["damage"]).startswith("t=2: ")
    assert run(["audit", "store", place.store, "--accept"]) == 0
    told = capsys.readouterr()
    assert "t=2" in told.out
    assert told.out.count("stream  ") == 1, "a table with a row for each stream"
    assert told.err == "ldpstream: accepted as they are from now on: b\n"
    assert run(["audit", "store", place.store]) == 0


def test_a_damaged_stream_is_not_exported(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.damage()
    out = tmp_path / "out.csv"
    command = ["export", "--store", place.store, "--out", str(out), *NDJSON, "--stream"]
    assert run([*command, "b"]) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert "stored data of stream b differs from what was released: t=2" in told.err
    assert not out.exists()
    assert run([*command, "a"]) == 0
    assert capsys.readouterr().err == ""


def test_without_the_secret_an_export_says_that_it_did_not_check(
    place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "master.secret").unlink(missing_ok=True)
    command = [
        "export",
        "--store",
        place.store,
        "--out",
        str(tmp_path / "o"),
        *NDJSON,
        "--stream",
        "a",
    ]
    assert run(command) == 0
    assert capsys.readouterr().err == (
        "ldpstream: the chain of releases was not checked: LDPSTREAM_MASTER_SECRET is not set\n"
    )
    assert run(["audit", "store", place.store]) == 2
    assert "its master secret is neither" in capsys.readouterr().err
    monkeypatch.setenv(VARIABLE, "another master secret")
    for words in (command, ["audit", "store", place.store]):
        assert run(words) == 2
        assert "another master secret" in capsys.readouterr().err


def test_a_store_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "store", str(tmp_path / "none.sqlite")]) == 2
    assert "none.sqlite: there is no such file" in capsys.readouterr().err


def test_damage_is_not_accepted_under_a_running_collector(
    tmp_path: Path, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    if "://" in place.store:
        return  # its rows are locked instead
    place.damage()
    with closing(open_place(place.store, SECRETS.master)) as store:
        assert run(["audit", "store", place.store, "--accept"]) == 2
        assert "in use by another collector" in capsys.readouterr().err
        with pytest.raises(Mistake):
            store.check_releases("b").refuse_damage()


# What somebody does to a file so that it is not checked, or shows other releases than are checked

DIGIT = "UPDATE release SET received = 9 WHERE t = 2 AND stream = 1;"
WITHOUT_KEY = DIGIT + "DELETE FROM property WHERE name = 'chain-key';"
FORGED_INDEX = """
    UPDATE release SET received = 9 WHERE t = 2 AND stream = 1;
    CREATE INDEX forged ON release (stream, t, at_ms, content, asked, received, missed);
    CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'forged';
    PRAGMA writable_schema = ON;
    DELETE FROM sqlite_schema WHERE name = 'forged';
    PRAGMA writable_schema = RESET;
    UPDATE release SET received = {received} WHERE t = 2 AND stream = 1;
    PRAGMA writable_schema = ON;
    INSERT INTO sqlite_schema SELECT * FROM kept;
    PRAGMA writable_schema = RESET;
"""
KEY_MISSING = "the key of its chain is missing"
DISGUISES = {
    "an index with other releases": (FORGED_INDEX, "index forged was added"),
    "a view": ("CREATE VIEW v AS SELECT 1", "view v was added"),
    "a trigger": (
        "CREATE TRIGGER x AFTER INSERT ON release BEGIN DELETE FROM round; END",
        "trigger x was added",
    ),
    "no key": (WITHOUT_KEY, KEY_MISSING),
    "an earlier version": (
        DIGIT + "PRAGMA user_version = 3",
        "table device is missing, or was changed",
    ),
    "version 0": (DIGIT + "PRAGMA user_version = 0", "was added"),
    "no key and no seals": (WITHOUT_KEY + "UPDATE stream SET seal = x''", KEY_MISSING),
    "as if never used": (WITHOUT_KEY + "UPDATE stream SET seal = x'', last_t = 0", KEY_MISSING),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store on a file, of one stream, with its master secret beside it."""
    (tmp_path / "master.secret").write_bytes(SECRETS.master)
    file = tmp_path / "c.sqlite"
    with closing(open_place(str(file), SECRETS.master)) as opened:
        opened.create_stream("a", TERMS)
        opened.release("a", [release_of(t) for t in (1, 2, 3)], {}, 0)
    return file


def tamper(file: Path, statements: str) -> None:
    """Run statements on a file while its triggers are away."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        drop = "".join(f"DROP TRIGGER {name};" for name, _ in triggers)
        again = "".join(f"{sql};" for _, sql in triggers)
        connection.executescript(f"{drop}{statements};{again}")


@pytest.mark.parametrize("what", DISGUISES)
def test_what_a_collector_refuses_is_neither_audited_as_sound_nor_exported(
    file: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    statements, said = DISGUISES[what]
    tamper(file, statements.replace("{received}", str(release_of(2).received)))
    out = file.with_name("out")
    export = ["export", "--store", str(file), "--out", str(out), *NDJSON, "--stream", "a"]
    for words, status in ((["audit", "store", str(file)], 1), (export, 2)):
        assert run(words) == status
        told = capsys.readouterr().err
        assert said in told
        assert told.count("\n") == 1
    assert not out.exists()
    with pytest.raises(Mistake, match=said):
        open_place(str(file), SECRETS.master)


def test_an_index_that_differs_from_its_table_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The schema is as it should be, and a release is found by its table only."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        (sql,) = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE name = 'round_by_time'"
        ).fetchone()
        hide = sql.replace("(stream, t)", "(stream, t) WHERE t > 9")
        connection.executescript(
            "INSERT INTO round (stream, t, name, purpose, epsilon_nano, users, rate_share,"
            " rate_whole, report_bytes, opened_ms, deadline_ms, roster_size)"
            f" VALUES (1, 4, 'x', 'x', 1, 1, 1, 1, 1, 1, 1, 1); DROP INDEX round_by_time; {hide};"
            f"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = '{sql}'"
            " WHERE name = 'round_by_time'; PRAGMA writable_schema = RESET"
        )
    with pytest.raises(Mistake, match="missing from index round_by_time"):
        open_place(str(file), SECRETS.master)
    assert run(["audit", "store", str(file)]) == 1


def test_the_statistics_of_analyze_do_no_harm(file: Path) -> None:
    tamper(file, "ANALYZE")
    assert run(["audit", "store", str(file)]) == 0
    open_place(str(file), SECRETS.master).close()


def test_a_stream_that_is_gone_is_told_and_can_be_accepted(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = "DELETE FROM release WHERE stream = 1; DELETE FROM stream WHERE id = 1"
    if "://" in place.store:
        with connect(Database(place.store)) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(f"DELETE FROM lease; {gone}".encode())
    else:
        tamper(Path(place.store), gone)
    with closing(open_place(place.store, SECRETS.master)) as store:
        with pytest.raises(Mistake, match="a stream was removed, added or renamed"):
            check_releases(store, ["b"])
        with pytest.raises(Mistake, match="a stream was removed, added or renamed"):
            store.create_stream("a", TERMS)
    assert run(["audit", "store", str(place.config), "--json"]) == 1
    sound, listed, absent = rows(capsys)
    assert (sound["stream"], sound["damage"]) == ("b", None)
    assert (listed["stream"], listed["damage"]) == ("*", "a stream was removed, added or renamed")
    assert (absent["stream"], absent["checked"]) == ("a", "no: the store has no such stream")
    assert run(["audit", "store", str(place.config), "--accept"]) == 0
    with closing(open_place(place.store, SECRETS.master)) as store:
        store.create_stream("a", TERMS)
        check_releases(store, ["a", "b"])
