"""What a device does with a round: its rules as one decision, without a disk, a clock or a socket.

The seven rules are those of docs/device.md. This module holds 1, 2, 4 and 5; 3 and 6 are kept by
`account.py`, which commits what is decided here, and 7 by the oracles' device halves.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from ldpstream.device.rounds import Refused, Round
from ldpstream.device.terms import Terms, shown
from ldpstream.errors import Problem
from ldpstream.privacy.ledger import Ledger

Held = Callable[[], int | None]
"""The place of the value that the device holds, or None."""


class Silence(Enum):
    """Reasons to send nothing that are nobody's fault. Seen from outside they are all alike."""

    NOT_SELECTED = "the coin said no"
    NO_VALUE = "there is no value to report"
    TOO_LATE = "the deadline has passed"
    DELIVERED = "the report has arrived"


@dataclass(frozen=True)
class Fresh:
    """Draw a report of this value and enter its debit: this round has not been answered."""

    asked: Round
    value: int


@dataclass(frozen=True)
class Repeat:
    """Send the same bytes again: this round was answered before."""

    asked: Round
    report: bytes


Decision = Fresh | Repeat | Silence | Refused


@dataclass(frozen=True)
class State:
    """All that a decision rests on."""

    terms: Terms
    ledger: Ledger
    answered: Mapping[tuple[int, str], bytes]
    last_t: int
    """The latest timestamp with an entry."""
    secret: bytes
    value: Held
    """Asked only if there is no other reason to be silent: it may be the application's own code."""


def decide(pin: str, asked: Round, state: State, now_ms: int) -> Decision:
    """What to do about a round that was announced under `pin`, at this moment of the own clock."""
    if pin != state.terms.pin:
        return Refused(Problem.TERMS_DIFFER, given=shown(pin), expected=state.terms.pin)
    if asked.key in state.answered:
        return Repeat(asked, state.answered[asked.key])
    if (fault := _time_fault(asked, state, now_ms)) is not None:
        return fault
    if asked.deadline_ms <= now_ms:
        return Silence.TOO_LATE
    if not selects(state.secret, asked):
        return Silence.NOT_SELECTED
    if (value := state.value()) is None:
        return Silence.NO_VALUE
    if not state.ledger.allows(asked.t, asked.epsilon_nano):
        left = state.ledger.left(asked.t)
        return Refused(
            Problem.BUDGET_SPENT,
            round=asked.name,
            t=asked.t,
            asked=asked.epsilon_nano,
            left=left,
        )
    return Fresh(asked, value)


def _time_fault(asked: Round, state: State, now_ms: int) -> Refused | None:
    """Time goes forward only, at the pace of the own clock: neither ahead of it nor far behind.

    Not behind, because a collector that held t back could later run through many timestamps at
    once, and learn epsilon about one moment from every w of them.
    """
    terms = state.terms
    now = terms.timestamp_at(now_ms)
    if asked.t > terms.timestamp_at(now_ms + terms.slack_ms):
        return Refused(Problem.ROUND_AHEAD, round=asked.name, t=asked.t, now=now)
    if asked.t < max(now - 1, state.last_t):
        here = max(now, state.last_t)
        return Refused(Problem.ROUND_PAST, round=asked.name, t=asked.t, now=here)
    return None


def selects(secret: bytes, asked: Round) -> bool:
    """The device's coin for this round: the same whenever it is asked, and kept to itself.

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
