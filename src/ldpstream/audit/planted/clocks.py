"""Planted bugs in the use of clocks: budgets that are not kept in true time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from ldpstream.audit import drills
from ldpstream.audit.planted.bug import Bug, Plant
from ldpstream.device import account, rules
from ldpstream.device.account import Account
from ldpstream.device.clock import ClockReading, OwnTime
from ldpstream.device.file_transaction import FileTransaction
from ldpstream.device.rules import Decision, DeviceState
from ldpstream.device.store import DeviceStore
from ldpstream.privacy.ledger import Ledger
from ldpstream.protocol.answers import Round

# --- Budgets by the timestamp that was asked for --------------------------------------------------


@contextmanager
def _by_asked_timestamps(reach: int) -> Iterator[None]:
    """Debit at the timestamp that was asked for, and answer for neighbours within `reach`."""
    honest_decide, honest_draw = rules.decide, Account._draw

    def decide(pin: str, asked: Round, state: DeviceState, own_ms: int, label_ms: int) -> Decision:
        interval, now = state.terms.interval_ms, state.terms.timestamp_at(label_ms)
        if abs(asked.t - now) <= reach:
            label_ms += (asked.t - now) * interval
        return honest_decide(pin, asked, state, asked.t * interval, label_ms)

    def draw(self: Account, pin: str, asked: Round, *rest: Any) -> Decision:
        aligned_ms = asked.t * self.enrolled.terms.interval_ms
        with (
            patch.object(OwnTime, "at", lambda self, other: aligned_ms),
            patch.object(Account, "own_ms", lambda self: aligned_ms - 1),
        ):
            return honest_draw(self, pin, asked, *rest)

    with patch.object(account, "decide", decide), patch.object(Account, "_draw", draw):
        yield


def _aligned_windows() -> AbstractContextManager[object]:
    return _by_asked_timestamps(reach=0)


def _neighbours() -> AbstractContextManager[object]:
    return _by_asked_timestamps(reach=1)


# --- Own time that is not the steady clock's ------------------------------------------------------


def _resumed_by_the_wall_clock(self: OwnTime, now: ClockReading) -> OwnTime:
    return OwnTime(self.own_ms + max(0, now.wall_ms - self.clocks.wall_ms), now)


@contextmanager
def _by_the_wall_clock() -> Iterator[None]:
    def at(self: OwnTime, other: ClockReading) -> int:
        return self.own_ms + other.wall_ms - self.clocks.wall_ms

    with (
        patch.object(OwnTime, "at", at),
        patch.object(OwnTime, "resumed", _resumed_by_the_wall_clock),
    ):
        yield


def _by_the_wall_clock_while_closed() -> AbstractContextManager[object]:
    honest = DeviceStore._begin

    def begin(self: DeviceStore, *arguments: Any) -> FileTransaction:
        if self._left is not None:
            return honest(self, *arguments)
        with patch.object(OwnTime, "resumed", _resumed_by_the_wall_clock):
            change = honest(self, *arguments)
        change.mark_time()
        return change

    return patch.object(DeviceStore, "_begin", begin)


def _after_another_boot(otherwise: Callable[[OwnTime, ClockReading], OwnTime]) -> Plant:
    honest = OwnTime.resumed

    def resumed(self: OwnTime, now: ClockReading) -> OwnTime:
        return honest(self, now) if now.boot == self.clocks.boot else otherwise(self, now)

    return lambda: patch.object(OwnTime, "resumed", resumed)


def _all_of_the_uptime(self: OwnTime, now: ClockReading) -> OwnTime:
    return OwnTime(self.own_ms + now.steady_ms, now)


def _counted_twice() -> AbstractContextManager[object]:
    honest = OwnTime.resumed

    def resumed(self: OwnTime, now: ClockReading) -> OwnTime:
        own_ms = honest(self, now).own_ms
        return OwnTime(own_ms + own_ms - self.own_ms, now)

    return patch.object(OwnTime, "resumed", resumed)


# --- A debit that is entered before the reading ---------------------------------------------------


def _entered_before_the_reading() -> AbstractContextManager[object]:
    honest = Account._draw

    def draw(self: Account, pin: str, asked: Round, before: ClockReading, *rest: Any) -> Decision:
        with patch.object(Account, "own_ms", lambda self: self._own.at(before) - 1):
            return honest(self, pin, asked, before, *rest)

    return patch.object(Account, "_draw", draw)


# --- A timestamp that is looked at before the reading only ----------------------------------------


def _labelled_before_the_reading() -> AbstractContextManager[object]:
    honest = Account._draw

    def draw(self: Account, pin: str, asked: Round, *rest: Any) -> Decision:
        start_ms = self.enrolled.terms.start_of(asked.t)
        with patch.object(self.label, "now_ms", lambda: start_ms):
            return honest(self, pin, asked, *rest)

    return patch.object(Account, "_draw", draw)


# --- Budgets by the slot --------------------------------------------------------------------------


@contextmanager
def _a_slot_is_enough() -> Iterator[None]:
    def left(self: Ledger, moment: int) -> int:
        return self.promises[0].epsilon_nano

    with (
        patch.object(Ledger, "left", left),
        patch.object(Ledger, "free_from", lambda self, nano: 0),
    ):
        yield


CLOCKS = (
    Bug(
        "a slot in place of a ledger",
        "a device that reports once in w timestamps does not look at its ledger: told that its"
        " next turn has come, it reports again",
        on_device=_a_slot_is_enough,
        drill=drills.turns_by_a_lying_clock,
    ),
    Bug(
        "windows of asked timestamps",
        "debits count by the timestamp that was asked for: two readings 0.2 s apart, at an edge,"
        " are in two windows",
        on_device=_aligned_windows,
        drill=drills.edge_of_a_timestamp,
    ),
    Bug(
        "answers for neighbours of t",
        "the timestamps before and after are answered for too, each with the value held now",
        on_device=_neighbours,
        drill=drills.neighbours_of_now,
    ),
    Bug(
        "own time by the wall clock",
        "own time follows the wall clock while the device runs",
        on_device=_by_the_wall_clock,
        drill=drills.wall_clock_while_running,
    ),
    Bug(
        "own time by the wall clock while closed",
        "own time follows the wall clock between two processes",
        on_device=_by_the_wall_clock_while_closed,
        drill=drills.wall_clock_between_restarts,
    ),
    Bug(
        "own time by the wall clock between boots",
        "own time follows the wall clock while the machine is off",
        on_device=_after_another_boot(_resumed_by_the_wall_clock),
        drill=drills.wall_clock_between_boots,
    ),
    Bug(
        "the uptime of another machine",
        "after another boot all of its uptime counts, even if the file came from elsewhere",
        on_device=_after_another_boot(_all_of_the_uptime),
        drill=drills.moved_to_a_machine_that_is_up_for_long,
    ),
    Bug(
        "time that is counted twice",
        "what passed since own time was put on disk is added, and added again",
        on_device=_counted_twice,
        drill=drills.marks_and_reboots,
    ),
    Bug(
        "a debit from before the reading",
        "the debit of a long reading is entered at the moment at which the reading began",
        on_device=_entered_before_the_reading,
        drill=drills.long_reading,
    ),
    Bug(
        "a timestamp from before the reading",
        "which timestamp it is is checked before the reading only: a value of the next one is"
        " reported for this one",
        on_device=_labelled_before_the_reading,
        drill=drills.reading_outlasts_its_timestamp,
    ),
)
