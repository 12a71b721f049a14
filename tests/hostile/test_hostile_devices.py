"""A collector among hostile devices, on a bad network, clock and disk.

Devices send what they like to any round, any time; messages are lost, doubled, delayed, reordered
and replayed; the collector is killed before and after any change, its clock is set forward and
back, its disk fills up and turns read-only. Whatever happened:

1. A release never changes; there is one a timestamp, in order, without gaps.
2. A tally is that of the reports the collector said it accepted, each device once. Only a report
   whose answer died with the collector may be counted or not.
3. Nothing that was not signed by its device, for this round, is ever accepted.
4. "Repeated" and "conflict" are said only of a device that has reported, and rightly.
5. No device of a roster is asked for more than epsilon in any window of w timestamps.
6. A round is announced in one way only; a serial has one meaning, and serials never go back.

Planted bugs show that the machine would find out; what it did find stands in
`test_regressions.py`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ldpstream.collector.intake import queue as intake_module
from ldpstream.collector.intake.validation import validate
from ldpstream.collector.kernels.device_table import DeviceTable
from ldpstream.collector.reports.verdicts import Verdict
from ldpstream.collector.rounds import selection as selection_module
from ldpstream.collector.rounds.selection import RosterSelection
from ldpstream.collector.store.sqlite.store import SqliteStore, _OpenRound
from tests.collector.helpers import Signer, report_of, stream_config
from tests.hostile.collector_world import Message, World
from tests.hostile.counting import Fault, Ledger, assert_a_violation_is_found

INTERVAL_MS = 10_000
KINDS = st.sampled_from(["honest", "honest", "honest", "other", "malformed", "unsigned", "foreign"])
NUMBERS = st.integers(1, World.DEVICES)
FATES = st.sampled_from(["arrives", "arrives", "answer lost", "lost", "delayed", "twice"])
FAULTS = {
    "lost": Fault.REQUEST_LOST,
    "answer lost": Fault.RESPONSE_LOST,
    "delayed": Fault.REORDERED,
    "twice": Fault.DUPLICATED,
}


class HostileDevices(RuleBasedStateMachine):
    """Reports of every kind, and every fault around them."""

    done: ClassVar[Ledger] = Ledger()

    @initialize(
        mechanism=st.sampled_from(["lpu", "lpa", "lbd", "lba", "lsp"]),
        selection=st.sampled_from(["roster", "open"]),
        oracle=st.sampled_from(["grr", "oue"]),
        enrolled=st.integers(0, World.DEVICES),
    )
    def begin(self, mechanism: str, selection: str, oracle: str, enrolled: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            config = stream_config(
                Path(folder),
                mechanism=mechanism,
                selection=selection,
                oracle=oracle,
                population=World.DEVICES,
                window=3 if mechanism == "lsp" else 4,
            )
        # Whom a roster's sample asks is the same in every run: a failure can be replayed.
        setattr(selection_module, "os", SimpleNamespace(urandom=Random(1).randbytes))  # noqa: B010
        self.world = World(config)
        self.network: list[Message] = []
        if selection == "roster":
            for number in range(1, enrolled + 1):
                self.world.enrol(number)
        self.world.advance()

    def teardown(self) -> None:
        setattr(selection_module, "os", os)  # noqa: B010
        if hasattr(self, "world"):
            self.world.close()

    def _message(self, name: str, number: int, kind: str) -> Message:
        asking = self.world.book.told[name]
        report = report_of(asking, number)
        if kind == "other":
            report = report_of(asking, number + World.DEVICES * 7)
        elif kind == "malformed":
            report = bytes([2]) + report[1:]
        signer = Signer(number, self.world.keys)
        record = bytearray(signer.record(asking, report))
        if kind == "unsigned":
            record[20] ^= 1
        elif kind == "foreign":
            record[:16] = (number + 1).to_bytes(16, "big")
        return Message(name, number, bytes(record), report, kind not in ("honest", "other"))

    @property
    def _open(self) -> str | None:
        return None if self.world.coordinator.open is None else self.world.coordinator.open.name

    @rule(share=st.sampled_from([0.1, 0.5, 1.0]))
    def let_time_pass(self, share: float) -> None:
        self.done.did()
        self.world.clock.now += int(share * INTERVAL_MS)
        self.world.advance()

    @rule()
    def wait_for_what_is_next(self) -> None:
        self.done.did()
        self.world.clock.now = max(self.world.clock.now, self.world.advance())
        self.world.advance()

    @rule(timestamps=st.sampled_from([-30, -3, -1, 1, 2, 5, 30]))
    def set_the_clock(self, timestamps: int) -> None:
        self.done.did(Fault.CLOCK_FORWARD if timestamps > 0 else Fault.CLOCK_BACK)
        self.world.clock.now += timestamps * INTERVAL_MS
        self.world.advance()

    @precondition(lambda self: self._open is not None)
    @rule(number=NUMBERS, kind=KINDS, fate=FATES)
    def send(self, number: int, kind: str, fate: str) -> None:
        assert self._open is not None
        self._send(self._message(self._open, number, kind), fate)

    @precondition(lambda self: self.world.book.told)
    @rule(number=NUMBERS, kind=KINDS, fate=FATES, data=st.data())
    def send_to_any_round(self, number: int, kind: str, fate: str, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.book.told)))
        self._send(self._message(name, number, kind), fate)

    def _send(self, message: Message, fate: str) -> None:
        self.done.did(Fault.FORGED if message.forged else FAULTS.get(fate))
        if fate in ("delayed", "answer lost"):  # without an answer, a device sends it again
            self.network.append(message)
        if fate in ("arrives", "answer lost"):
            self.world.deliver([message])
        elif fate == "twice":
            self.world.deliver([message, message])

    @precondition(lambda self: self._open is not None)
    @rule(kinds=st.dictionaries(NUMBERS, KINDS, min_size=2, max_size=World.DEVICES))
    def send_a_batch(self, kinds: dict[int, str]) -> None:
        self.done.did()
        name = self._open
        assert name is not None
        self.world.deliver([self._message(name, number, kind) for number, kind in kinds.items()])
        self.world.advance()

    @precondition(lambda self: self.network)
    @rule(order=st.randoms(use_true_random=False), keep=st.booleans())
    def the_network_delivers(self, order: Random, keep: bool) -> None:
        self.done.did(Fault.REPLAYED if keep else Fault.REORDERED)
        waiting = self.network.copy()
        order.shuffle(waiting)
        rounds: dict[str, list[Message]] = {}
        for one in waiting:
            rounds.setdefault(one.round, []).append(one)
        for messages in rounds.values():
            self.world.deliver(messages)
        if not keep:
            self.network.clear()

    @rule(number=NUMBERS)
    def enrol(self, number: int) -> None:
        self.done.did()
        self.world.enrol(number)

    @rule(changes=st.sampled_from([None, 0, 1, 2, 4]), after=st.booleans())
    def kill(self, changes: int | None, after: bool) -> None:
        """Now, or at one of the next changes: before it is on disk, or just after."""
        self.done.did(Fault.KILLED)
        if changes is None:
            self.world.kill()
        else:
            self.world.doom(changes, after)

    @precondition(lambda self: not self.world.broken_disk)
    @rule(full=st.booleans())
    def break_the_disk(self, full: bool) -> None:
        self.done.did(Fault.DISK_FULL if full else Fault.READ_ONLY)
        if full:
            self.world.fill_disk()
        else:
            self.world.make_disk_read_only()

    @precondition(lambda self: self.world.broken_disk)
    @rule()
    def mend_the_disk(self) -> None:
        self.done.did()
        self.world.mend_disk()

    @invariant()
    def every_promise_holds(self) -> None:
        if hasattr(self, "world"):
            assert list(self.world.violations()) == []


settings_here = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_a_collector_keeps_its_promises_among_hostile_devices() -> None:
    run_state_machine_as_test(HostileDevices, settings=settings_here)


# Planted bugs


def forgets_who_reported(self: SqliteStore, connection: Any) -> None:
    """A restart that does not read back who has reported."""
    self._open_rounds.clear()
    for round_id, stream, name in connection.execute(
        "SELECT round.id, stream.name, round.name FROM round"
        " JOIN stream ON stream.id = round.stream WHERE state = 'open'"
    ).fetchall():
        self._open_rounds[stream, name] = _OpenRound(round_id)


def accepts_everything(honest: Callable[..., Any]) -> Callable[..., Any]:
    """A validation that takes a wrong code for a right one."""

    def judged(*arguments: Any) -> Any:
        found = honest(*arguments)
        found.verdicts[found.verdicts == Verdict.MAC] = Verdict.ACCEPTED
        return found

    return judged


def never_seen(self: DeviceTable, devices: Any, numbers: Any) -> Any:
    return np.zeros(len(devices), np.uint64)


def forgets_early(honest: Callable[..., None]) -> Callable[..., None]:
    """A roster whose window is one timestamp short."""
    return lambda self, last: honest(self, last + 1)


@pytest.mark.parametrize("bug", ["restart", "code", "twice", "window"])
def test_planted_bugs_are_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if bug == "restart":
        monkeypatch.setattr(SqliteStore, "_recall", forgets_who_reported)
    elif bug == "code":
        monkeypatch.setattr(intake_module, "validate", accepts_everything(validate))
    elif bug == "twice":
        monkeypatch.setattr(DeviceTable, "add", never_seen)
    else:
        monkeypatch.setattr(RosterSelection, "_forget", forgets_early(RosterSelection._forget))
    assert_a_violation_is_found(HostileDevices, settings_here)
