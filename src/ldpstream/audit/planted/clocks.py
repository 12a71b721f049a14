"""Bugs of time: budgets that are kept in another time than the one in which a person lives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from ldpstream.audit import drills
from ldpstream.audit.planted.bug import Bug
from ldpstream.device import account, rules
from ldpstream.device.account import Account
from ldpstream.device.clock import Look, OwnTime
from ldpstream.device.rounds import Round
from ldpstream.device.rules import Decision, State
from ldpstream.device.store import Change

# --- Budgets by the timestamp that was asked for --------------------------------------------------


@contextmanager
def _by_asked_timestamps(reach: int) -> Iterator[None]:
    """Enter debits at the timestamp as it was asked, and answer for neighbours within `reach`."""
    honest_decide, honest_draw = rules.decide, Account._draw

    def decide(pin: str, asked: Round, state: State, own_ms: int, label_ms: int) -> Decision:
        interval, now = state.terms.interval_ms, state.terms.timestamp_at(label_ms)
        if abs(asked.t - now) <= reach:
            label_ms += (asked.t - now) * interval
        return honest_decide(pin, asked, state, asked.t * interval, label_ms)

    def draw(self: Account, pin: str, asked: Round, *rest: Any) -> Decision:
        aligned_ms = asked.t * self.enrolled.terms.interval_ms
        with patch.object(OwnTime, "at", lambda self, now: aligned_ms):
            return honest_draw(self, pin, asked, *rest)

    with patch.object(account, "decide", decide), patch.object(Account, "_draw", draw):
        yield


def _aligned_windows() -> AbstractContextManager[object]:
    return _by_asked_timestamps(reach=0)


def _neighbours() -> AbstractContextManager[object]:
    return _by_asked_timestamps(reach=1)


# --- Own time that is not the steady clock's ------------------------------------------------------


def _by_the_wall_clock() -> AbstractContextManager[object]:
    def at(self: OwnTime, now: Look) -> int:
        return self.own_ms + max(0, now.wall_ms - self.look.wall_ms)

    return patch.object(OwnTime, "at", at)


def _by_the_wall_clock_while_closed() -> AbstractContextManager[object]:
    honest = Account._recall

    def recall(self: Account, change: Change) -> None:
        honest(self, change)
        if "_closed_ms" not in vars(self):  # the first look at the file in this process
            mark, now = self._own, Look.at(self._clock)
            wall_ms = now.wall_ms - mark.look.wall_ms
            vars(self)["_closed_ms"] = max(0, wall_ms - (mark.at(now) - mark.own_ms))
        self._own = OwnTime(self._own.own_ms + vars(self)["_closed_ms"], self._own.look)

    return patch.object(Account, "_recall", recall)


def _by_the_wall_clock_between_boots() -> AbstractContextManager[object]:
    honest = OwnTime.at

    def at(self: OwnTime, now: Look) -> int:
        if now.boot == self.look.boot:
            return honest(self, now)
        return self.own_ms + max(0, now.wall_ms - self.look.wall_ms)

    return patch.object(OwnTime, "at", at)


def _all_of_the_uptime() -> AbstractContextManager[object]:
    honest = OwnTime.at

    def at(self: OwnTime, now: Look) -> int:
        return honest(self, now) if now.boot == self.look.boot else self.own_ms + now.steady_ms

    return patch.object(OwnTime, "at", at)


def _counted_twice() -> AbstractContextManager[object]:
    def moved_to(self: OwnTime, now: Look) -> OwnTime:
        return OwnTime(max(self.own_ms, self.at(now)), self.look)

    return patch.object(OwnTime, "moved_to", moved_to)


# --- A debit that is entered before the reading ---------------------------------------------------


def _entered_before_the_reading() -> AbstractContextManager[object]:
    honest = Account._draw

    def draw(self: Account, *arguments: Any) -> Decision:
        with patch.object(Account, "own_ms", lambda self: 0):
            return honest(self, *arguments)

    return patch.object(Account, "_draw", draw)


CLOCKS = (
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
        on_device=_by_the_wall_clock_between_boots,
        drill=drills.wall_clock_between_boots,
    ),
    Bug(
        "the uptime of another machine",
        "after another boot all of its uptime counts, even if the file came from elsewhere",
        on_device=_all_of_the_uptime,
        drill=drills.moved_to_a_machine_that_is_up_for_long,
    ),
    Bug(
        "time that is counted twice",
        "own time is put on disk, and what the clocks said then is not",
        on_device=_counted_twice,
        drill=drills.marks_and_reboots,
    ),
    Bug(
        "a debit from before the reading",
        "the debit of a long reading is entered at the moment at which the reading began",
        on_device=_entered_before_the_reading,
        drill=drills.long_reading,
    ),
)
