"""A hostile collector that asks whatever Hypothesis can think of, and one transcript of it all.

Around the device clocks are wrong, drift, jump and stop, machines sleep and reboot, processes end
and share a file, copies of the file come back. Nothing inside the device is looked at. The judge of
`ldpstream.audit` goes by true time: of what ever left, any span of w intervals, wherever it begins,
holds at most epsilon, one round has one payload, and each payload was on disk before it left.
Planted bugs show that the machine would find out.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

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

from ldpstream.audit.drills import RepeatedSource
from ldpstream.audit.hostile_collector import NANO, make_terms
from ldpstream.audit.life import Life, Process
from ldpstream.audit.machine import Machine, TrueTime
from ldpstream.audit.planted import BUGS
from ldpstream.device.file_transaction import FileTransaction
from ldpstream.device.memory import LedgerEntry
from ldpstream.device.witness import ChangeTime
from ldpstream.fleet.folders import memory_folder
from ldpstream.protocol.terms import SelectionMethod
from tests.hostile.counting import Fault, Ledger, assert_a_violation_is_found

WINDOW = 4
INTERVAL_MS = 60_000
NAMES = st.sampled_from(["a", "b", "c"])
SHARES = st.sampled_from([1, NANO // 4, NANO // 3, NANO // 2, NANO, NANO, NANO + 1, 32 * NANO])
RATES = st.sampled_from([[0, 1], [1, 2], [1, 1], [1, 1], [3, 2], [1]])
SECONDS = st.sampled_from([0.1, 20, 59.9, 60, 120, 60 * WINDOW - 5, 60 * WINDOW])
JUMPS_MS = st.sampled_from([-3 * INTERVAL_MS, -1, 59_000, INTERVAL_MS, WINDOW * INTERVAL_MS, 10**7])
SLOTS: dict[str, Any] = {"selection": "slots", "deadline_ms": 54_000}
TEXTS = SLOTS | {
    "query": "vocabulary",
    "labels": None,
    "oracle": "hadamard",
    "salt": "00000000000000ff",
    "bits": 16,
    "prefixes": [2],
}
NOTICED_MS = ChangeTime.SLOWEST_COMMIT_NS // 10**6 + 1
"""After so long by the wall clock, other bytes in the file itself are noticed (docs/device.md)."""


class HostileCollectorMachine(RuleBasedStateMachine):
    """Asks, repeats, aborts, loses, lies; around it clocks, machines, processes and files move."""

    done: ClassVar[Ledger] = Ledger()

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=memory_folder()))
        self.asked: list[dict[str, Any]] = []
        self.copies: list[tuple[Path, int]] = []
        """Copies of the file, and the latest that the wall clock had ever said by then."""
        self.latest_wall = 0
        self.second: Process | None = None

    @initialize(
        counts_sleep=st.booleans(),
        names_boots=st.booleans(),
        pace=st.sampled_from([Fraction(1), Fraction(9, 10)]),
        skew_ms=JUMPS_MS,
        kind=st.sampled_from([{}, SLOTS, TEXTS]),
    )
    def begin(self, kind: dict[str, Any], **clocks: Any) -> None:
        self.machine = Machine(TrueTime(), drift=Fraction(1, 1000), up_ms=10**6, **clocks)
        terms, held = make_terms(WINDOW, INTERVAL_MS, **kind), "a text" if kind is TEXTS else 0
        source = RepeatedSource(1)
        self.life = Life(self.folder, self.machine, terms, source=source, value=lambda us: held)
        self.life.install()
        self.life.become_a_twin()  # the same coins again

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def did(self, fault: Fault | None = None) -> None:
        self.done.did(fault)

    # --- what the collector does ------------------------------------------------------------------

    def _announce(self, *rounds: dict[str, Any], by: Process | None = None) -> None:
        self.latest_wall = max(self.latest_wall, self.machine.wall_ms())
        self.life.ask(*rounds, by=by)
        self.latest_wall = max(self.latest_wall, self.machine.wall_ms())

    def _now(self) -> int:
        """The timestamp that the collector says it is."""
        says_ms = self.life.collector.says_ms()
        return self.life.collector.t if says_ms is None else self.life.terms.timestamp_at(says_ms)

    def _a_round(self, t: int, name: str, **changes: Any) -> dict[str, Any]:
        return self.life.collector.make_round(t, f"{max(t, 0)}-{name}", **changes)

    @rule(steps=st.integers(-2, 2), name=NAMES, nano=SHARES, rate=RATES)
    def ask(self, steps: int, name: str, nano: int, rate: list[int]) -> None:
        self.did()
        asked = self._a_round(self._now() + steps, name, epsilon_nano=nano, rate=rate)
        self.asked.append(asked)
        self._announce(asked)

    @rule(nano=SHARES)
    def ask_all_neighbours_at_once(self, nano: int) -> None:
        self.did()
        now = self._now()
        self._announce(
            *(
                self.life.collector.make_round(now + steps, epsilon_nano=nano)
                for steps in (-1, 0, 0, 1)
            )
        )

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), nano=SHARES)
    def ask_again(self, data: st.DataObject, nano: int) -> None:
        self.did(Fault.REPLAYED)
        again = data.draw(st.sampled_from(self.asked))
        self._announce({**again, "epsilon_nano": nano, "rate": [1, 1]})

    @rule()
    def lie_about_the_terms(self) -> None:
        self.did(Fault.LIES)
        before = len(self.life.collector.on_wire)
        self.life.collector.pin = "0" * 64
        self._announce(self._a_round(self._now(), "lie"))
        self.life.collector.pin = None
        unasked = self.life.terms.selection is SelectionMethod.SLOTS
        assert unasked or len(self.life.collector.on_wire) == before

    @rule(lie_ms=st.sampled_from([None, 0, *(2 * [-INTERVAL_MS, INTERVAL_MS, 10**8])]))
    def lie_about_the_time(self, lie_ms: int | None) -> None:
        """Or say nothing about it."""
        self.did(Fault.TIME_LIES)
        true = self.life.true
        self.life.collector.now_ms = lambda: None if lie_ms is None else true.now_ms() + lie_ms

    @rule(lost=st.booleans())
    def lose(self, lost: bool) -> None:
        """On the way there or back: a device cannot tell."""
        self.did(Fault.RESPONSE_LOST if lost else None)
        self.life.collector.loses = lambda request: lost and request.method == "POST"

    # --- what the person and the application do ---------------------------------------------------

    @rule(value=st.sampled_from([None, 0, 1, 99]))
    def hold(self, value: int | None) -> None:
        self.did()
        self.life.value = lambda us: value

    @rule(before=st.sampled_from([0, 0, 1, 50]), after=st.sampled_from([0, 0, 1, 50]))
    def read_slowly(self, before: int, after: int) -> None:
        self.did(Fault.SLOW)
        self.life.dawdle_before, self.life.dawdle_after = before, after

    @rule()
    def restart(self) -> None:
        self.did(Fault.KILLED)
        self.second = None
        self.life.start()

    @rule()
    def leave_and_join_again(self) -> None:
        self.did(Fault.KILLED)
        self.second = None
        self.life.rejoin()

    @rule(nano=SHARES, within=st.booleans())
    def share_the_file(self, nano: int, within: bool) -> None:
        """A second process answers, perhaps while the first one reads its value."""
        self.did(Fault.SHARED)
        if self.second is None:
            self.second = self._another()
        by, honest = self.second, self.life.value
        if by is None:
            return

        def value(us: int) -> Any:
            self.life.value = honest
            self._announce(self.life.collector.make_round(self._now(), epsilon_nano=nano), by=by)
            return honest(us)

        if within:
            self.life.value = value
        asked = self.life.collector.make_round(self._now(), epsilon_nano=nano)
        self._announce(asked, by=None if within else by)
        self.life.value = honest

    def _another(self) -> Process | None:
        return self.life.another()

    # --- what the machine does --------------------------------------------------------------------

    @rule(seconds=SECONDS)
    def let_time_pass(self, seconds: float) -> None:
        self.did()
        self.machine.wait(seconds)

    @rule(seconds=SECONDS)
    def sleep(self, seconds: float) -> None:
        self.did(Fault.ASLEEP)
        self.machine.sleep(seconds)

    @rule(seconds=SECONDS, jump_ms=JUMPS_MS)
    def reboot(self, seconds: float, jump_ms: int) -> None:
        self.did(Fault.REBOOTED)
        self.machine.move_wall(jump_ms)
        self.second = None
        self.life.reboot(seconds)

    @rule(jump_ms=JUMPS_MS)
    def move_the_wall_clock(self, jump_ms: int) -> None:
        self.did(Fault.CLOCK_FORWARD if jump_ms > 0 else Fault.CLOCK_BACK)
        self.machine.move_wall(jump_ms)

    @rule()
    def back_up(self) -> None:
        self.did()
        self.latest_wall = max(self.latest_wall, self.machine.wall_ms())
        self.copies.append((self.life.copy(), self.latest_wall))

    @precondition(lambda self: self.copies)
    @rule(how=st.sampled_from(["rename_back", "link_to", "write_over"]), running=st.booleans())
    def bring_back(self, how: str, running: bool) -> None:
        """Put the oldest copy back, under a running device or before it starts."""
        copied, latest_wall = self.copies[0]
        if how == "write_over":
            # A copy written over the file within 5 s of its own last commit, or while the clock is
            # set back to then, is among what docs/device.md lists as not protected.
            if self.machine.wall_ms() <= latest_wall + NOTICED_MS:
                return
            self.life.write_over(copied.read_bytes())
        else:
            # A process that began behind a link keeps to the file that it found there. With another
            # copy in the link's place there are two devices, which docs/device.md lists, too.
            running = running and not self.life.home.is_symlink()
            getattr(self.life, how)(copied)
            del self.copies[0]
        self.did(Fault.BROUGHT_BACK)
        if not running:
            self.second = None
            self.life.start()

    # --- what must hold ---------------------------------------------------------------------------

    @invariant()
    def the_promise_is_kept(self) -> None:
        assert self.life.violations == []

    @invariant()
    def the_disk_is_fine(self) -> None:
        assert self.life.faults == []


settings_here = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_a_hostile_collector_gets_no_more_than_epsilon() -> None:
    run_state_machine_as_test(HostileCollectorMachine, settings=settings_here)


def without_commits() -> AbstractContextManager[object]:
    """A store that promises and does nothing."""
    honest = FileTransaction.enter

    def enter(self: FileTransaction, entry: LedgerEntry) -> None:
        if entry.report is None:
            honest(self, entry)

    return patch.object(FileTransaction, "enter", enter)


def trusting() -> AbstractContextManager[object]:
    return patch.object(ChangeTime, "vouches", lambda self, found, stamp: True)


PLANTED = {
    bug.name: bug.on_device
    for bug in BUGS
    if bug.name
    in {
        "recycled one step early",
        "re-drawn retries",
        "windows of asked timestamps",
        "answers for neighbours of t",
        "own time by the wall clock",
        "own time by the wall clock while closed",
        "own time by the wall clock between boots",
        "time that is counted twice",
    }
} | {"no commit": without_commits, "trusts backups": trusting}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_found(bug: str) -> None:
    with PLANTED[bug]():
        assert_a_violation_is_found(HostileCollectorMachine, settings_here)
