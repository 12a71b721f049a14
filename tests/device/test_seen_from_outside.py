"""What an attacker saw of the device of 0.1.0, each as a test that failed then.

`audit/planted/` plants the same holes into the device of today, and the audit finds them. The
answers that held a device for ever (6) are in `test_transports.py`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ldpstream.device import (
    ChangeTime,
    Device,
    LedgerUnusable,
    Refused,
    TermsRefused,
    read_status,
)
from ldpstream.device.exchange import Request, Response, unreachable
from ldpstream.device.file_transaction import FileTransaction
from ldpstream.device.memory import LedgerEntry
from ldpstream.device.rules import ANSWERS_PER_TIMESTAMP
from ldpstream.errors import Mistake, Problem
from tests.device.collectors import (
    INTERVAL_MS,
    NANO,
    NUMBERS,
    START_MS,
    TOKEN,
    URL,
    Bench,
    a_round,
    make_terms,
)


class Test1WindowEdge:
    def test_three_epsilon_about_one_value_within_one_timestamp(self, bench: Bench) -> None:
        """w = 1: a device answered for now-1, now and, late in an interval, now+1."""
        bench.collector.terms = make_terms(window=1)
        device = bench.enrolled()
        bench.clock.pass_ms(2 * INTERVAL_MS - 1)
        far = bench.clock.wall + 10**6
        sent = bench.ask(device, *(a_round(t, deadline_ms=far) for t in (1, 2, 3)))
        assert [one.t for one in sent] == [2]

    def test_reports_for_t_100_and_105_from_timestamps_101_to_105(self, bench: Bench) -> None:
        bench.collector.terms = make_terms(window=5)
        device = bench.enrolled()
        bench.clock.pass_timestamps(100)
        far = bench.clock.wall + 10**7
        sent = bench.ask(device, a_round(100, deadline_ms=far), a_round(101, deadline_ms=far))
        bench.clock.pass_timestamps(4)
        sent += bench.ask(device, *(a_round(t, deadline_ms=far) for t in (104, 105, 106)))
        assert [one.t for one in sent] == [101]

    def test_two_epsilon_in_a_second(self, bench: Bench) -> None:
        """w = 1, readings at 58.9 s and 60.1 s: each alone in its window, if windows begin at t."""
        bench.collector.terms = make_terms(window=1)
        device, read_at = bench.enrolled(), list[int]()
        device.follow(lambda: read_at.append(bench.clock.steady))
        bench.clock.pass_ms(58_900)
        bench.ask(device, a_round(1))
        bench.clock.pass_ms(1_200)
        bench.ask(device, a_round(2))
        assert [later - sooner for sooner, later in pairwise(read_at)] == [INTERVAL_MS + 1]

    def test_the_collector_says_that_it_is_another_t(self, bench: Bench) -> None:
        device = bench.enrolled()
        sent = []
        for t in range(100, 0, -1):
            bench.collector.now_ms = lambda t=t: START_MS + (t - 1) * INTERVAL_MS
            sent += bench.ask(device, a_round(t))
        assert len(sent) == 1


class Test2Rollback:
    @pytest.mark.parametrize("way", ["its folder is renamed", "a symbolic link is switched"])
    def test_a_copy_made_within_5_s_of_a_commit_comes_back(self, folder: Path, way: str) -> None:
        """A copy has the right change time, if it is made in time and then left alone."""
        home, copied, link = folder / "home", folder / "copied", folder / "link"
        home.mkdir()
        link.symlink_to(home)
        path = (link if "link" in way else home) / "device.ldp"
        bench = Bench(path, witness=ChangeTime())
        device = bench.enrolled()
        shutil.copytree(home, copied)
        assert len(bench.ask(device, a_round(1))) == 1
        device.close()
        if "link" in way:
            link.unlink()
            link.symlink_to(copied)
        else:
            home.rename(folder / "away")
            copied.rename(home)
        device = bench.open()
        device.observe("south")
        assert bench.ask(device, a_round(1, "again")) == []
        assert "past-unknown" in {one.code for one in read_status(path).refusals}

    def test_a_link_that_is_switched_under_a_running_device(self, folder: Path) -> None:
        homes = [folder / "one", folder / "two"]
        for home in homes:
            home.mkdir()
        link = folder / "link"
        link.symlink_to(homes[0])
        bench = Bench(link / "device.ldp", witness=ChangeTime())
        device = bench.enrolled()
        shutil.copy(homes[0] / "device.ldp", homes[1] / "device.ldp")
        bench.ask(device, a_round(1, epsilon_nano=NANO // 2))
        link.unlink()
        link.symlink_to(homes[1])
        half = [a_round(1, name, epsilon_nano=NANO // 2) for name in "ab"]
        assert len(bench.ask(device, *half)) == 1


class Test3TheTenLineExample:
    def test_a_lost_ledger_is_not_made_anew_by_opening(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.ask(device, a_round(1))
        bench.path.unlink()
        with pytest.raises(Mistake, match=r"there is no device in device\.ldp; an installer"):
            bench.open()
        assert not bench.path.exists()

    def test_without_the_installers_word_a_new_ledger_is_spent(self, bench: Bench) -> None:
        sent = []
        for _ in range(3):
            device = bench.enrolled(first_install=False)
            sent += bench.ask(device, a_round(1))
            bench.path.unlink()
        assert sent == []

    def test_a_device_is_not_made_over_another(self, bench: Bench) -> None:
        bench.enrolled()
        before = bench.path.read_bytes()
        with pytest.raises(Mistake, match=r"device\.ldp already exists"):
            bench.create()
        assert bench.path.read_bytes() == before

    def test_the_installers_word_holds_for_the_first_enrolment(self, bench: Bench) -> None:
        bench.create().close()
        assert len(bench.ask(bench.enrolled(), a_round(1))) == 1


class Test4Clocks:
    """What sleep, restarts and corrections cost over weeks is in `benchmarks/clocks.py`."""

    def test_asleep_ten_minutes_after_every_fifteen(self, bench: Bench) -> None:
        """With a steady clock that stands still meanwhile: 15 of 870 answers, then silence."""
        bench.collector.terms = make_terms(window=20)
        device, answers = bench.enrolled(), 0
        for _ in range(36):
            for _ in range(15):
                answers += len(bench.ask(device, a_round(bench.t)))
                bench.clock.pass_timestamps(1)
            bench.clock.wall += 10 * INTERVAL_MS
        awake_minutes = 36 * 15
        assert answers == awake_minutes // 20

    def test_opened_three_timestamps_ahead_and_corrected(self, bench: Bench) -> None:
        """0 of 10,080 answers in a week; the page said that nothing happens."""
        bench.enrolled().close()
        bench.clock.wall += 3 * INTERVAL_MS
        device = bench.open()
        device.observe("south")
        bench.clock.wall -= 3 * INTERVAL_MS
        answers = 0
        for _ in range(100):
            bench.clock.pass_timestamps(1)
            answers += len(bench.ask(device, a_round(bench.t)))
        assert answers == 25


class Test5SharedLedgers:
    def test_two_processes_on_one_file_lose_nothing(self, folder: Path) -> None:
        """Whole epsilons were lost to a false "past unknown", four times in 10 s."""
        path = folder / "device.ldp"
        bench = Bench(path, witness=ChangeTime())
        bench.collector.terms = make_terms(window=100_000, interval_ms=1000)
        bench.enrolled().close()
        program = [sys.executable, "-m", "tests.device.share_ledger", str(path)]
        processes = [
            subprocess.Popen([*program, name], stdout=subprocess.PIPE, text=True)
            for name in ("one", "two", "three")
        ]
        answered = [int(process.communicate(timeout=120)[0]) for process in processes]
        assert sum(answered) == 300
        status = read_status(path)
        assert "past-unknown" not in {one.code for one in status.refusals}
        assert sum(entry.nano for entry in status.entries) == 300


class Test6HostileAnswers:
    def test_a_ledger_that_grows_by_8_kb_for_each_round_of_1_nano(self, bench: Bench) -> None:
        bench.collector.terms = make_terms(window=3)
        device, sent = bench.enrolled(), []
        for step in range(40):
            rounds = [a_round(bench.t, f"{step}-{name}", epsilon_nano=1) for name in range(8)]
            sent += bench.ask(device, *rounds)
        assert len(sent) == ANSWERS_PER_TIMESTAMP * 3
        assert device.poll().refusals[0].problem is Problem.TOO_MANY_ROUNDS
        bench.clock.pass_ms(3 * INTERVAL_MS + 1)
        assert len(bench.ask(device, a_round(bench.t))) == 1

    def test_a_serial_that_the_collector_refuses(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.collector.serial = 2**63
        bench.collector.rounds = [a_round(1)]
        device.run(stop=lambda: len(bench.slept) > 2)
        assert all("after=0&" in one.path for one in bench.collector.requests[1:])

    def test_503_with_a_far_deadline_ends_with_the_timestamp(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.collector.status = 503
        bench.ask(device, a_round(1, deadline_ms=START_MS + 10**12))
        assert bench.t == 1

    def test_503_with_a_far_deadline_ends_at_stop(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.collector.status, bench.collector.rounds = 503, [a_round(1)]
        device.run(stop=lambda: len(bench.slept) == 2)
        assert len(bench.slept) == 2

    def test_text_of_the_collectors_is_not_stored_at_length(self, bench: Bench) -> None:
        device = bench.enrolled()

        def lose(request: Request) -> bool:
            raise unreachable(URL, "y" * 10_000)

        bench.collector.loses = lose
        device.run(stop=lambda: bool(bench.slept))
        assert max(len(one.detail) for one in read_status(bench.path).refusals) <= 400

    def test_an_empty_file_that_others_may_read_receives_no_key(self, bench: Bench) -> None:
        bench.path.touch(0o666)
        with pytest.raises(Mistake, match="if it is empty, delete it first"):
            bench.create()
        assert bench.path.read_bytes() == b""

    def test_a_mode_that_others_may_read_by_is_mended(self, bench: Bench) -> None:
        device = bench.enrolled()
        os.chmod(bench.path, 0o644)
        bench.ask(device, a_round(1))
        assert stat.S_IMODE(bench.path.stat().st_mode) == 0o600


def _raise() -> str:
    raise KeyError("the sensor is gone")


class Test7ValuesThatAreNone:
    WRONG = ("nowhere", None, float("nan"), -1, 4, 1.5, True, b"north", ["north"])

    @pytest.mark.parametrize(
        "wrong", [*WRONG, _raise], ids=lambda one: getattr(one, "__name__", repr(one))
    )
    def test_silence_that_depends_on_the_value(self, bench: Bench, wrong: Any) -> None:
        """`follow()` with what is no label ended `run()`."""
        device = bench.enrolled()
        device.follow(wrong if callable(wrong) else lambda: wrong)
        bench.collector.rounds = [a_round(1)]
        device.run(stop=lambda: len(bench.collector.sent) == 1)
        bench.clock.pass_timestamps(4)
        assert len(bench.ask(device, a_round(5))) == 1
        (told,) = bench.warnings  # once
        assert told.problem is Problem.VALUE_UNUSABLE
        assert "nowhere" not in str(told)

    @pytest.mark.parametrize("wrong", WRONG, ids=repr)
    def test_a_value_that_is_none_does_not_leave_the_last_one(
        self, bench: Bench, wrong: Any
    ) -> None:
        reported = _reported(bench, "south", wrong)
        assert len(set(reported[1:])) > 1  # 1 in 4^40 if each is drawn

    def test_in_its_place_a_label_is_drawn_afresh_each_time(self, bench: Bench) -> None:
        reported = _reported(bench, None)[1:]
        counts = [reported.count(place) for place in range(4)]
        # 40 draws, a quarter each: mean 10, deviation 2.7; below 1e-6 per tail at 26
        assert all(0 <= count < 26 for count in counts)
        assert sum(counts) == 40

    def test_or_the_streams_label_for_others_is_reported(self, bench: Bench) -> None:
        bench.collector.terms = make_terms(other="east")
        assert set(_reported(bench, None)) == {1}

    def test_the_draws_of_a_report_are_the_same_with_and_without_a_value(
        self, bench: Bench
    ) -> None:
        asked = []
        for value in ("south", None, "nowhere"):
            recording = Recording()
            one = Bench(bench.path.with_name(f"{value}.ldp"), source=recording)
            device = one.enrolled()
            device.observe(value)
            one.ask(device, a_round(1))
            asked.append(recording.asked)
        assert asked[0] == asked[1] == asked[2]

    @pytest.mark.parametrize(
        ("reading", "level"), [(1e308, 800), (float("-inf"), 0), (10**400, 800), (-20.001, 0)]
    )
    def test_numbers_are_clamped(self, bench: Bench, reading: float, level: int) -> None:
        bench.collector.terms = make_terms(**NUMBERS)
        device = bench.create()
        device.enrol(URL, "regions", TOKEN)
        device.observe(reading)
        account = device.session.account
        assert device.session.value.place(account.enrolled.terms, account._source) == level
        assert bench.warnings == []


class Recording:
    """A source that answers 0 and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def coin(self, favour: int, total: int) -> bool:
        self.asked.append(("coin", total))
        return False

    def below(self, bound: int) -> int:
        self.asked.append(("below", bound))
        return 0


def _reported(bench: Bench, *values: Any) -> list[int]:
    """Which places a device hands to its randomiser: these values in turn, the last 40 times."""
    device: Device = bench.open() if bench.path.exists() else bench.enrolled()
    account, places = device.session.account, []
    for value in (*values, *[values[-1]] * (41 - len(values))):
        device.observe(value)
        places.append(device.session.value.place(account.enrolled.terms, account._source))
    return places


class TestSeenSince:
    """What attackers saw of the device while it was rewritten."""

    def test_a_backup_that_is_put_back_as_a_commit_ends(self, bench: Bench) -> None:
        """Looked at after the lock was released, it was taken for what the commit had left."""
        bench.witness = ChangeTime()
        device = bench.enrolled()
        backup = bench.path.with_name("backup")
        shutil.copy(bench.path, backup)
        told = bench.witness.committed

        def replace_at_once(stamp: str) -> None:
            told(stamp)
            if backup.exists():
                os.replace(backup, bench.path)

        bench.witness.committed = replace_at_once  # type: ignore[method-assign]
        first = bench.ask(device, a_round(1))
        assert bench.ask(device, a_round(1, "again")) == []
        assert len(first) <= 1

    def test_a_lock_that_this_process_gave_up_by_reading_the_file(self, folder: Path) -> None:
        """POSIX locks go with the first close: another process wrote, and was written over."""
        bench = Bench(folder / "device.ldp", witness=ChangeTime())
        bench.collector.terms = make_terms(window=100_000, interval_ms=1000)
        device = bench.enrolled()
        enter, answered = FileTransaction.enter, list[int]()
        program = [sys.executable, "-m", "tests.device.share_ledger", str(bench.path), "theirs"]

        def give_up_the_lock(change: FileTransaction, entry: LedgerEntry) -> None:
            bench.path.read_bytes()
            answered.append(int(subprocess.check_output(program, timeout=240)))
            enter(change, entry)

        bench.collector.rounds = [a_round(1, "ours", deadline_ms=START_MS + 10**6)]
        with (
            patch.object(FileTransaction, "enter", give_up_the_lock),
            pytest.raises(LedgerUnusable, match="changed or replaced while it was locked"),
        ):
            device.poll()
        assert answered == [100]
        assert bench.collector.sent == []

    def test_a_second_name_of_the_file(self, bench: Bench) -> None:
        device = bench.enrolled()
        os.link(bench.path, bench.path.with_name("other"))
        bench.collector.rounds = [a_round(1)]
        with pytest.raises(LedgerUnusable, match="hard link"):
            device.poll()

    def test_a_journal_of_another_kind(self, bench: Bench) -> None:
        bench.enrolled().close()
        with closing(sqlite3.connect(bench.path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        with pytest.raises(LedgerUnusable, match="journal mode wal"):
            bench.open()

    def test_an_application_whose_warning_takes_long(self, bench: Bench) -> None:
        """It was called before the draw: a timestamp ended, and the device was silent."""
        device = bench.enrolled()
        device.session.value._warn = lambda problem: bench.clock.pass_timestamps(1)
        device.observe(None)
        assert len(bench.ask(device, a_round(1))) == 1

    def test_a_round_of_long_ago_that_is_repeated_and_refused_for_now(self, bench: Bench) -> None:
        """With `now_ms` 0 its timestamp ends in 57 years."""
        device = bench.enrolled()
        bench.collector.status = 503
        bench.ask(device, a_round(1))
        bench.collector.now_ms = lambda: 0
        before = bench.clock.steady
        bench.ask(device, a_round(1))
        assert bench.clock.steady - before <= INTERVAL_MS

    def test_rounds_that_are_open_when_it_is_told_to_stop(self, bench: Bench) -> None:
        device, read = bench.enrolled(), list[int]()
        device.follow(lambda: read.append(1))
        bench.collector.rounds = [a_round(1, str(name), epsilon_nano=1) for name in range(8)]
        device.run(stop=lambda: len(read) == 3)
        assert len(read) == 3

    def test_an_enrolment_that_is_put_off_for_hours(self, bench: Bench) -> None:
        bench.collector._respond = lambda request: Response(503, {"retry-after": "3600"}, b"")  # type: ignore[method-assign]
        with pytest.raises(Refused):
            bench.create().enrol(URL, "regions", TOKEN)
        assert bench.slept == []

    def test_a_window_that_is_longer_than_time(self) -> None:
        with pytest.raises(TermsRefused, match="window"):
            make_terms(window=1 << 31, interval_ms=1 << 41)

    def test_an_announcement_that_takes_memory_to_read(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.collector.rounds = [[[]] * 50_000]  # one, of 200 kB
        with pytest.raises(Refused, match="check that the address"):
            device.poll()
