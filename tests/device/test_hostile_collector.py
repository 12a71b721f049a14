"""A hostile collector that asks whatever Hypothesis can think of, and one transcript of it all.

Nothing inside the device is looked at. From what it sent, ever: any w consecutive timestamps sum to
at most epsilon, one round has one payload, and each payload was on disk before it left. Planted
bugs show that the machine would find out.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ldpstream.device import LedgerUnusable, account
from ldpstream.device.account import Account
from ldpstream.device.rules import Decision, Fresh, Repeat, decide
from ldpstream.device.store import Entry, Store
from ldpstream.fleet.folders import memory_folder
from ldpstream.privacy.ledger import Ledger
from tests.device.collectors import INTERVAL_MS, NANO, Bench, Vouching, a_round
from tests.hostile.counting import assert_a_violation_is_found

WINDOW = 4
NAMES = st.sampled_from(["a", "b", "c"])
SHARES = st.sampled_from([1, NANO // 4, NANO // 3, NANO // 2, NANO, NANO + 1, 32 * NANO])
RATES = st.sampled_from([[0, 1], [1, 2], [1, 1], [3, 2], [1]])


class Repeatable:
    """Draws that differ, and are the same in every run: a failure can be replayed."""

    def __init__(self) -> None:
        self._draws = Random(1)

    def coin(self, favour: int, total: int) -> bool:
        return self._draws.randrange(total) < favour

    def below(self, bound: int) -> int:
        return self._draws.randrange(bound)


class HostileCollector(RuleBasedStateMachine):
    """Asks, repeats, aborts, loses, lies about the terms; around it clocks and files are moved."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=memory_folder()))
        self.bench = Bench(self.folder / "device.ldp", witness=Vouching(), source=Repeatable())
        self.bench.open()
        with sqlite3.connect(self.bench.path) as connection:
            connection.execute("UPDATE device SET secret = zeroblob(32)")
        connection.close()
        self.device = self.bench.enrolled()
        self.asked: list[dict[str, Any]] = []
        self.backups: list[bytes] = []
        self.latest_wall = self.bench.clock.wall

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def _announce(self, rounds: list[dict[str, Any]]) -> None:
        self.bench.collector.rounds = rounds
        try:
            self.device.poll()
        except LedgerUnusable:
            raise AssertionError("the disk is fine") from None

    @rule(steps=st.integers(-2, 2), name=NAMES, nano=SHARES, rate=RATES)
    def ask(self, steps: int, name: str, nano: int, rate: list[int]) -> None:
        t = self.bench.t + steps
        deadline = self.bench.clock.wall + 1000
        asked = a_round(
            t, f"{max(t, 0)}-{name}", epsilon_nano=nano, rate=rate, deadline_ms=deadline
        )
        self.asked.append(asked)
        self._announce([asked])

    @rule(nano=SHARES)
    def ask_twice_at_once(self, nano: int) -> None:
        t = self.bench.t
        self._announce([a_round(t, f"{t}-{name}", epsilon_nano=nano) for name in "de"])

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), nano=SHARES)
    def ask_again(self, data: st.DataObject, nano: int) -> None:
        again = data.draw(st.sampled_from(self.asked))
        self._announce([{**again, "epsilon_nano": nano, "rate": [1, 1]}])

    @rule()
    def lie_about_the_terms(self) -> None:
        before = len(self.bench.collector.sent)
        self.bench.collector.pin = "0" * 64
        self._announce([a_round(self.bench.t, "lie")])
        self.bench.collector.pin = None
        assert len(self.bench.collector.sent) == before

    @rule(lost=st.booleans())
    def lose(self, lost: bool) -> None:
        self.bench.collector.loses = lambda request: lost and request.method == "POST"

    @rule(timestamps=st.sampled_from([0.3, 1, 1, 2, WINDOW]))
    def let_time_pass(self, timestamps: float) -> None:
        self.bench.clock.pass_ms(int(timestamps * INTERVAL_MS))
        self.latest_wall = max(self.latest_wall, self.bench.clock.wall)

    @rule(timestamps=st.integers(-3, 6))
    def move_the_wall_clock(self, timestamps: int) -> None:
        self.bench.clock.wall += timestamps * INTERVAL_MS
        self.latest_wall = max(self.latest_wall, self.bench.clock.wall)

    @rule(value=st.sampled_from([None, 0, 1, 2, 3]))
    def observe(self, value: int | None) -> None:
        self.device.observe(value)

    @rule()
    def restart(self) -> None:
        self.device = self.bench.open()
        self.device.observe("south")

    @rule()
    def back_up(self) -> None:
        self.backups.append(self.bench.path.read_bytes())

    # A ledger brought back while the clock is set back too is a device without any memory: this is
    # among what docs/device.md lists as not protected.
    @precondition(lambda self: self.backups and self.bench.clock.wall >= self.latest_wall)
    @rule(which=st.integers(0, 3), under_a_running_device=st.booleans())
    def bring_back(self, which: int, under_a_running_device: bool) -> None:
        backup = self.backups[which % len(self.backups)]
        if backup == self.bench.path.read_bytes():
            return
        self.bench.path.write_bytes(backup)
        assert isinstance(self.bench.witness, Vouching)
        self.bench.witness.trusts = False
        if under_a_running_device:
            self.device.session.account._stale = True
            self._announce([a_round(self.bench.t, "after")])
        else:
            self.device = self.bench.open()
            self.device.observe("south")
        self.bench.witness.trusts = True

    @invariant()
    def any_w_timestamps_keep_to_epsilon(self) -> None:
        spends: dict[tuple[int, str], int] = {}
        for sent in self.bench.collector.sent:
            spends.setdefault((sent.t, sent.round), sent.nano)
        times = {t for t, _ in spends}
        for start in times:
            window = range(start, start + WINDOW)
            total = sum(nano for (t, _), nano in spends.items() if t in window)
            assert total <= NANO, f"{total} nano-epsilon in the {WINDOW} timestamps from {start}"

    @invariant()
    def one_round_has_one_payload(self) -> None:
        payloads: dict[tuple[int, str], bytes] = {}
        for sent in self.bench.collector.sent:
            assert payloads.setdefault((sent.t, sent.round), sent.report) == sent.report

    @invariant()
    def nothing_leaves_before_it_is_on_disk(self) -> None:
        assert all(sent.on_disk_first for sent in self.bench.collector.sent)


settings_here = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_a_hostile_collector_gets_no_more_than_epsilon() -> None:
    run_state_machine_as_test(HostileCollector, settings=settings_here)


class ForgetfulLedger(Ledger):
    """Forgets one timestamp early."""

    def most(self, t: int) -> int:
        kept = {one: nano for one, nano in self.spends.items() if one > t - self.window + 1}
        return Ledger(self.limit, self.window, kept).most(t)


def redraw(honest: Callable[..., Decision]) -> Callable[..., Decision]:
    """Answers a round that was answered before with a fresh draw, free of charge."""

    def decided(*arguments: Any) -> Decision:
        decision = honest(*arguments)
        return Fresh(decision.asked, 0) if isinstance(decision, Repeat) else decision

    return decided


def send_before_commit(self: Store, commits: int, entry: Entry, *rest: Any) -> int:
    """A store that promises and does nothing."""
    return commits


def never_suspicious(self: Vouching, found: object, stamp: int) -> bool:
    return True


@pytest.mark.parametrize("bug", ["forgets early", "draws again", "no commit", "trusts backups"])
def test_planted_bugs_are_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if bug == "forgets early":
        monkeypatch.setattr(account, "Ledger", ForgetfulLedger)
    elif bug == "draws again":
        monkeypatch.setattr(account, "decide", redraw(decide))
        monkeypatch.setattr(Ledger, "spend", lambda ledger, t, nano: ledger)
        monkeypatch.setattr(Account, "_commit", lambda account, entry, ledger: None)
    elif bug == "no commit":
        monkeypatch.setattr(Store, "add", send_before_commit)
    else:
        monkeypatch.setattr(Vouching, "vouches", never_suspicious)
    assert_a_violation_is_found(HostileCollector, settings_here)
