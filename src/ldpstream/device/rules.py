"""What a device does with a round: its rules as one decision, without a disk, a clock or a socket.

The seven rules are those of docs/device.md. This module holds 1, 2, 4 and 5; 3 and 6 are kept by
`account.py`, which commits what is decided here, and 7 by the oracles' device halves.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ldpstream.device.rounds import Refused, Round
from ldpstream.errors import Problem
from ldpstream.privacy.ledger import Ledger
from ldpstream.protocol.names import shown
from ldpstream.protocol.terms import Terms

ANSWERS_PER_TIMESTAMP = 4
"""On average over a window: a mechanism asks twice at most, and each answer is stored."""
MARGIN_MS = 1000
"""Before the deadline in which it is too late to wait, or a 16th of an interval if that is less: a
report that is drawn and comes too late is paid for in vain."""


class Silence(Enum):
    """Reasons to send nothing that are nobody's fault. Seen from outside they are all alike."""

    NOT_SELECTED = "the coin said no"
    TOO_LATE = "the deadline has passed"
    MOVED_ON = "its timestamp ended while the value was read"
    DELIVERED = "the report has arrived"


@dataclass(frozen=True)
class Fresh:
    """Read the value, draw a report of it and enter its debit: this round was not answered yet."""

    asked: Round


@dataclass(frozen=True)
class Repeat:
    """Send the same bytes again: this round was answered before."""

    asked: Round
    report: bytes


@dataclass(frozen=True)
class TooEarly:
    """Wait: within the round there will be enough budget again."""

    asked: Round
    wait_ms: int


Decision = Fresh | Repeat | TooEarly | Silence | Refused


@dataclass(frozen=True)
class State:
    """All that a decision rests on."""

    terms: Terms
    ledger: Ledger
    answered: Mapping[tuple[int, str], bytes]
    secret: bytes


def decide(pin: str, asked: Round, state: State, own_ms: int, label_ms: int) -> Decision:
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
        return Silence.TOO_LATE
    if not selects(state.secret, asked):
        return Silence.NOT_SELECTED
    return _within_budget(asked, state, own_ms, label_ms)


def _within_budget(asked: Round, state: State, own_ms: int, label_ms: int) -> Decision:
    ledger, terms = state.ledger.forget(own_ms), state.terms
    if len(ledger.debits) >= (most := ANSWERS_PER_TIMESTAMP * terms.window):
        return Refused(Problem.TOO_MANY_ROUNDS, round=asked.name, most=most)
    if ledger.allows(own_ms, asked.epsilon_nano):
        return Fresh(asked)
    free_ms = ledger.free_from(asked.epsilon_nano)
    if free_ms is not None:
        wait_ms = free_ms - own_ms
        margin_ms = min(MARGIN_MS, terms.interval_ms // 16)
        last_ms = min(asked.deadline_ms, terms.end_of(asked.t)) - margin_ms
        if label_ms + wait_ms < last_ms:
            return TooEarly(asked, wait_ms)
    left = ledger.left(own_ms)
    return Refused(
        Problem.BUDGET_SPENT, round=asked.name, t=asked.t, asked=asked.epsilon_nano, left=left
    )


def selects(secret: bytes, asked: Round) -> bool:
    """Return the device's coin for this round: the same whenever it is asked, kept to itself.

    The hash is compared with the rate, not reduced modulo its denominator: who asks again with
    another fraction sees the same toss. Pr[heads] is the rate to within 2^-256.

    >>> def at_rate(favour, total):
    ...     return Round("7-publication", 7, 10**9, 0, (favour, total))
    >>> selects(bytes(32), at_rate(1, 1)), selects(bytes(32), at_rate(0, 1))
    (True, False)
    """
    favour, total = asked.rate
    message = f"ldpstream coin 1\n{asked.t}\n{asked.name}".encode()
    toss = int.from_bytes(hmac.new(secret, message, hashlib.sha256).digest(), "big")
    return toss * total < favour << 256
