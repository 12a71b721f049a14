"""The seven rules of docs/device.md, each attacked."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
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
    Witness,
    read_status,
    store,
)
from ldpstream.device.exchange import Request
from ldpstream.device.rules import SilenceReason, selects
from ldpstream.device.store import DeviceStore, _connection
from ldpstream.errors import Problem
from ldpstream.protocol.answers import Round
from tests.device.collectors import (
    INTERVAL_MS,
    NANO,
    START_MS,
    TOKEN,
    URL,
    Bench,
    ScriptedWitness,
    a_round,
    failing_once,
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
            device.enrol(URL, "regions", TOKEN)
        assert refusals(bench, device, a_round(1)) == [Problem.TERMS_DIFFER]
        assert device.terms == make_terms()

    def test_an_application_may_bring_the_pin(self, bench: Bench) -> None:
        with pytest.raises(TermsRefused, match=r"0000.*read the pin") as refused:
            bench.enrolled(pin="0" * 64)
        assert "ledger" not in str(refused.value), "a new file would be a second epsilon"
        assert bench.enrolled(pin=make_terms().pin).terms == make_terms()

    def test_the_pin_is_read_from_the_file_anew(self, bench: Bench) -> None:
        bench.enrolled().close()
        bench.collector.pin = make_terms(epsilon_nano=2 * NANO).pin
        assert refusals(bench, bench.open(), a_round(1)) == [Problem.TERMS_DIFFER]

    def test_terms_that_another_process_agreed_on_are_not_written_over(self, bench: Bench) -> None:
        """A process that opened the file before there was an enrolment in it."""
        late = bench.create()
        bench.ask(bench.enrolled(), a_round(1))
        bench.collector.terms = make_terms(epsilon_nano=32 * NANO)
        with pytest.raises(TermsRefused, match="pin"):
            late.enrol(URL, "regions", TOKEN)
        assert read_status(bench.path).terms == make_terms()

    def test_a_key_is_not_kept_beside_the_number_of_another_device(self, bench: Bench) -> None:
        """Another process makes the file anew while this one asks."""
        late = bench.create()

        def loses(request: Request) -> bool:
            bench.path.unlink()
            bench.create()
            return False

        bench.collector.loses = loses
        with pytest.raises(LedgerUnusable, match="another device"):
            late.enrol(URL, "regions", TOKEN)
        assert read_status(bench.path).terms is None

    @pytest.mark.parametrize("pin", ["", "\ud800", "\0", "é" * 64])
    def test_whatever_a_collector_calls_its_pin_the_device_runs_on(
        self, bench: Bench, pin: str
    ) -> None:
        device = bench.enrolled()
        bench.collector.rounds, bench.collector.pin = [a_round(1)], pin
        device.run(stop=lambda: len(bench.collector.requests) > 2)
        assert bench.collector.sent == []
        bench.collector.pin = None
        assert len(bench.ask(device, a_round(1))) == 1
        counts = {one.code: one.times for one in read_status(bench.path).refusals}
        assert counts == {"terms-differ": 1}

    def test_the_application_is_asked_only_for_what_may_be_answered(self, bench: Bench) -> None:
        device, asked = bench.enrolled(), list[int]()
        bench.clock.pass_timestamps(4)

        def read() -> str:
            asked.append(device.t)
            return "north"

        device.follow(read)
        later = bench.clock.wall + 10**6
        refused = [a_round(2**40, deadline_ms=later), a_round(2, deadline_ms=later)]
        silent = [a_round(5, "a", rate=[0, 1]), a_round(5, "b", deadline_ms=bench.clock.wall)]
        bench.ask(device, *refused, *silent)
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

    def test_too_early_is_no_miss(self, bench: Bench) -> None:
        """Read late in its timestamp, then asked early in the one that is w later: it waits."""
        device = bench.enrolled()
        bench.clock.pass_ms(30_000)
        bench.ask(device, a_round(1))
        bench.clock.pass_ms(4 * INTERVAL_MS - 25_000)
        assert refusals(bench, device, a_round(5, "soon", deadline_ms=bench.clock.wall + 24_000))
        assert len(bench.ask(device, a_round(5))) == 1
        assert bench.slept == [25.001]

    def test_several_that_are_too_early_are_waited_for_together(self, bench: Bench) -> None:
        device, half = bench.enrolled(), {"epsilon_nano": NANO // 2}
        bench.clock.pass_ms(10_000)
        bench.ask(device, a_round(1, "a", **half))
        bench.clock.pass_ms(10_000)
        bench.ask(device, a_round(1, "b", **half))
        bench.clock.pass_ms(4 * INTERVAL_MS - 20_000)
        sent = bench.ask(device, a_round(5, "c", **half), a_round(5, "d", **half))
        assert [one.round for one in sent] == ["c", "d"]
        assert bench.slept == [10.001, 10.0]

    def test_a_reading_that_takes_long_counts_from_beginning_to_end(self, bench: Bench) -> None:
        """The check is made before the reading, the debit entered after it."""
        bench.collector.terms = make_terms(window=1)
        device = bench.enrolled()

        def read() -> str:
            bench.clock.pass_ms(20_000)
            return "north"

        device.follow(read)
        bench.ask(device, a_round(1))  # read from 0 s to 20 s
        bench.clock.pass_ms(INTERVAL_MS - 20_000)
        bench.ask(device, a_round(2))  # not before 80 s
        assert bench.slept == [20.001]
        assert [one.own_ms for one in DeviceStore(bench.path).load().entries] == [100_002]

    def test_a_reading_that_outlasts_its_timestamp_is_not_reported(self, bench: Bench) -> None:
        device = bench.enrolled()
        device.follow(lambda: bench.clock.pass_ms(INTERVAL_MS))
        bench.collector.rounds = [a_round(1)]
        assert device.poll().silences == [SilenceReason.MOVED_ON]
        assert bench.collector.sent == []
        assert read_status(bench.path, bench.clock).left_nano == NANO


class TestRule3DebitFirst:
    def test_debit_and_report_are_on_disk_before_the_first_byte(self, bench: Bench) -> None:
        device = bench.enrolled()
        (sent,) = bench.ask(device, a_round(1))
        assert sent.on_disk_first

    def test_commits_are_synced_with_their_folder(self, bench: Bench) -> None:
        bench.create()
        with _connection(bench.path) as connection:
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
    def test_a_disk_that_does_not_take_it_means_silence(
        self, bench: Bench, fault: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        device = bench.enrolled()
        kept = bench.path.read_bytes()
        with monkeypatch.context() as broken:
            if fault == "full":
                _fill(broken)
            elif fault == "gone":
                bench.path.unlink()
            elif fault == "replaced":
                bench.path.write_bytes(b"not a database at all" * 100)
            else:
                _make_read_only(broken)
            bench.collector.rounds = [a_round(1)]
            with pytest.raises(LedgerUnusable, match="silent"):
                device.poll()
        assert bench.collector.sent == []
        bench.path.unlink(missing_ok=True)
        bench.path.write_bytes(kept)
        (sent,) = bench.ask(device, a_round(1))  # once the disk is back
        assert sent.on_disk_first

    def test_run_survives_a_bad_disk(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        device = bench.enrolled()
        _make_read_only(monkeypatch)
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
        before, entries = (
            bench.path.read_bytes(),
            DeviceStore(bench.path, ScriptedWitness()).load().entries,
        )
        assert refusals(bench, device, a_round(9)) == [Problem.ROUND_AHEAD]
        counted = bench.path.read_bytes()
        assert counted != before
        assert refusals(bench, device, a_round(9)) == [Problem.ROUND_AHEAD]
        assert bench.path.read_bytes() == counted
        assert DeviceStore(bench.path, ScriptedWitness()).load().entries == entries


def _make_read_only(broken: pytest.MonkeyPatch) -> None:
    """As on a read-only file system. Tests may run as root, whom file modes do not stop."""
    _open_with(broken, "PRAGMA query_only = ON")


def _fill(broken: pytest.MonkeyPatch) -> None:
    """As on a full disk: SQLite may not add a page, and says so with its own error."""
    _open_with(broken, "PRAGMA max_page_count = 1")


def _open_with(broken: pytest.MonkeyPatch, pragma: str) -> None:
    @contextmanager
    def limited(path: Path) -> Iterator[sqlite3.Connection]:
        with _connection(path) as connection:
            connection.execute(pragma)
            if "max_page_count" in pragma:
                # The few rows of a ledger fit into pages that are there; a large one does not.
                connection.execute(
                    "CREATE TEMP TRIGGER fill AFTER INSERT ON main.ledger BEGIN"
                    " INSERT INTO refusals VALUES ('x', 1, 1, hex(zeroblob(100000))); END"
                )
            yield connection

    broken.setattr(store, "_connection", limited)


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


class TestRule5BudgetsAreKeptInOwnTime:
    @pytest.mark.parametrize("t", [0, 1, 2, 3, 5, 6])
    def test_only_the_timestamp_that_it_is_now_is_answered(self, bench: Bench, t: int) -> None:
        device = bench.enrolled()
        bench.clock.pass_timestamps(3)
        other = {**a_round(max(t, 1)), "deadline_ms": bench.clock.wall + 10**6}
        assert refusals(bench, device, other) in ([Problem.ROUND_AHEAD], [Problem.ROUND_PAST])
        assert len(bench.ask(device, a_round(4))) == 1

    def test_time_held_back_cannot_be_run_through_later(self, bench: Bench) -> None:
        """Epsilon about one moment, from many timestamps at once, whatever time they say it is."""
        device = bench.enrolled()
        bench.clock.pass_timestamps(99)
        answered = []
        for t in range(1, 101):
            bench.collector.now_ms = lambda t=t: START_MS + (t - 1) * INTERVAL_MS
            answered += bench.ask(device, a_round(t))
        assert [one.t for one in answered] == [1]

    @pytest.mark.parametrize("restarting", [False, True])
    def test_no_clock_but_the_steady_one_hurries_it(self, bench: Bench, restarting: bool) -> None:
        """Neither the wall clock, nor the collector's, nor both, nor starting again."""
        device = bench.enrolled()
        steady_when_sent = []
        for step in range(400):
            bench.clock.wall += (7 if step % 3 else -9) * INTERVAL_MS
            if bench.ask(device, a_round(bench.t)):
                steady_when_sent.append(bench.clock.steady)
            bench.clock.pass_ms(INTERVAL_MS // 10)
            if restarting:
                device = bench.open()
                device.observe("north")
        gaps = [later - sooner for sooner, later in pairwise(steady_when_sent)]
        assert gaps == [4 * INTERVAL_MS + 1] * 10

    def test_a_clock_that_is_corrected_costs_nothing(self, bench: Bench) -> None:
        device = bench.enrolled()
        answered = 0
        for correction in (3000, 1000, -2000, 7, 300):
            bench.clock.wall += correction * INTERVAL_MS
            answered += len(bench.ask(device, a_round(bench.t)))
            bench.clock.pass_timestamps(4)
        assert answered == 5

    def test_the_same_timestamp_again_is_the_same_round_while_its_debit_counts(
        self, bench: Bench
    ) -> None:
        device = bench.enrolled()
        bench.collector.loses = lambda request: request.method == "POST"
        (first, *_) = bench.ask(device, a_round(1))
        bench.clock.wall = START_MS
        (again, *_) = bench.ask(device, a_round(1))
        assert again.report == first.report

    def test_own_time_goes_on_after_a_reboot(self, bench: Bench) -> None:
        """By the time since that boot; what passed before it was not seen, and does not count."""
        device = bench.enrolled()
        bench.ask(device, a_round(1))
        bench.clock.wall += 10 * INTERVAL_MS
        bench.clock.reboot("second boot", steady_ms=3 * INTERVAL_MS)
        device = bench.open()
        device.observe("north")
        assert refusals(bench, device, a_round(bench.t)) == [Problem.BUDGET_SPENT]
        bench.clock.pass_timestamps(1)
        assert len(bench.ask(device, a_round(bench.t))) == 1

    def test_a_file_on_another_machine_does_not_take_over_its_uptime(self, bench: Bench) -> None:
        bench.ask(bench.enrolled(), a_round(1))
        bench.clock.pass_ms(1_000)
        bench.clock.reboot("of a machine that is up for a year", steady_ms=365 * 86_400_000)
        device = bench.open()
        device.observe("north")
        assert refusals(bench, device, a_round(1, "again")) == [Problem.BUDGET_SPENT]
        bench.clock.pass_timestamps(4)
        assert len(bench.ask(device, a_round(bench.t))) == 1

    @pytest.mark.parametrize("boots", [["a", "b", "c", "d", "e", "f", "g", "h", "i"], [None] * 9])
    def test_reboots_cost_no_more_than_was_not_marked(
        self, bench: Bench, boots: list[str | None]
    ) -> None:
        """Listening all the time, with a reboot at every half timestamp; a window has eight."""
        bench.clock.booted = boots[0]
        device = bench.enrolled()
        bench.ask(device, a_round(1))
        for boot in boots[1:]:
            bench.clock.pass_ms(INTERVAL_MS // 2)
            bench.ask(device)
            bench.clock.reboot(boot, 0 if boot else bench.clock.steady)
            device = bench.open()
            device.observe("north")
        assert len(bench.ask(device, a_round(bench.t))) == 1

    def test_a_device_that_has_spent_nothing_marks_nothing(self, bench: Bench) -> None:
        device = bench.enrolled()
        before = bench.path.read_bytes()
        bench.clock.pass_timestamps(100)
        bench.ask(device)
        device.close()
        assert bench.path.read_bytes() == before


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
        assert isinstance(bench.witness, ScriptedWitness)
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
        assert isinstance(bench.witness, ScriptedWitness)
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
        bench.collector.rounds = [a_round(1, "b", epsilon_nano=NANO // 4)]
        with failing_once(lambda entry: entry.report is None), pytest.raises(LedgerUnusable):
            device.poll()
        device.enrol(URL, "regions", TOKEN)
        assert refusals(bench, device, a_round(1, "c")) == [Problem.BUDGET_SPENT]

    def test_the_file_system_is_a_witness(self, folder: Path) -> None:
        """By the change time, which `cp --preserve` and `touch` do not bring back."""
        path = folder / "device.ldp"
        DeviceStore(path, ChangeTime()).create(first_install=True)
        assert _vouched_for(path, ChangeTime())
        with DeviceStore(path, ChangeTime()).change() as change:
            change.mark_time()
        assert _vouched_for(path, ChangeTime())
        _age(path)
        backup = folder / "backup"
        shutil.copy2(path, backup)
        shutil.copy2(backup, path)
        old = time.time() - 60
        os.utime(path, (old, old))
        assert not _vouched_for(path, ChangeTime())

    def test_a_counter_elsewhere_is_a_witness(self, folder: Path) -> None:
        path, witness = folder / "device.ldp", CounterFile(folder / "counter")
        DeviceStore(path, witness).create(first_install=True)
        backup = path.read_bytes()
        with DeviceStore(path, witness).change() as change:
            change.mark_time()
        assert _vouched_for(path, witness)
        current = path.read_bytes()
        path.write_bytes(backup)
        assert not _vouched_for(path, witness)
        path.write_bytes(current)
        assert _vouched_for(path, witness)
        (folder / "counter").unlink()
        assert not _vouched_for(path, witness)

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

        def fail(stamp: str) -> None:
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


def _vouched_for(path: Path, witness: Witness) -> bool:
    """Return whether a process that opens the file takes it for the latest."""
    with DeviceStore(path, witness).change() as change:
        return change.vouched_for


def _age(path: Path, seconds: int = 60) -> None:
    """As if the last commit had been so long ago, by the stamp in the file."""
    with sqlite3.connect(path) as connection:
        ((stamp,),) = connection.execute("SELECT stamp FROM device")
        at_ns, _, file = stamp.partition(" ")
        older = f"{int(at_ns) - seconds * 10**9} {file}"
        connection.execute("UPDATE device SET stamp = ?", (older,))
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
        "round 3-publication is for t=3, but by this device's clock it is t=1; "
        "nothing to do: the device takes the time from the collector's next announcement"
    )
