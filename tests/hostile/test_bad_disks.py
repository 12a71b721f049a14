"""A device whose collector is hostile and whose disk is bad.

All of `tests/device/test_hostile_collector.py`, and in between the disk is full, read-only, or has
bytes changed under it. Whatever happened, of what the device ever sent, in true time:

1. Any span of w intervals, wherever it begins, holds at most epsilon.
2. One round has one payload. (A stored report that the disk itself has altered may be sent altered:
   it is a function of the old one, and costs nothing. It is left out here.)
3. Nothing leaves before its debit is on disk, if only until the disk loses it again.
4. A bad disk is told as `LedgerUnusable`, and means silence; it is never an error of another kind.

A file that was changed from outside is noticed by the witness (docs/device.md), as here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from ldpstream.audit.life import Process
from ldpstream.device import LedgerUnusable, store
from ldpstream.device.account import Account
from ldpstream.device.clock import ClockReading
from ldpstream.device.rules import Decision, Repeat
from ldpstream.device.wallet import Wallet
from ldpstream.errors import Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.answers import Round
from ldpstream.protocol.terms import Terms
from tests.device.test_hostile_collector import NOTICED_MS, HostileCollectorMachine, settings_here
from tests.hostile.counting import Fault, Ledger, assert_a_violation_is_found

FULL = "PRAGMA max_page_count = 1"
READ_ONLY = "PRAGMA query_only = ON"


class BadDisk(HostileCollectorMachine):
    """The hostile collector, and a disk that does what disks do."""

    done = Ledger()

    def __init__(self) -> None:
        super().__init__()
        self.pragma: str | None = None
        self.damaged = False
        opened = store._connection

        @contextlib.contextmanager
        def limited(path: Path) -> Iterator[Any]:
            """Let SQLite itself refuse what a bad disk would refuse."""
            with opened(path) as connection:
                if self.pragma is not None:
                    connection.execute(self.pragma)
                yield connection

        self._limit = patch.object(store, "_connection", limited)
        self._limit.start()

    def teardown(self) -> None:
        self._limit.stop()
        super().teardown()

    def _announce(self, *rounds: dict[str, Any], by: Process | None = None) -> None:
        try:
            super()._announce(*rounds, by=by)
        except Mistake as mistake:  # an emptied file is a device that was never enrolled
            if mistake.problem is not Problem.NOT_ENROLLED or not self.damaged:
                raise

    def _another(self) -> Process | None:
        try:
            return self.life.another()
        except (LedgerUnusable, Mistake) as fault:
            self.life.faults.append(str(fault))
            return None

    @precondition(lambda self: self.pragma is None)
    @rule(pragma=st.sampled_from([FULL, READ_ONLY]))
    def break_the_disk(self, pragma: str) -> None:
        self.did(Fault.DISK_FULL if pragma == FULL else Fault.READ_ONLY)
        self.pragma = pragma

    @precondition(lambda self: self.pragma is not None)
    @rule()
    def mend_the_disk(self) -> None:
        self.did()
        self.pragma = None

    @rule(draws=st.randoms(use_true_random=False), truncate=st.booleans(), running=st.booleans())
    def damage_the_file(self, draws: Random, truncate: bool, running: bool) -> None:
        self.machine.wait(NOTICED_MS / 1000)
        if self.machine.wall_ms() <= self.latest_wall + NOTICED_MS:
            return  # within 5 s of a commit by the wall clock: not protected (docs/device.md)
        self.did(Fault.CORRUPT)
        content = bytearray(self.life.path.read_bytes())
        before = bytes(content)
        if truncate:
            del content[draws.randrange(len(content) + 1) :]
        else:
            for _ in range(draws.choice([1, 4, 64]) if content else 0):
                content[draws.randrange(len(content))] ^= draws.randrange(1, 256)
        if bytes(content) == before:
            return
        self.damaged = True
        self.life.transcript.altered |= self.life.transcript.by_key.keys()
        self.life.write_over(bytes(content))
        if not running:
            self.second = None
            self.life.start()

    @precondition(lambda self: self.damaged)
    @rule()
    def start_over(self) -> None:
        """What an owner does about a broken file: another one, whose past is unknown."""
        self.did()
        self.pragma = self.second = None
        self.life.collector.loses = lambda request: False
        self.life.path.unlink()
        self.life.install(first=False)
        self.damaged = False
        self.copies.clear()

    @invariant()
    def the_disk_is_fine(self) -> None:
        """Or it is known to be bad."""
        if self.pragma is None and not self.damaged:
            assert self.life.faults == []
        self.life.faults.clear()


def test_a_bad_disk_gives_nothing_away() -> None:
    run_state_machine_as_test(BadDisk, settings=settings_here)


def deaf() -> Callable[..., Decision]:
    """Hands a report out, whatever the disk says."""
    honest = Account._draw

    def draw(
        self: Account, pin: str, asked: Round, before: ClockReading, value: int, seen: Terms
    ) -> Decision:
        try:
            return honest(self, pin, asked, before, value, seen)
        except LedgerUnusable:
            randomiser = seen.randomiser(Epsilon(asked.epsilon_nano))
            drawn = randomiser.perturb(value, self._source)
            return Repeat(asked, randomiser.encode(drawn))

    return draw


@pytest.mark.parametrize("bug", ["ignores the disk", "trusts damage"])
def test_planted_bugs_are_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if bug == "ignores the disk":
        monkeypatch.setattr(Account, "_draw", deaf())
    else:
        monkeypatch.setattr(Wallet, "_count_as_spent", lambda self, change, terms=None: None)
    assert_a_violation_is_found(BadDisk, settings_here)


def test_the_machine_asks() -> None:
    """An announcement of this machine is one that a device on a good disk answers."""
    machine = BadDisk()
    try:
        machine.begin(kind={}, counts_sleep=True, names_boots=True, pace=1, skew_ms=0)
        machine._announce(machine.life.collector.make_round())
        assert len(machine.life.collector.on_wire) == 1
    finally:
        machine.teardown()
