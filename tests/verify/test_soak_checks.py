"""The checks of `benchmarks/soak.py`: a short soak passes them, and each planted fault is found."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ldpstream.device.memory import LedgerEntry
from ldpstream.fleet.folders import memory_folder
from tests.device.collectors import make_terms
from tests.fleet.evidence.books import Books, StoredRound
from tests.fleet.evidence.diary import Life, read_diary, write_diary
from tests.fleet.evidence.judgement import (
    HEAD_START_MS,
    Evidence,
    Findings,
    double_counted,
    lost,
    missing_releases,
)
from tests.fleet.evidence.ledgers import Account, overspent
from tests.fleet.evidence.sendings import Sendings
from tests.fleet.evidence.wire import ACKNOWLEDGED, SENT, Event, read_wire

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"
FAULTS = ("violations", "lost", "double_counted", "missing_releases", "changed_releases")


# A real run, with one kill


@pytest.fixture(scope="module")
def soaked() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        command = [sys.executable, str(SOAK), "--keep", f"{folder}/run"]
        command += ["--seconds", "15", "--devices", "40", "--interval", "0.8", "--kill-every", "3"]
        command += ["--mechanism", "lba"]  # every device reports at every timestamp
        done = subprocess.run(command, timeout=600, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        yield Path(folder) / "run"


@pytest.fixture
def run(soaked: Path) -> Iterator[Path]:
    """A copy, to be tampered with."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        shutil.copytree(soaked, Path(folder) / "run")
        yield Path(folder) / "run"


def judged(run: Path) -> Findings:
    return Evidence(run, run / "ledgers", "soak").judge()


def faults(run: Path) -> dict[str, int]:
    found = judged(run)
    return {name: getattr(found, name) for name in FAULTS if getattr(found, name)}


def tamper(file: Path, *statements: str) -> None:
    """Change a database behind the back of its triggers."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for (trigger,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            connection.execute(statement)


def a_ledger(run: Path) -> Path:
    """One with at least two entries."""
    for path in sorted((run / "ledgers").glob("*.ldp")):
        with closing(sqlite3.connect(path)) as connection:
            ((entries,),) = connection.execute("SELECT count(*) FROM ledger")
        if entries >= 2:
            return path
    raise AssertionError("no device has reported twice")


def test_a_short_soak_is_clean(soaked: Path) -> None:
    found = judged(soaked)
    assert found.clean
    assert found.kills >= 1
    assert found.devices == 40
    assert 0 < found.acknowledged <= found.counted <= found.acknowledged + found.uncertain
    assert found.counted <= found.debits
    assert found.releases >= 5


@pytest.mark.parametrize("sign", [1, -1])
def test_a_tally_that_was_changed_is_found(run: Path, sign: int) -> None:
    store = run / "collector.sqlite"
    with closing(sqlite3.connect(store)) as connection:
        key, counts = connection.execute(
            "SELECT id, counts FROM round WHERE reports > 5 ORDER BY id LIMIT 1"
        ).fetchone()
    changed = np.frombuffer(counts, "<i8").copy()
    changed[changed.argmax()] += sign
    tamper(
        store,
        f"UPDATE round SET counts = x'{changed.tobytes().hex()}', reports = reports + {sign}"
        f" WHERE id = {key}",
    )
    assert faults(run) == {"double_counted" if sign == 1 else "lost": 1}


def test_a_round_that_is_gone_is_found(run: Path) -> None:
    acknowledged = {
        (event.device, event.round)
        for event in read_wire(run / "wire.log")
        if event.status == ACKNOWLEDGED
    }
    names = [name for _, name in acknowledged]
    gone = max(names, key=names.count)
    tamper(run / "collector.sqlite", f"DELETE FROM round WHERE name = '{gone}'")
    assert judged(run).lost == names.count(gone)


def test_overspending_is_found(run: Path) -> None:
    tamper(a_ledger(run), "UPDATE ledger SET nano = 600000000")
    assert judged(run).violations >= 1


def test_a_report_without_a_debit_is_found(run: Path) -> None:
    ledger = a_ledger(run)
    tamper(
        ledger,
        "DELETE FROM ledger WHERE report IS NOT NULL AND t = (SELECT max(t) FROM ledger)",
    )
    assert judged(run).violations >= 1


def test_other_bytes_the_second_time_are_found(run: Path) -> None:
    first = next(read_wire(run / "wire.log"))
    other = bytes([first.report[0], (first.report[1] + 1) % 4])
    with open(run / "wire.log", "a") as log:
        log.write(f"{first.device} {first.round} {other.hex()} 409 {first.at_ms}\n")
    assert judged(run).violations == 1


def test_a_release_that_is_gone_or_changed_is_found(run: Path) -> None:
    ((t, *_), *_) = sorted(read_diary(run / "diary.jsonl")[0].released.values())
    tamper(run / "collector.sqlite", f"UPDATE release SET asked = asked + 1 WHERE t = {t}")
    assert faults(run) == {"changed_releases": 1}
    tamper(run / "collector.sqlite", f"DELETE FROM release WHERE t = {t}")
    assert faults(run) == {"changed_releases": 1, "missing_releases": 1}


def test_a_diary_comes_back_as_it_was(tmp_path: Path) -> None:
    lives = [Life(1, 2, True, {3: (3, 4, "{}", 5, 6, 0)}), Life(7, 8, False, {})]
    write_diary(tmp_path / "diary", lives)
    assert read_diary(tmp_path / "diary") == lives


# The checks one by one

TERMS = make_terms(stream="s", labels=["a", "b"], window=3, interval_ms=5000, start_ms=0)
A, B = b"\x01\x00", b"\x01\x01"
"""A report of each label."""


def account(*spends: tuple[int, int]) -> Account:
    """With debits by own time in ms; a window has 15,000."""
    entries = tuple(LedgerEntry(at, f"{at}-x", nano, A, at, 0) for at, nano in spends)
    return Account("00", TERMS, entries)


def test_windows_are_summed_over_any_w_intervals_of_own_time() -> None:
    half = 5 * 10**8
    assert overspent(account((1, half), (14_999, half), (15_001, half), (29_999, half))) == 0
    assert overspent(account((1, half), (15_000, half), (15_000, 1))) == 1
    assert overspent(account((1, half), (2, half), (15_000, half), (45_000, half))) == 1


def books(counts: list[int], *releases: tuple[int, int]) -> Books:
    stored = StoredRound(1, "1-x", 10**9, 4500, np.array(counts), sum(counts))
    return Books(TERMS, (stored,), {t: (t, 0, "{}", 0, 0, missed) for t, missed in releases})


def events(device: str, report: bytes, *statuses: int) -> list[Event]:
    return [Event(device, "1-x", report, status, 10 * at) for at, status in enumerate(statuses)]


def test_acknowledged_reports_must_be_counted_once() -> None:
    wire = Sendings.of([*events("1", A, SENT, 202), *events("2", B, SENT, SENT, 202)], [])
    assert [(lost(books(c), wire), double_counted(books(c), wire)) for c in ([1, 1], [0, 1])] == [
        (0, 0),
        (1, 0),
    ]
    assert (lost(books([1, 2]), wire), double_counted(books([1, 2]), wire)) == (0, 1)
    # As many as there should be, but another label: one is lost, and one is made up.
    assert (lost(books([2, 0]), wire), double_counted(books([2, 0]), wire)) == (1, 1)


@pytest.mark.parametrize(
    ("statuses", "ends", "possible"),
    [
        ((SENT,), [], True),  # no answer
        ((SENT, 503), [], True),
        ((SENT, 410), [], False),
        ((SENT, 410), [5], True),  # the collector was killed in between
        ((SENT, SENT, 410), [], True),
        ((SENT, 429, SENT, 409), [], False),
    ],
)
def test_what_may_have_arrived(statuses: tuple[int, ...], ends: list[int], possible: bool) -> None:
    wire = Sendings.of(events("1", A, *statuses), ends)
    assert not wire.acknowledged
    assert bool(wire.possible) is possible
    assert double_counted(books([1, 0]), wire) == (0 if possible else 1)


def test_a_timestamp_is_released_or_the_collector_was_away_for_all_of_it() -> None:
    up = [Life(0, 6000, True, {}), Life(14_600, 22_000, False, {})]  # away in all of t = 3
    whole = books([1, 1], (1, 0), (2, 0), (3, 1), (4, 0))
    assert missing_releases(whole, up) == 0
    assert missing_releases(replace(whole, releases={1: whole.releases[1]}), up) == 3
    carried = books([1, 1], (1, 0), (2, 1), (3, 1), (4, 0))
    assert missing_releases(carried, up) == 0  # up for a second of t = 2, which is forgiven
    longer = [replace(up[0], ended_ms=5000 + HEAD_START_MS + 1), up[1]]
    assert missing_releases(carried, longer) == 1


def test_the_wire_log_is_read_as_it_was_written(run: Path) -> None:
    lines = (run / "wire.log").read_text().splitlines()
    assert len(list(read_wire(run / "wire.log"))) == len(lines) > 0
    assert json.loads((run / "diary.jsonl").read_text().splitlines()[0])["killed"] is True
