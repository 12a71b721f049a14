"""A device whose collector is hostile and whose disk is bad.

All of `tests/device/test_hostile_collector.py`, and in between the disk is full, read-only, or has
bytes changed under it. Whatever happened, of what the device ever sent:

1. Any w consecutive timestamps sum to at most epsilon.
2. One round has one payload. (A stored report that the disk itself has altered may be sent altered:
   it is a function of the old one, and costs nothing. It is left out here.)
3. Nothing leaves before its debit is on disk, if only until the disk loses it again.
4. A bad disk is told as `LedgerUnusable`, and means silence; it is never an error of another kind.

A file that was changed from outside is noticed by the witness (docs/device.md), as here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from ldpstream.device import LedgerUnusable
from ldpstream.device.account import Account
from ldpstream.device.store import Store
from ldpstream.errors import Mistake, Problem
from tests.device.collectors import TOKEN, URL, Vouching, a_round
from tests.device.test_hostile_collector import (
    SHARES,
    WINDOW,
    HostileCollector,
    settings_here,
)
from tests.hostile.counting import Fault, Ledger, assert_a_violation_is_found

FULL = "PRAGMA max_page_count = 1"
READ_ONLY = "PRAGMA query_only = ON"


class Noticing(Vouching):
    """A witness who notices that a file was changed from outside, until it is written again."""

    def committed(self, stamp: int) -> None:
        self.trusts = True


class BadDisk(HostileCollector):
    """The hostile collector, and a disk that does what disks do."""

    done: ClassVar[Ledger] = Ledger()

    def __init__(self) -> None:
        super().__init__()
        self.bench.witness = Noticing()
        self.device = self.bench.open()
        self.device.observe("south")
        self.pragma: str | None = None
        self.damaged = False
        self.changes = 0
        self.altered: set[tuple[int, str]] = set()
        """Rounds whose stored report may not be what was sent."""
        self._watch_disk()

    def _watch_disk(self) -> None:
        """Let SQLite itself refuse what a bad disk would refuse."""
        store = self.device.session.account._store
        opened = store._connection

        @contextlib.contextmanager
        def limited() -> Iterator[Any]:
            with opened() as connection:
                if self.pragma is not None:
                    connection.execute(self.pragma)
                yield connection

        store._connection = limited  # type: ignore[method-assign]

    def _announce(self, rounds: list[dict[str, Any]]) -> None:
        self.done.did()
        self.bench.collector.rounds = rounds
        with self._bad_disk_allowed():
            self.device.poll()

    @contextlib.contextmanager
    def _bad_disk_allowed(self) -> Iterator[None]:
        try:
            yield
        except LedgerUnusable:
            if self.pragma is None and not self.damaged:
                raise AssertionError("the disk is fine") from None
        except Mistake as mistake:  # an emptied file is a device that was never enrolled
            if mistake.problem is not Problem.NOT_ENROLLED or not self.damaged:
                raise

    def _open_again(self) -> None:
        with self._bad_disk_allowed():
            self.device = self.bench.open()
            self._watch_disk()
            self.device.observe("south")

    @rule()
    def restart(self) -> None:
        self.done.did(Fault.KILLED)
        self._open_again()

    @precondition(lambda self: self.pragma is None)
    @rule(pragma=st.sampled_from([FULL, READ_ONLY]))
    def break_the_disk(self, pragma: str) -> None:
        self.done.did(Fault.DISK_FULL if pragma == FULL else Fault.READ_ONLY)
        self.pragma = pragma

    @precondition(lambda self: self.pragma is not None)
    @rule()
    def mend_the_disk(self) -> None:
        self.done.did()
        self.pragma = None

    @rule(draws=st.randoms(use_true_random=False), truncate=st.booleans(), running=st.booleans())
    def damage_the_file(self, draws: Random, truncate: bool, running: bool) -> None:
        self.done.did(Fault.CORRUPT)
        content = bytearray(self.bench.path.read_bytes())
        if truncate:
            del content[draws.randrange(len(content) + 1) :]
        else:
            for _ in range(draws.choice([1, 4, 64]) if content else 0):
                content[draws.randrange(len(content))] ^= draws.randrange(1, 256)
        self.damaged = True
        self.altered |= {(sent.t, sent.round) for sent in self.bench.collector.sent}
        self._change_under(bytes(content), running)

    # A ledger brought back while the clock is set back too is a device without any memory: this is
    # among what docs/device.md lists as not protected.
    @precondition(lambda self: self.backups and self.bench.clock.wall >= self.latest_wall)
    @rule(which=st.integers(0, 3), running=st.booleans())
    def bring_back(self, which: int, running: bool) -> None:
        self.done.did(Fault.BROUGHT_BACK)
        self._change_under(self.backups[which % len(self.backups)], running)

    def _change_under(self, content: bytes, running: bool) -> None:
        """Put other bytes into the file; the device runs on, or is started anew."""
        if content == self.bench.path.read_bytes():
            return
        self.bench.path.write_bytes(content)
        # Kernels stamp files by ticks of some ms. What happens within the tick of the device's own
        # commit is among what docs/device.md lists as not protected; here every change has a tick.
        self.changes += 1
        os.utime(self.bench.path, ns=(self.changes, self.changes))
        assert isinstance(self.bench.witness, Noticing)
        self.bench.witness.trusts = False
        if not running:
            self._open_again()

    @rule(lost=st.booleans())
    def lose(self, lost: bool) -> None:
        """On the way there or back: a device cannot tell."""
        self.done.did(Fault.RESPONSE_LOST if lost else None)
        super().lose(lost)

    @rule(timestamps=st.integers(-3, 6))
    def move_the_wall_clock(self, timestamps: int) -> None:
        self.done.did(Fault.CLOCK_FORWARD if timestamps > 0 else Fault.CLOCK_BACK)
        super().move_the_wall_clock(timestamps)

    @rule()
    def lie_about_the_terms(self) -> None:
        self.done.faults[Fault.LIES] += 1
        super().lie_about_the_terms()

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), nano=SHARES)
    def ask_again(self, data: st.DataObject, nano: int) -> None:
        self.done.faults[Fault.REPLAYED] += 1
        super().ask_again(data, nano)

    @rule(timestamps=st.sampled_from([0.3, 1, 1, 2, WINDOW]))
    def let_time_pass(self, timestamps: float) -> None:
        self.done.did()
        super().let_time_pass(timestamps)

    @rule(value=st.sampled_from([None, 0, 1, 2, 3]))
    def observe(self, value: int | None) -> None:
        self.done.did()
        with self._bad_disk_allowed():
            self.device.observe(value)

    @precondition(lambda self: self.damaged)
    @rule()
    def start_over(self) -> None:
        """What an owner does about a broken file: another one, whose past is unknown."""
        self.done.did()
        self.pragma = None
        self.bench.collector.loses = lambda request: False
        self.bench.path.unlink()
        self.device = self.bench.open()
        self._watch_disk()
        self.device.enrol(URL, "regions", TOKEN)
        self.device.observe("south")
        self.damaged = False
        self.backups.clear()

    @invariant()
    def one_round_has_one_payload(self) -> None:
        payloads: dict[tuple[int, str], bytes] = {}
        for sent in self.bench.collector.sent:
            key = (sent.t, sent.round)
            if key not in self.altered:
                assert payloads.setdefault(key, sent.report) == sent.report

    @invariant()
    def nothing_leaves_before_it_is_on_disk(self) -> None:
        for sent in self.bench.collector.sent:
            assert sent.on_disk_first or (sent.t, sent.round) in self.altered


def test_a_bad_disk_gives_nothing_away() -> None:
    run_state_machine_as_test(BadDisk, settings=settings_here)


@pytest.mark.parametrize("bug", ["ignores the disk", "trusts damage"])
def test_planted_bugs_are_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if bug == "ignores the disk":
        honest = Store.add

        def add(self: Store, commits: int, *rest: Any) -> int:
            with contextlib.suppress(LedgerUnusable):
                return honest(self, commits, *rest)
            return commits

        monkeypatch.setattr(Store, "add", add)
    else:
        monkeypatch.setattr(Account, "_count_as_spent", lambda self, why, now_ms: None)
    assert_a_violation_is_found(BadDisk, settings_here)


def test_the_machine_asks() -> None:
    """An announcement of this machine is one that a device on a good disk answers."""
    machine = BadDisk()
    try:
        machine._announce([a_round(machine.bench.t)])
        assert len(machine.bench.collector.sent) == 1
    finally:
        machine.teardown()
