"""SQLite stores that are damaged in seeded ways, each opened as a collector would open it.

    python -m tests.hostile.damaged_stores [--cases 500] [--first 0]

A collector on such a file works, or refuses it with one line of the catalogue. Anything else is a
finding, and is printed with the number that makes it again.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.alerts.rulebook import RuleBook
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import Config, parse
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.service.service import Service
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import LdpStreamError
from ldpstream.fleet.folders import memory_folder
from tests.collector.driving import World
from tests.collector.helpers import SECRETS, START_MS

PAGE = 4096
LAST_T = 6
STREAM = """
[[stream]]
name = "{name}"
labels = ["x", "y", "z"]
epsilon = 1
window = 3
interval = "10s"
mechanism = "{mechanism}"
oracle = "{oracle}"
selection = "{selection}"
population = 30
[[stream.alert]]
label = "x"
above = 0.3
"""
CONFIG = "".join(
    [
        '[collector]\nstore = "c.sqlite"\n',
        STREAM.format(name="a", mechanism="lpu", oracle="grr", selection="open"),
        STREAM.format(name="b", mechanism="lba", oracle="oue", selection="roster"),
        STREAM.format(name="c", mechanism="lpf", oracle="auto", selection="open"),
    ]
)
JSON = ("null", "{}", "[]", "0", '"text"', '{"t":1}', '{"rules":[{}]}', '{"rounds":7}', "[1e999]")
GARBAGE = ("", "x", "\x00", "{", "9" * 5000, "[" * 2000, "\u00e9" * 9, *JSON)
Damage = Callable[[random.Random, Path], None]


def config_in(folder: Path) -> Config:
    return parse(CONFIG, folder / "collector.toml")


@cache
def pristine() -> dict[str, bytes]:
    """The files of a store of three streams, each in the middle of a round; much is in the log."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        folder = Path(name)
        config = config_in(folder)
        with closing(SqliteStore(config.store, SECRETS.master)) as store:
            for stream in config.streams:
                world = World(stream, config.store)
                Coordinator(stream, store, world.clock)
                for number in world.devices if stream.selection.value == "roster" else ():
                    store.enrol(stream.name, number.to_bytes(16, "big"))
                world.live(store, LAST_T)
                coordinator = Coordinator(stream, store, world.clock)
                coordinator.advance()
                if coordinator.open is not None:
                    world.answer(store, coordinator.open)
                book = RuleBook(stream.name, stream.alerts, store, stream.alert_rule)
                book.add({"label": "y", "below": 0.4})
                AlertEvaluator(stream.name, book.rules, store, sends=True).catch_up()
                store.write_note(stream.name, "suspects", {"rounds": ["2-publication"]})
            return {
                one.name: one.read_bytes()
                for one in (config.store, config.store.with_name("c.sqlite-wal"))
            }


# Damage to the files


def flipped(rng: random.Random, file: Path) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(rng.choice((1, 1, 3, 20, 200))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(content)


def flipped_header(rng: random.Random, file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[rng.randrange(100)] = rng.randrange(256)
    file.write_bytes(content)


def truncated(rng: random.Random, file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: rng.randrange(len(content))])


def zeroed(rng: random.Random, file: Path) -> None:
    content = bytearray(file.read_bytes())
    first = rng.randrange(len(content) // PAGE) * PAGE
    content[first : first + PAGE] = bytes(PAGE)
    file.write_bytes(content)


def exchanged(rng: random.Random, file: Path) -> None:
    content = bytearray(file.read_bytes())
    one, other = (rng.randrange(len(content) // PAGE) * PAGE for _ in range(2))
    content[one : one + PAGE] = content[other : other + PAGE]
    file.write_bytes(content)


def foreign(rng: random.Random, file: Path) -> None:
    content = (b"", b"\n", rng.randbytes(9000), b"SQLite format 3\0", file.read_bytes()[:PAGE])
    file.write_bytes(rng.choice(content))


def without_main(rng: random.Random, file: Path) -> None:
    file.unlink()
    if rng.random() < 0.5:
        file.touch()


def a_folder(rng: random.Random, file: Path) -> None:
    file.unlink()
    file.mkdir()


def bad_log(rng: random.Random, file: Path) -> None:
    log = file.with_name(f"{file.name}-wal")
    rng.choice((flipped, truncated, foreign))(rng, log)


def bad_index(rng: random.Random, file: Path) -> None:
    file.with_name(f"{file.name}-shm").write_bytes(rng.randbytes(32768))


# Damage to what is in them


def another_version(rng: random.Random, file: Path) -> None:
    with _tables(file) as connection:
        connection.execute(f"PRAGMA user_version = {rng.choice((-1, 0, 1, 2, 3, 5, 99))}")


def dropped(rng: random.Random, file: Path) -> None:
    with _tables(file) as connection:
        kind, name = rng.choice(
            connection.execute("SELECT type, name FROM sqlite_schema WHERE sql NOT NULL").fetchall()
        )
        connection.execute(f"DROP {kind} {name}")


def another_column(rng: random.Random, file: Path) -> None:
    with _tables(file) as connection:
        table, column = rng.choice(_columns(connection))
        connection.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")


def emptied(rng: random.Random, file: Path) -> None:
    with _tables(file) as connection:
        table, _ = rng.choice(_columns(connection))
        connection.create_function("chance", 0, rng.random)
        connection.execute(f"DELETE FROM {table} WHERE chance() < {rng.choice((1, 0.5, 0.2))}")


def replaced(rng: random.Random, file: Path) -> None:
    """Put something else into a column, past its CHECKs but of its type."""
    with _tables(file) as connection:
        _replace(rng, connection)


def loosened(rng: random.Random, file: Path) -> None:
    """The same, where the schema itself was changed to allow anything."""
    with _tables(file) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '')"
            " WHERE type = 'table'"
        )
    without = file.read_bytes().replace(b"WITHOUT ROWID;", b"WITHOUT ROWID ")
    file.write_bytes(without)
    with _tables(file) as connection:
        _replace(rng, connection, json_only=False)


def _replace(rng: random.Random, connection: sqlite3.Connection, *, json_only: bool = True) -> None:
    columns = _columns(connection)
    texts = [one for one in columns if one[1] in ("terms", "mechanism", "content", "value")]
    table, column = rng.choice(texts if json_only and rng.random() < 0.6 else columns)
    value = rng.choice(
        (*GARBAGE, None, 0, -1, 2**62, 1.5, b"", rng.randbytes(7), rng.randbytes(16))
    )
    where = rng.choice(("", f" WHERE rowid % {rng.randrange(1, 4)} = 0"))
    if "WITHOUT ROWID" in str(
        connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    ):
        where = ""
    connection.execute(f"UPDATE {table} SET {column} = ?{where}", (value,))


def _columns(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute(
        "SELECT one.name, two.name FROM sqlite_schema one JOIN pragma_table_info(one.name) two"
        " WHERE one.type = 'table' ORDER BY 1, 2"
    ).fetchall()


@contextmanager
def _tables(file: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection without triggers and CHECKs; the triggers are put back afterwards."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        with suppress(sqlite3.Error):  # where its table is gone
            for _, statement in triggers:
                connection.execute(statement)


DAMAGE: dict[str, tuple[Damage, int]] = {
    "flipped": (flipped, 6),
    "flipped header": (flipped_header, 3),
    "truncated": (truncated, 2),
    "zeroed": (zeroed, 3),
    "exchanged": (exchanged, 3),
    "foreign": (foreign, 1),
    "without main": (without_main, 1),
    "a folder": (a_folder, 1),
    "bad log": (bad_log, 3),
    "bad index": (bad_index, 1),
    "another version": (another_version, 2),
    "dropped": (dropped, 4),
    "another column": (another_column, 3),
    "emptied": (emptied, 4),
    "replaced": (replaced, 10),
    "loosened": (loosened, 6),
}
"""And how often each is chosen."""


@dataclass(frozen=True)
class Outcome:
    """What came of one store."""

    number: int
    kind: str
    said: str
    """"works", the code of the error, or what it should not have been."""
    line: str = ""
    finding: BaseException | None = None


def attempt(number: int) -> Outcome:
    """Damage a store, and start a collector on it."""
    rng = random.Random(number)
    (kind,) = rng.choices(list(DAMAGE), [weight for _, weight in DAMAGE.values()])
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        folder = Path(name)
        config = config_in(folder)
        _lay_out(rng, config.store, in_log=kind in ("without main", "bad log", "bad index"))
        with suppress(sqlite3.Error):  # not possible with this table or column: no damage
            DAMAGE[kind][0](rng, config.store)
        try:
            _start(config)
        except LdpStreamError as error:
            line = str(error)
            finding = AssertionError(f"more than a line: {line!r}") if "\n" in line else None
            return Outcome(number, kind, error.problem.code, line, finding)
        except Exception as error:
            return Outcome(number, kind, type(error).__name__, str(error), error)
    return Outcome(number, kind, "works")


def _lay_out(rng: random.Random, file: Path, *, in_log: bool) -> None:
    for name, content in pristine().items():
        file.with_name(name).write_bytes(content)
    if not in_log and rng.random() < 0.7:  # as a collector that stopped in good order leaves it
        sqlite3.connect(file).execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()


def _start(config: Config) -> None:
    """Start, look at what is served, and stop."""
    service = Service(config, SECRETS, ManualClock(START_MS + 10_000 * LAST_T + 5000))
    try:
        for name in service.streams:
            for one in service.store.releases(name, 0, 100):
                one.to_json()
    finally:
        service.store.close()


def run(first: int, cases: int) -> Iterator[Outcome]:
    for number in range(first, first + cases):
        yield attempt(number)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    told: Counter[tuple[str, str]] = Counter()
    findings = 0
    for one in run(given.first, given.cases):
        told[one.kind, one.said] += 1
        if one.finding is not None:
            findings += 1
            print(f"{one.number} {one.kind}: {one.said}: {one.line}")
    for (kind, said), number in sorted(told.items()):
        print(f"{number:5} {kind}: {said}")
    print(f"{findings} findings in {given.cases} damaged stores")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
