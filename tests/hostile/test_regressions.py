"""What the machines and the fuzzers of this folder have found, each by its name."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from ldpstream.audit.hostile_collector import make_terms
from ldpstream.audit.life import Life
from ldpstream.audit.machine import Machine, TrueTime
from ldpstream.collector.config import parse
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.device import LedgerUnusable
from ldpstream.device.witness import ChangeTime
from ldpstream.errors import Mistake, Problem
from ldpstream.streams.counts import read_counts
from tests.collector.helpers import SECRETS
from tests.device.collectors import NANO, Bench, a_round
from tests.hostile.fuzz import CONFIG


def without_debits(path: Path) -> bytes:
    """The device's file as it was before its first report, but with the last stamp."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM ledger")
        connection.commit()
    return path.read_bytes()


@pytest.mark.parametrize("restarted", [True, False])
def test_a_file_changed_under_a_running_device_is_not_written_over(
    tmp_path: Path, restarted: bool
) -> None:
    """It committed on top, the witness vouched for the result, and a restart spent again."""
    life = Life(tmp_path, Machine(TrueTime()), make_terms(window=4))
    life.install()
    half = NANO // 2
    assert len(life.ask(life.collector.make_round(epsilon_nano=half))) == 1
    life.machine.wait(6)
    life.write_over(without_debits(life.path))
    for _ in range(3):
        life.ask(life.collector.make_round(epsilon_nano=half))
        if restarted:
            life.start()
    assert life.violations == []


def test_the_real_file_system_notices_it_too(tmp_path: Path) -> None:
    class Impatient(ChangeTime):
        """5 s would be long for a test."""

        SLOWEST_COMMIT_NS = 500 * 10**6

    bench = Bench(tmp_path / "device.ldp", witness=Impatient())
    device = bench.enrolled()
    assert len(bench.ask(device, a_round(1, "1-a", epsilon_nano=NANO // 2))) == 1
    time.sleep(1)
    bench.path.write_bytes(without_debits(bench.path))
    assert bench.ask(device, a_round(1, "1-b", epsilon_nano=NANO // 2)) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.replace(b'"regions"', b'"reg\xa0ons"'),
        lambda content: content.replace(b'{"epsilon_nano"', b'{"epsilon\x00nano"'),
        lambda content: content.replace(b'"query":"histogram"', b'"query":"histogroom"'[:19]),
        lambda content: content[:40] + b"\xa0" * 60 + content[100:],
        lambda content: content[: len(content) // 2],
    ],
    ids=["text", "JSON", "terms", "header", "half"],
)
def test_a_damaged_ledger_is_told_as_one(tmp_path: Path, damage: object) -> None:
    """It was a UnicodeDecodeError, a ValueError or refused terms, depending on the byte."""
    bench = Bench(tmp_path / "device.ldp")
    bench.enrolled()
    before = bench.path.read_bytes()
    bench.path.write_bytes(damage(before))  # type: ignore[operator]
    assert bench.path.read_bytes() != before
    with pytest.raises(LedgerUnusable):
        bench.open()


def test_a_damaged_store_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    with closing(SqliteStore(file, SECRETS.master)) as store:
        store.create_stream("a", {})
    content = bytearray(file.read_bytes())
    content[4096 + 8 : 4096 + 200] = bytes(192)
    file.write_bytes(content)
    with pytest.raises(Mistake) as refused:
        SqliteStore(file, SECRETS.master)
    assert refused.value.problem is Problem.STORE_DAMAGED
    assert "\n" not in str(refused.value)
    file.write_bytes(b"not a store at all" * 100)
    with pytest.raises(Mistake):
        SqliteStore(file, SECRETS.master)
    file.unlink()
    SqliteStore(file, SECRETS.master).close()  # a refused one leaves no lock behind


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon = 1.5", "epsilon = " + "[" * 3000),
        ("population = 40", "population = " + "9" * 5000),
        ("population = 40", "population = " + "9" * 25),
        ('interval = "10s"', 'interval = "²s"'),
        ('interval = "10s"', 'interval = "99999999999999999999d"'),
        ('listen = "127.0.0.1:0"', 'listen = "x:²"'),
        ("[[stream]]", "stream = [1]\n[other]"),
    ],
)
def test_a_strange_configuration_is_told_with_its_line(old: str, new: str) -> None:
    with pytest.raises(Mistake) as refused:
        parse(CONFIG.replace(old, new, 1), Path("collector.toml"))
    assert refused.value.problem is Problem.CONFIG_FILE
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("cell", ["9" * 5000, "9" * 19, "-1", "²"])
def test_a_strange_count_is_told_with_its_place(tmp_path: Path, cell: str) -> None:
    file = tmp_path / "counts.csv"
    file.write_text(f"x,y\n1,{cell}\n")
    with pytest.raises(Mistake, match="row 2"):
        read_counts(file)
