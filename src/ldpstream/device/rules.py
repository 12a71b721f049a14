"""The rules by which a device decides about a round: one function, without disk, clock or socket.

The seven rules are those of docs/device.md. This module implements 1, 2, 4 and 5; `account.py`,
which commits what is decided here, implements 3 and 6, and the oracles' device halves implement 7.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ldpstream.errors import Problem
from ldpstream.privacy.ledger import Budget, Ledger
from ldpstream.protocol.answers import Refused, Round
from ldpstream.protocol.names import shown
from ldpstream.protocol.slots import is_turn
from ldpstream.protocol.strata import round_name
from ldpstream.protocol.terms import SelectionMethod, Terms

ANSWERS_PER_TIMESTAMP = 4
"""The limit, on average over a window: a mechanism asks at most twice, and answers are stored."""
MARGIN_MS = 1000
"""A budget must be free this long before the deadline (or less, where intervals are short)
for a device to wait for it: a report that arrives too late is debited for nothing."""


class SilenceReason(Enum):
    """A reason to send nothing that is not a fault. From outside, all of them look alike."""

    NOT_SELECTED = "the coin, or the slot, said no"
    TOO_LATE = "the deadline has passed"
    MOVED_ON = "its timestamp ended while the value was read"
    DELIVERED = "the report has arrived"
    TOO_EARLY = "the budget is not free yet, and the application does not wait"


@dataclass(frozen=True)
class Fresh:
    """The decision to read the value, draw a report and debit it: the round is not answered yet."""

    asked: Round


@dataclass(frozen=True)
class Repeat:
    """The decision to send the same bytes again: the round was answered before."""

    asked: Round
    report: bytes


@dataclass(frozen=True)
class TooEarly:
    """The decision to wait: there will be enough budget before the round ends."""

    asked: Round
    wait_ms: int


Decision = Fresh | Repeat | TooEarly | SilenceReason | Refused


@dataclass(frozen=True)
class DeviceState:
    """The state of a device that a decision depends on."""

    terms: Terms
    ledger: Ledger
    answered: Mapping[tuple[int, str], bytes]
    secret: bytes = field(repr=False)
    key: bytes = field(repr=False)
    """That of the device's slots."""
    limit: Ledger | None = None
    """The ledger of the limit over all streams of the device, if there is one."""

    @property
    def budget(self) -> Budget:
        """The ledgers that all have to allow a report."""
        return Budget((self.ledger,) if self.limit is None else (self.ledger, self.limit))


def decide(pin: str, asked: Round, state: DeviceState, own_ms: int, label_ms: int) -> Decision:
    """Decide about a round that was announced under `pin`, at this own time and label time."""
    if pin != state.terms.pin:
        return Refused(Problem.TERMS_DIFFER, given=shown(pin), expected=state.terms.pin)
    if asked.key in state.answered:
        return Repeat(asked, state.answered[asked.key])
    now = state.terms.timestamp_at(label_ms)
    if asked.t != now:
        problem = Problem.ROUND_AHEAD if asked.t > now else Problem.ROUND_PAST
        return Refused(problem, round=asked.name, t=asked.t, now=now)
    if asked.deadline_ms <= label_ms:
        return SilenceReason.TOO_LATE
    if not _is_selected(asked, state):
        return SilenceReason.NOT_SELECTED
    return _within_budget(asked, state, own_ms, label_ms)


def _within_budget(asked: Round, state: DeviceState, own_ms: int, label_ms: int) -> Decision:
    budget, terms = state.budget, state.terms
    recent = sum(at > own_ms - terms.promise.span for at, _ in state.ledger.debits)
    if recent >= (most := ANSWERS_PER_TIMESTAMP * terms.window):
        return Refused(Problem.TOO_MANY_ROUNDS, round=asked.name, most=most)
    if budget.allows(own_ms, asked.epsilon_nano):
        return Fresh(asked)
    free_ms = budget.free_from(asked.epsilon_nano)
    if free_ms is not None:
        wait_ms = free_ms - own_ms
        if label_ms + wait_ms < last_moment_ms(asked, terms):
            return TooEarly(asked, wait_ms)
    left = budget.left(own_ms)
    return Refused(
        Problem.BUDGET_SPENT, round=asked.name, t=asked.t, asked=asked.epsilon_nano, left=left
    )


def last_moment_ms(asked: Round, terms: Terms) -> int:
    """Return the label time until which a device waits for its budget to answer a round."""
    end_ms = min(asked.deadline_ms, terms.end_of(asked.t))
    margin_ms = min(MARGIN_MS, terms.interval_ms // 16, (end_ms - terms.start_of(asked.t)) // 8)
    return end_ms - margin_ms


def _is_selected(asked: Round, state: DeviceState) -> bool:
    """Return whether it is for this device to answer; its value has no part in that.

    With slots nobody asks: an announced round other than that of the device's own turn is not one.
    """
    terms = state.terms
    if terms.selection is not SelectionMethod.SLOTS:
        return selects(state.secret, asked)
    named_so = asked.name == round_name(asked.t, terms.suffix)
    return named_so and is_turn(state.key, terms.window, asked.t)


def selects(secret: bytes, asked: Round) -> bool:
    """Return whether the device's secret coin selects it for this round, always with one result.

    The keyed hash is compared with the rate, not reduced modulo its denominator: a collector that
    asks again with another fraction sees the same toss. Pr[heads] is the rate to within 2^-256.

    >>> def at_rate(favour, total):
    ...     return Round("7-publication", 7, 10**9, 0, (favour, total))
    >>> selects(bytes(32), at_rate(1, 1)), selects(bytes(32), at_rate(0, 1))
    (True, False)
    """
    favour, total = asked.rate
    toss = int.from_bytes(hmac.digest(secret, asked.coin_message, "sha256"), "big")
    return toss * total < favour << 256
