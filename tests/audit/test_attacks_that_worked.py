"""Attacks that succeeded against the rules of own time when they were new, each in true time.

One that still does is marked as a strict expected failure: whoever closes the hole has to remove
the mark, and the attack stays as a test.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ldpstream.audit.hostile_collector import NANO, make_terms
from ldpstream.audit.life import Life
from ldpstream.audit.machine import Machine, TrueTime
from ldpstream.device import CounterFile
from ldpstream.device.store import DeviceStore
from ldpstream.durations import HOUR_MS
from ldpstream.errors import LdpStreamError

SPAN = 20 * 60
"""Seconds of the promise of these tests: w = 20, one minute."""


def hole(words: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, reason=f"OPEN HOLE: {words}", raises=AssertionError)


def a_life(folder: Path, machine: Machine | None = None, **options: object) -> Life:
    life = Life(folder, machine or Machine(TrueTime()), make_terms(window=20), **options)  # type: ignore[arg-type]
    life.install()
    return life


@pytest.mark.parametrize("witness", ["change time", "counter"])
def test_a_container_gets_a_new_boot_id_on_a_kernel_that_has_been_up_for_long(
    memory: Path, witness: str
) -> None:
    """systemd-nspawn and LXC draw a boot id for each start of a container; CLOCK_BOOTTIME is the
    host's. Then own time after a restart is what the wall clock says, and anyone may set that."""
    machine = Machine(TrueTime(), up_ms=24 * HOUR_MS)
    options = {"witness": lambda _: CounterFile(memory / "counter")} if witness == "counter" else {}
    life = a_life(memory, machine, **options)
    for _ in range(3):
        life.ask()
        machine.wait(2)
        machine.restart_container()
        machine.move_wall(HOUR_MS)
        life.start()
    assert life.violations == []


@hole("a file that moves with its witness gains what the wall clocks differ by")
def test_a_file_goes_back_and_forth_between_two_machines_whose_wall_clocks_differ(
    memory: Path,
) -> None:
    """A shared volume and a witness that moves along: each turn gains the difference. It is among
    what docs/device.md lists as not protected."""
    true = TrueTime()
    slow = Machine(true, up_ms=24 * HOUR_MS)
    fast = Machine(true, up_ms=48 * HOUR_MS, skew_ms=HOUR_MS)
    life = a_life(memory, slow, witness=lambda _: CounterFile(memory / "counter"))
    for turn in range(6):
        life.ask()
        true.advance_ms(1000)
        life.move_to(slow if turn % 2 else fast)
        life.start()
    assert life.violations == []


def test_the_wall_clock_is_set_between_a_debit_and_its_commit(memory: Path) -> None:
    """A board without a battery clock boots at an old time and has been up for longer than S; the
    first report of the boot is committed while the wall clock is corrected. The debit is entered
    at the old own time, the mark with the new one: the debit is S old at once."""
    machine = Machine(TrueTime())
    life = a_life(memory, machine)
    machine.reboot()
    machine.wait(2 * SPAN)
    machine.set_wall(-2 * SPAN * 1000 - 1000)  # where it stood before the boot
    life.start()
    honest = DeviceStore._commit

    def corrected(self: DeviceStore, *arguments: object) -> None:
        machine.set_wall(0)
        honest(self, *arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeviceStore, "_commit", corrected)
        life.ask()
    machine.wait(60)
    life.ask()
    assert life.violations == []


def test_a_report_is_sent_again_after_a_crash_between_commit_and_counter(memory: Path) -> None:
    """`CounterFile` says of a ledger that is ahead: nothing was sent from there. After the restart
    it is: the stored report leaves, the counter stays behind, and an older copy is vouched for."""
    life = a_life(memory, witness=lambda _: CounterFile(memory / "counter"))
    older = life.path.read_bytes()
    asked = life.collector.make_round()

    def crash(self: CounterFile, stamp: str) -> None:
        raise OSError("the counter cannot be written")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CounterFile, "committed", crash)
        assert life.ask(asked) == []
    life.start()
    assert len(life.ask(asked)) == 1
    life.write_over(older)
    life.start()
    life.machine.wait(1)
    life.ask(life.collector.make_round(name="once-more"))
    assert life.violations == []


def test_a_journal_is_brought_back_beside_the_file(memory: Path) -> None:
    """A backup that ran during a commit has the journal of it; who restores what is missing
    puts it back. SQLite rolls the commit back, and the witness looks at the change time of before,
    which is that of a commit within 5 s."""
    life = a_life(memory)
    life.machine.wait(2)
    before = life.path.read_bytes()
    assert len(life.ask()) == 1
    journal = life.path.with_name(f"{life.path.name}-journal")
    journal.write_bytes(journal_of(before, life.path.read_bytes()))
    life.machine.wait(60)
    life.start()
    life.ask()
    assert life.violations == []


def journal_of(before: bytes, after: bytes, page: int = 4096) -> bytes:
    """Return the rollback journal that SQLite had on disk during the commit from the one to the
    other (https://www.sqlite.org/fileformat.html, "The Rollback Journal")."""
    pages = range(len(before) // page)
    changed = [one for one in pages if before[one * page :][:page] != after[one * page :][:page]]
    nonce, sector = 7, 512
    head = bytes.fromhex("d9d505f920a163d7")
    for field in (len(changed), nonce, len(pages), sector, page):
        head += field.to_bytes(4, "big")
    content = head.ljust(sector, b"\0")
    for one in changed:
        image = before[one * page :][:page]
        checksum = nonce + sum(image[place] for place in range(page - 200, 0, -200))
        content += (one + 1).to_bytes(4, "big") + image + (checksum % 2**32).to_bytes(4, "big")
    return content


def test_the_journal_of_the_attack_is_one_that_sqlite_takes(memory: Path) -> None:
    file = memory / "any.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE it (x)")
        connection.execute("INSERT INTO it VALUES (1)")
        connection.commit()
        before = file.read_bytes()
        connection.execute("INSERT INTO it VALUES (2)")
        connection.commit()
    file.with_name("any.sqlite-journal").write_bytes(journal_of(before, file.read_bytes()))
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT x FROM it").fetchall() == [(1,)]


def test_readings_are_nearly_a_millisecond_less_than_a_window_apart(memory: Path) -> None:
    """Read at 0.9 ms past and entered at 0, read again at 0 past S later: S less 0.9 ms."""
    life = a_life(memory)
    life.true.advance_us(900)
    assert life.ask()
    life.true.advance_us(1_000_000 * SPAN - 900)
    life.ask()
    assert life.violations == []


def test_an_application_that_raises_when_it_is_warned(memory: Path) -> None:
    """Whether it does depends on the value: strict applications turn warnings into errors."""

    def strict(problem: LdpStreamError) -> None:
        raise problem

    def sent(folder: str, value: int) -> int:
        (memory / folder).mkdir()
        life = a_life(memory / folder, warn=strict, value=lambda us: value)
        try:
            return len(life.ask(life.collector.make_round(epsilon_nano=NANO)))
        except LdpStreamError:
            return 0

    assert sent("usable", 1) == sent("unusable", 2)
