"""The seven rules of docs/device.md, each attacked."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ldpstream.device import (
    ChangeTime,
    CounterFile,
    Device,
    LedgerUnusable,
    Refused,
    TermsRefused,
    read_status,
)
from ldpstream.device.rounds import Round
from ldpstream.device.rules import selects
from ldpstream.device.store import LedgerMoved, Store
from ldpstream.errors import Problem
from tests.device.collectors import (
    INTERVAL_MS,
    NANO,
    TOKEN,
    URL,
    Bench,
    Vouching,
    a_round,
    fail_once,
    make_terms,
)


def refusals(bench: Bench, device: Device, *rounds: Any) -> list[Problem]:
    bench.collector.rounds = list(rounds)
    before = len(bench.collector.sent)
    found = [one.problem for one in device.poll().refusals]
    assert len(bench.collector.sent) == before
    return found


class TestRule1TermsArePinned:
    @pytest.mark.parametrize(
        "change",
        [
            {"epsilon_nano": 2 * NANO},
            {"window": 3},
            {"interval_ms": 1},
            {"labels": ["north", "south"]},
            {"oracle": "oue"},
            {"start_ms": 0},
            {"other": "north"},
        ],
    )
    def test_other_terms_are_refused(self, bench: Bench, change: dict[str, Any]) -> None:
        device = bench.enrolled()
        bench.collector.terms = make_terms(**change)
        with pytest.raises(TermsRefused, match="pin"):
            device.enrol(URL, "regions", TOKEN, first_install=True)
        assert refusals(bench, device, a_round(1)) == [Problem.TERMS_DIFFER]
        assert device.terms == make_terms()

    def test_an_application_may_bring_the_pin(self, bench: Bench) -> None:
        with pytest.raises(TermsRefused, match="0000"):
            bench.enrolled(pin="0" * 64)
        assert bench.enrolled(pin=make_terms().pin).terms == make_terms()

    def test_the_pin_is_read_from_the_file_anew(self, bench: Bench) -> None:
        bench.enrolled().close()
        bench.collector.pin = make_terms(epsilon_nano=2 * NANO).pin
        assert refusals(bench, bench.open(), a_round(1)) == [Problem.TERMS_DIFFER]

    def test_terms_that_another_process_agreed_on_are_not_written_over(self, bench: Bench) -> None:
        """A process that opened the file before there was an enrolment in it, and tries twice."""
        late = bench.open()
        bench.ask(bench.enrolled(), a_round(1))
        bench.collector.terms = make_terms(epsilon_nano=32 * NANO)
        with pytest.raises(LedgerMoved):
            late.enrol(URL, "regions", TOKEN, first_install=True)
        with pytest.raises(TermsRefused, match="pin"):
            late.enrol(URL, "regions", TOKEN, first_install=True)
        assert read_status(bench.path).terms == make_terms()

    def test_nor_is_the_clock_that_it_was_agreed_by(self, bench: Bench) -> None:
        late, device = bench.open(), bench.enrolled()
        bench.collector.enrolment = {"now_ms": bench.clock.wall + 10 * INTERVAL_MS}
        with pytest.raises(LedgerMoved):
            late.enrol(URL, "regions", TOKEN, first_install=True)
        late.enrol(URL, "regions", TOKEN, first_install=True)
        late.observe("south")
        assert refusals(bench, late, a_round(11)) == [Problem.ROUND_AHEAD]
        assert len(bench.ask(device, a_round(1))) == 1

    @pytest.mark.parametrize("pin", ["", "\ud800", "\0", "é" * 64])
    def test_whatever_a_collector_calls_its_pin_the_device_runs_on(
        self, bench: Bench, pin: str
    ) -> None:
        device = bench.enrolled()
        bench.collector.rounds, bench.collector.pin = [a_round(1)], pin
        device.run(stop=iter([False, True]).__next__)
        assert bench.collector.sent == []
        bench.collector.pin = None
        assert len(bench.ask(device, a_round(1))) == 1
        counts = {one.code: one.times for one in read_status(bench.path).refusals}
        assert counts == {"terms-differ": 1}

    def test_the_application_is_asked_only_for_what_may_be_answered(self, bench: Bench) -> None:
        """What it does with a t of the collector's making is its own: it gets to see none."""
        device, asked = bench.enrolled(), list[int]()
        bench.clock.pass_timestamps(4)

        def value_at(t: int) -> str:
            asked.append(t)
            return ["north"][t - 5]

        device.follow(value_at)
        later = bench.clock.wall + 10**6
        refused = [a_round(2**40, deadline_ms=later), a_round(2, deadline_ms=later)]
        silent = [a_round(5, "a", rate=[0, 1]), a_round(5, "b", deadline_ms=bench.clock.wall)]
        bench.collector.rounds = [*refused, *silent]
        device.run(stop=iter([False, True]).__next__)
        bench.collector.pin = "0" * 64
        assert refusals(bench, device, a_round(5)) == [Problem.TERMS_DIFFER]
        assert asked == []
        bench.collector.pin = None
        assert len(bench.ask(device, a_round(5))) == 1
        assert asked == [5]

    @pytest.mark.parametrize(
        "change",
        [
            {"round": "../devices"},
            {"round": "x" * 65},
            {"round": 7},
            {"t": 0},
            {"t": True},
            {"t": 1.0},
            {"epsilon_nano": 0},
            {"epsilon_nano": -NANO},
            {"epsilon_nano": 0.5},
            {"epsilon_nano": "1"},
            {"rate": [2, 1]},
            {"rate": [1, 0]},
            {"rate": [0.5, 1]},
            {"rate": 1},
            {"deadline_ms": None},
        ],
    )
    def test_nonsense_is_refused(self, bench: Bench, change: dict[str, Any]) -> None:
        device = bench.enrolled()
        assert refusals(bench, device, {**a_round(1), **change}) == [Problem.ROUND_MALFORMED]
        assert refusals(bench, device, "no round at all") == [Problem.ROUND_MALFORMED]
        assert len(bench.ask(device, a_round(1))) == 1  # the good one is still answered


class TestRule2TheWindowKeepsToEpsilon:
    def test_no_window_is_overspent_and_all_of_it_is_usable(self, bench: Bench) -> None:
        device = bench.enrolled()
        spent = []
        for t in range(1, 13):
            share = a_round(t, epsilon_nano=NANO // 3)
            spent.append(len(bench.ask(device, share)))
            bench.clock.pass_timestamps(1)
        assert spent == [1, 1, 1, 0] * 3  # three thirds in any four timestamps

    def test_several_rounds_of_a_timestamp_share_it(self, bench: Bench) -> None:
        device = bench.enrolled()
        half = {"epsilon_nano": NANO // 2}
        asked = [a_round(1, "a", **half), a_round(1, "b", **half), a_round(1, "c", epsilon_nano=1)]
        assert [sent.round for sent in bench.ask(device, *asked)] == ["a", "b"]
        assert refusals(bench, device, asked[2]) == [Problem.BUDGET_SPENT]

    def test_more_than_everything_is_refused(self, bench: Bench) -> None:
        device = bench.enrolled()
        greedy = a_round(1, epsilon_nano=NANO + 1)
        assert refusals(bench, device, greedy) == [Problem.BUDGET_SPENT]

    def test_two_processes_share_one_ledger(self, bench: Bench) -> None:
        one, other = bench.enrolled(), bench.open()
        other.observe("north")
        (first,) = bench.ask(one, a_round(1))
        (again,) = bench.ask(other, a_round(1))
        assert again.report == first.report
        assert refusals(bench, other, a_round(1, "b")) == [Problem.BUDGET_SPENT]


class TestRule3DebitFirst:
    def test_debit_and_report_are_on_disk_before_the_first_byte(self, bench: Bench) -> None:
        device = bench.enrolled()
        (sent,) = bench.ask(device, a_round(1))
        assert sent.on_disk_first

    def test_commits_are_synced_with_their_folder(self, bench: Bench) -> None:
        bench.open()
        with Store(bench.path)._connection() as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)

    def test_nothing_is_refunded(self, bench: Bench) -> None:
        """Aborted, refused, lost: the debit stands."""
        device = bench.enrolled()
        bench.collector.loses = lambda request: request.method == "POST"
        bench.ask(device, a_round(1))
        bench.collector.loses = lambda request: False
        assert refusals(bench, device, a_round(bench.t, "b")) == [Problem.BUDGET_SPENT]

    @pytest.mark.parametrize("fault", ["read-only", "full", "gone", "replaced"])
    def test_a_disk_that_does_not_take_it_means_silence(self, bench: Bench, fault: str) -> None:
        device = bench.enrolled()
        kept = bench.path.read_bytes()
        if fault == "full":
            _fill(device)
        elif fault == "gone":
            bench.path.unlink()
        elif fault == "replaced":
            bench.path.write_bytes(b"not a database at all" * 100)
        else:
            _make_read_only(device)
        bench.collector.rounds = [a_round(1)]
        with pytest.raises(LedgerUnusable, match="silent"):
            device.poll()
        assert bench.collector.sent == []
        bench.path.unlink(missing_ok=True)
        bench.path.write_bytes(kept)
        device.session.account._store = Store(bench.path, Vouching())
        (sent,) = bench.ask(device, a_round(1))  # once the disk is back
        assert sent.on_disk_first

    def test_run_survives_a_bad_disk(self, bench: Bench) -> None:
        device = bench.enrolled()
        _make_read_only(device)
        bench.collector.rounds = [a_round(1)]
        device.run(lambda: len(bench.slept) > 3)
        assert bench.collector.sent == []

    def test_declining_does_not_touch_the_disk(self, bench: Bench) -> None:
        device = bench.enrolled()
        before = bench.path.stat().st_ctime_ns
        bench.ask(device, a_round(1, rate=[0, 1]))
        assert bench.path.stat().st_ctime_ns == before

    def test_refusing_writes_a_count_once_a_kind_and_no_debit(self, bench: Bench) -> None:
        device = bench.enrolled()
        before, entries = bench.path.read_bytes(), Store(bench.path, Vouching()).load().entries
        assert refusals(bench, device, a_round(9)) == [Problem.ROUND_AHEAD]
        counted = bench.path.read_bytes()
        assert counted != before
        assert refusals(bench, device, a_round(9)) == [Problem.ROUND_AHEAD]
        assert bench.path.read_bytes() == counted
        assert Store(bench.path, Vouching()).load().entries == entries


def _make_read_only(device: Device) -> None:
    """As on a read-only file system. Tests may run as root, whom file modes do not stop."""
    _open_with(device, "PRAGMA query_only = ON")


def _fill(device: Device) -> None:
    """As on a full disk: SQLite may not add a page, and says so with its own error."""
    _open_with(device, "PRAGMA max_page_count = 1")


def _open_with(device: Device, pragma: str) -> None:
    from contextlib import contextmanager

    store = device.session.account._store
    opened = store._connection

    @contextmanager
    def limited() -> Any:
        with opened() as connection:
            connection.execute(pragma)
            if "max_page_count" in pragma:
                # The few rows of a ledger fit into pages that are there; a large one does not.
                connection.execute(
                    "CREATE TEMP TRIGGER fill AFTER INSERT ON main.ledger BEGIN"
                    " INSERT INTO refusals VALUES ('x', 1, 1, hex(zeroblob(100000))); END"
                )
            yield connection

    store._connection = limited  # type: ignore[method-assign]


class TestRule4TheSameBytesAgain:
    def test_a_thousand_lost_responses_give_one_payload(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.collector.loses = lambda request: request.method == "POST"
        while len(bench.collector.sent) < 1000:
            bench.ask(device, a_round(1))
            if len(bench.collector.sent) % 7 == 0:
                device.close()
                device = bench.open()
                device.observe("north")  # even if the value has changed
        assert len({sent.report for sent in bench.collector.sent}) == 1

    def test_another_epsilon_in_the_same_round_changes_nothing(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.collector.loses = lambda request: request.method == "POST"
        small, large = a_round(1, epsilon_nano=1), a_round(1)
        reports = {sent.report for _ in range(5) for sent in bench.ask(device, small, large)}
        assert len(reports) == 1

    def test_the_coin_is_not_tossed_again(self) -> None:
        secret = bytes(range(32))
        heads = [selects(secret, Round(f"{t}-a", t, 1, 0, (1, 3))) for t in range(3000)]
        assert heads == [selects(secret, Round(f"{t}-a", t, 1, 0, (1, 3))) for t in range(3000)]
        # 3000 tosses at 1/3: 1000 with deviation 25.8; further than 5 of them: below 1e-6
        assert abs(sum(heads) - 1000) < 5 * 25.9

    def test_another_fraction_sees_the_same_toss(self) -> None:
        """Selected at one rate means selected at every higher one: no draw can be retried."""
        rates = sorted({Fraction(a, b) for b in range(1, 12) for a in range(b + 1)})
        for t in range(50):
            asked = [Round("a", t, 1, 0, (rate.numerator, rate.denominator)) for rate in rates]
            chosen = [selects(b"k" * 32, one) for one in asked]
            assert chosen == sorted(chosen)
            assert not chosen[0]
            assert chosen[-1]


class TestRule5TimeGoesForwardAtItsPace:
    def test_a_round_ahead_of_the_clock_is_refused(self, bench: Bench) -> None:
        device = bench.enrolled()
        assert refusals(bench, device, a_round(2)) == [Problem.ROUND_AHEAD]
        bench.clock.pass_ms(INTERVAL_MS - INTERVAL_MS // 8)  # clocks may disagree by an eighth
        assert len(bench.ask(device, a_round(2))) == 1

    def test_a_round_of_the_past_is_refused(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.clock.pass_timestamps(9)
        bench.ask(device, a_round(10, epsilon_nano=1))
        old = a_round(9, epsilon_nano=1, deadline_ms=bench.clock.wall + 1000)
        assert refusals(bench, device, old) == [Problem.ROUND_PAST]

    def test_time_held_back_cannot_be_run_through_later(self, bench: Bench) -> None:
        """Epsilon about one moment, from many timestamps at once: refused, though t only grows."""
        device = bench.enrolled()
        bench.clock.pass_timestamps(99)
        late = bench.clock.wall + 10**6
        answered = [t for t in range(1, 101) if bench.ask(device, a_round(t, deadline_ms=late))]
        assert answered == [99]  # of 99 and 100, and one window contains both

    def test_setting_the_clock_forward_does_not_hurry_a_running_device(self, bench: Bench) -> None:
        """Not even with the collector: each jump costs w timestamps of steady time."""
        device = bench.enrolled()
        steady_when_sent = []
        for _ in range(400):
            bench.clock.wall += 7 * INTERVAL_MS
            asked = a_round(bench.t, f"{bench.t}-x", deadline_ms=bench.clock.wall + 10**6)
            if bench.ask(device, asked):
                steady_when_sent.append(bench.clock.steady)
            bench.clock.pass_ms(INTERVAL_MS // 10)
        assert len(steady_when_sent) <= 1

    def test_a_clock_corrected_for_good_costs_one_window(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.clock.wall += 1000 * INTERVAL_MS
        answered = []
        for _ in range(12):
            if bench.ask(device, a_round(bench.t)):
                answered.append(bench.t)
            bench.clock.pass_timestamps(1)
        assert answered == [1005, 1009]
        assert "past-unknown" in {one.code for one in read_status(bench.path).refusals}

    @pytest.mark.parametrize("fault", ["disk", "other process"])
    def test_a_jump_that_cannot_be_paid_for_is_not_believed(self, bench: Bench, fault: str) -> None:
        """A commit that fails, or is overtaken by another process, must not let the device off."""
        device, other = bench.enrolled(), bench.open()
        (first,) = bench.ask(device, a_round(1))
        sent = []
        for _ in range(3):
            bench.clock.wall += 4 * INTERVAL_MS
            if fault == "disk":
                fail_once(device)
                bench.collector.rounds = [a_round(bench.t)]
                with pytest.raises(LedgerUnusable):
                    device.poll()
            else:
                other.session.account._recall()
                other.session.account._told.clear()
                other.session.account.note(Refused(Problem.ROUND_MALFORMED, field="x", given="y"))
            sent += bench.ask(device, a_round(bench.t))
        assert sent == []
        bench.clock.pass_timestamps(4)
        assert len(bench.ask(device, a_round(bench.t))) == 1  # the price is one window, no more
        assert first.t == 1

    def test_a_clock_set_forward_and_back_changes_nothing(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.clock.wall += 1000 * INTERVAL_MS
        assert len(bench.ask(device, a_round(1))) == 1  # the collector's time is still its own
        bench.clock.wall -= 1000 * INTERVAL_MS
        bench.clock.pass_timestamps(4)
        assert len(bench.ask(device, a_round(5))) == 1

    def test_a_clock_set_back_means_silence_until_it_catches_up(self, bench: Bench) -> None:
        device = bench.enrolled()
        bench.clock.pass_timestamps(9)
        bench.ask(device, a_round(10))
        bench.clock.wall -= 5 * INTERVAL_MS
        device = bench.open()
        device.observe("east")
        for t in range(5, 14):
            assert bench.ask(device, a_round(t, f"{t}-other")) == []
            bench.clock.pass_timestamps(1)
        assert len(bench.ask(device, a_round(14))) == 1


class TestRule6AnUnknownPastIsSpent:
    def test_a_new_ledger_is_silent_for_w_timestamps(self, bench: Bench) -> None:
        device = bench.enrolled(first_install=False)
        answered = []
        for t in range(1, 8):
            answered.append(len(bench.ask(device, a_round(t))))
            bench.clock.pass_timestamps(1)
        assert answered == [0, 0, 0, 0, 1, 0, 0]

    def test_a_ledger_brought_back_is_silent_for_w_timestamps(self, bench: Bench) -> None:
        device = bench.enrolled()
        backup = bench.path.read_bytes()
        (first,) = bench.ask(device, a_round(1))
        bench.path.write_bytes(backup)
        assert isinstance(bench.witness, Vouching)
        bench.witness.trusts = False
        device = bench.open()
        bench.witness.trusts = True
        device.observe("south")
        answered = []
        for t in range(1, 8):
            answered += [(t, sent.report) for sent in bench.ask(device, a_round(t))]
            bench.clock.pass_timestamps(1)
        assert [t for t, _ in answered] == [5]
        device = bench.open()  # and what was counted as spent is in the file
        assert first.t == 1

    def test_a_ledger_brought_back_under_a_running_device_is_noticed(self, bench: Bench) -> None:
        device = bench.enrolled()
        backup = bench.path.read_bytes()
        bench.ask(device, a_round(1))
        bench.path.write_bytes(backup)
        assert isinstance(bench.witness, Vouching)
        bench.witness.trusts = False
        bench.clock.pass_timestamps(4)
        assert refusals(bench, device, a_round(5)) == [Problem.BUDGET_SPENT]

    @pytest.mark.parametrize("witness", ["the file system", "a counter"])
    def test_enrolling_again_does_not_vouch_for_a_copy(self, bench: Bench, witness: str) -> None:
        """Its commit would make the copy the latest, without the debits that the copy lacks."""
        by_time = witness == "the file system"
        bench.witness = ChangeTime() if by_time else CounterFile(bench.path.with_name("counter"))
        device = bench.enrolled()
        backup = bench.path.with_name("backup")
        shutil.copy(bench.path, backup)
        if by_time:
            _age(backup)
        bench.ask(device, a_round(1, "a", epsilon_nano=NANO * 3 // 4))
        shutil.copy(backup, bench.path)
        fail_once(device, what=lambda entry: entry.report is None)
        bench.collector.rounds = [a_round(1, "b", epsilon_nano=NANO // 4)]
        with pytest.raises(LedgerUnusable):
            device.poll()
        device.enrol(URL, "regions", TOKEN)
        assert refusals(bench, device, a_round(1, "c")) == [Problem.BUDGET_SPENT]

    def test_the_file_system_is_a_witness(self, folder: Path) -> None:
        """By the change time, which `cp --preserve` and `touch` do not bring back."""
        store = Store(folder / "device.ldp", ChangeTime())
        store.create()
        assert store.load().vouched_for
        store.count(0, [])
        assert store.load().vouched_for
        _age(store.path)
        backup = folder / "backup"
        shutil.copy2(store.path, backup)
        shutil.copy2(backup, store.path)
        old = time.time() - 60
        os.utime(store.path, (old, old))
        assert not store.load().vouched_for

    def test_a_counter_elsewhere_is_a_witness(self, folder: Path) -> None:
        store = Store(folder / "device.ldp", CounterFile(folder / "counter"))
        store.create()
        backup = store.path.read_bytes()
        store.count(0, [])
        assert store.load().vouched_for
        current = store.path.read_bytes()
        store.path.write_bytes(backup)
        assert not store.load().vouched_for
        store.path.write_bytes(current)
        assert store.load().vouched_for
        (folder / "counter").unlink()
        assert not store.load().vouched_for

    @pytest.mark.parametrize("lost", ["while it is closed", "while it runs"])
    def test_a_counter_that_was_lost_goes_on_from_the_ledgers(
        self, bench: Bench, lost: str
    ) -> None:
        """Begun anew it would be below every copy that was ever made, and vouch for them all."""
        counter = bench.path.with_name("counter")
        bench.witness = CounterFile(counter)
        device = bench.enrolled()
        for _ in range(10):
            bench.clock.pass_timestamps(1)
            bench.ask(device, a_round(bench.t, epsilon_nano=NANO // 4))
        backup = bench.path.read_bytes()
        counter.unlink()
        if lost == "while it is closed":
            bench.witness = CounterFile(counter)
            device = bench.open()
            device.observe("south")
        bench.clock.pass_timestamps(4)
        (first,) = bench.ask(device, a_round(bench.t))
        device.close()
        bench.path.write_bytes(backup)
        bench.witness = CounterFile(counter)
        device = bench.open()
        device.observe("south")
        assert refusals(bench, device, a_round(first.t, "again")) == [Problem.BUDGET_SPENT]

    def test_a_witness_that_cannot_write_means_silence(self, bench: Bench) -> None:
        device = bench.enrolled()

        def fail(stamp: int) -> None:
            raise OSError("the keystore is locked")

        bench.witness.committed = fail  # type: ignore[method-assign]
        bench.collector.rounds = [a_round(1)]
        with pytest.raises(LedgerUnusable, match="keystore"):
            device.poll()
        assert bench.collector.sent == []

    def test_a_copy_of_the_file_is_noticed_by_a_device_that_opens_it(self, bench: Bench) -> None:
        """End to end with the real witness, and a real pause longer than its tolerance."""
        bench.witness = ChangeTime()
        bench.enrolled().close()
        _age(bench.path, seconds=6)
        device = bench.open()
        device.observe("south")
        assert refusals(bench, device, a_round(1)) == [Problem.BUDGET_SPENT]
        assert "past-unknown" in {one.code for one in read_status(bench.path).refusals}


def _age(path: Path, seconds: int = 60) -> None:
    """As if the last commit had been so long ago, by the stamp in the file."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE device SET stamp = stamp - ? * 1000000000", (seconds,))
    connection.close()


class TestRule7RandomnessOfTheSystem:
    def test_draws_come_from_the_system_and_do_not_depend_on_the_value(self, bench: Bench) -> None:
        """The same questions to the source, whatever is reported."""
        asked: dict[int, list[tuple[str, int]]] = {}
        for value in range(4):
            asked[value] = []
            source = _Recording(asked[value])
            path = bench.path.with_name(f"{value}.ldp")
            other = Bench(path, clock=bench.clock)
            device = other.enrolled()
            device.session.account._source = source
            device.observe(value)
            other.ask(device, a_round(1))
        assert asked[0]
        assert all(draws == asked[0] for draws in asked.values())

    def test_no_floats_and_no_other_generator_on_the_way_of_a_value(self) -> None:
        program = (
            "import random, sys\n"
            "for name in ('random', 'uniform', 'getrandbits', 'randrange', 'gauss'):\n"
            "    setattr(random, name, None)\n"
            "sys.modules['numpy'] = None\n"
            "from ldpstream.device import Device, Oracle, Epsilon, SystemSource\n"
            "for oracle in Oracle:\n"
            "    half = oracle.device(8, Epsilon.of(1))\n"
            "    half.encode(half.perturb(3, SystemSource()))\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True)


class _Recording:
    def __init__(self, asked: list[tuple[str, int]]) -> None:
        self._asked = asked

    def coin(self, favour: int, total: int) -> bool:
        self._asked.append(("coin", total))
        return False

    def below(self, bound: int) -> int:
        self._asked.append(("below", bound))
        return 0


def test_refusals_are_errors_with_something_to_do(bench: Bench) -> None:
    device = bench.enrolled()
    bench.collector.rounds = [a_round(3)]
    (refusal,) = device.poll().refusals
    assert isinstance(refusal, Refused)
    assert str(refusal) == (
        "round 3-publication is of t=3, and by this device's clock it is t=1; "
        "set the clocks of device and collector; a clock that is right needs nothing"
    )
