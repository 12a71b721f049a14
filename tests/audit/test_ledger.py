"""`ldpstream audit ledger`: a device's record, from its file alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ldpstream.cli import run
from ldpstream.device.checking import check_ledger
from tests.device.collectors import NANO, Bench, ScriptedWitness, a_round
from tests.fleet.evidence.ledgers import make_with_history


@pytest.fixture
def bench(memory: Path) -> Bench:
    """A device, window 4, that has answered at t = 1, 2 and 4."""
    bench = Bench(memory / "device.ldp")
    device = bench.enrolled()
    for t, share in ((1, 4), (2, 2), (4, 4)):
        bench.clock.pass_timestamps(t - bench.t)
        assert bench.ask(device, a_round(t, epsilon_nano=NANO // share))
    device.close()
    return bench


def doctored(bench: Bench, *statements: str) -> Path:
    with closing(sqlite3.connect(bench.path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return bench.path


def told(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any, str]:
    status = run(["audit", "ledger", str(path), "--json"])
    out, err = capsys.readouterr()
    return status, json.loads(out) if out else None, err


def test_an_honest_ledger_has_nothing_wrong(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found, err = told(bench.path, capsys)
    assert (status, err, found["faults"], found["remarks"]) == (0, "", [], [])
    (stream,) = found["streams"]
    assert stream["fullest"] == {"t": 1, "from_own_ms": 1, "spent_nano": NANO}
    assert [row["window_nano"] for row in stream["windows"]] == [
        NANO,
        3 * NANO // 4,
        NANO // 4,
    ]
    assert run(["audit", "ledger", str(bench.path)]) == 0
    shown = capsys.readouterr().out
    assert "fullest window: the 4m of own time from t=1 on" in shown
    assert "nothing wrong" in shown


def test_looking_changes_nothing_and_tells_no_secret(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    before = bench.path.read_bytes(), bench.path.stat().st_ctime_ns
    bench.path.chmod(0o400)
    run(["audit", "ledger", str(bench.path), "--json"])
    shown = capsys.readouterr().out
    bench.path.chmod(0o600)
    assert bench.path.read_bytes() == before[0]
    assert list(bench.path.parent.iterdir()) == [bench.path]
    account = bench.open().session.account
    for secret in (account._secret, account.enrolled.key):
        assert secret.hex() not in shown


ENTRY = (
    "INSERT INTO ledger SELECT {t}, {round}, {nano}, {report}, {t} * 60000 - 60000, at_ms + 1,"
    " first_id, last_id FROM ledger WHERE t = 4"
)


def entry(t: int, name: str = "'x'", nano: int = 1, report: str = "report") -> str:
    return ENTRY.format(t=t, round=name, nano=nano, report=report)


def lax(*selections: str) -> list[str]:
    """A ledger of these entries, without the rules of its schema."""
    filled = [f"INSERT INTO ledger {selection}" for selection in selections]
    made = "CREATE TABLE ledger (t, round, nano, report, own_ms, at_ms, first_id, last_id)"
    return ["ALTER TABLE ledger RENAME TO strict", made, *filled]


@pytest.mark.parametrize(
    ("statements", "fault"),
    [
        (["UPDATE ledger SET nano = nano + 1 WHERE t = 2"], "from t=1 on: 1000000001 nano"),
        ([entry(5, nano=NANO // 4 + 1)], "from t=2 on: 1000000001 nano-epsilon were spent"),
        ([entry(3, "''", NANO, "NULL")], "t=4: round 4-publication was answered after an unknown"),
        (
            ["UPDATE ledger SET report = x'0107' WHERE t = 4"],
            "t=4: round 4-publication: a report's",
        ),
        (["UPDATE ledger SET report = x'01' WHERE t = 4"], "a report has 1 bytes"),
        (
            lax("SELECT * FROM strict", "SELECT * FROM strict WHERE t = 4"),
            "t=4: round 4-publication has 2 entries, and one is allowed",
        ),
        (
            lax("SELECT t, round, 0, report, own_ms, at_ms, first_id, last_id FROM strict"),
            "left without a debit",
        ),
        (
            lax("SELECT t, '', nano, report, own_ms, at_ms, first_id, last_id FROM strict"),
            "round (none): a round or its report is missing",
        ),
        (["UPDATE enrolment SET terms = ' ' || terms"], "the terms are not written as they were"),
        (["DELETE FROM enrolment"], "no terms that they were made under"),
    ],
)
def test_a_broken_promise_is_named(
    bench: Bench, statements: list[str], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found, err = told(doctored(bench, *statements), capsys)
    assert status == 1
    assert any(fault in one for one in found["faults"]), found["faults"]
    assert fault in err.replace("\n", " ")


@pytest.mark.parametrize(
    ("statement", "remark"),
    [
        (
            entry(8, "''", NANO, "NULL"),
            "the past was unknown at own time 420000 ms: silent for 4m from then",
        ),
        ("UPDATE ledger SET at_ms = at_ms - 999999 WHERE t = 4", "t=4 was entered before t=2"),
    ],
)
def test_what_is_allowed_but_worth_knowing_is_a_remark(
    bench: Bench, statement: str, remark: str
) -> None:
    check = check_ledger(doctored(bench, statement))
    assert not check.faults
    assert remark in check.remarks[0]


def test_a_device_brought_back_from_a_backup_is_no_fault(bench: Bench) -> None:
    """Its ledger counts as spent on top of what was spent: that is no report above epsilon."""
    assert isinstance(bench.witness, ScriptedWitness)
    bench.witness.trusts = False
    bench.open().close()
    check = check_ledger(bench.path)
    assert not check.faults
    assert "unknown" in check.remarks[0]


def test_what_a_ledger_was_made_to_keep_is_checked_too(memory: Path) -> None:
    path = memory / "device.ldp"
    make_with_history(path)
    bench = Bench(path)
    device = bench.enrolled()
    for t in (1, 5, 9):
        bench.clock.pass_timestamps(t - bench.t)
        assert bench.ask(device, a_round(t))
    device.close()
    check = check_ledger(path)
    assert (len(check.windows), check.faults) == (3, ())
    doctored(bench, "UPDATE history SET own_ms = own_ms + 2 WHERE t = 1")
    assert "from t=1 on: 2000000000 nano-epsilon" in check_ledger(path).faults[0]


def test_a_device_that_never_enrolled_has_spent_nothing(memory: Path) -> None:
    Bench(memory / "new.ldp").create().close()
    check = check_ledger(memory / "new.ldp")
    assert (check.faults, check.fullest) == ((), None)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: path.write_bytes(b""), "not a device's file"),
        (lambda path: path.write_bytes(b"nonsense " * 1000), "cannot be read"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), ""),
        (lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\x55" * 9000), ""),
        (lambda path: _execute(path, "PRAGMA user_version = 7"), "not a device's file of format 5"),
        (lambda path: _execute(path, "DROP TABLE ledger"), "no such table: ledger"),
        (lambda path: _execute(path, "UPDATE enrolment SET terms = '[1]'"), "terms cannot be read"),
        (lambda path: _execute(path, "UPDATE enrolment SET terms = '{'"), "terms cannot be read"),
    ],
)
def test_a_damaged_or_foreign_file_is_one_clear_line(
    bench: Bench, spoil: Callable[[Path], object], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(bench.path)
    status, found, err = told(bench.path, capsys)
    assert (status, found) == (2, None)
    assert err.count("\n") == 1
    assert "device.ldp: " in err
    assert what in err


def _execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
