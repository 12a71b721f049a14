"""Parsing of a collector's announcements, which are not trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ldpstream.errors import LdpStreamError, Problem
from ldpstream.privacy.epsilon import LARGEST_NANO
from ldpstream.protocol.limits import LARGEST_SERIAL, LATEST_MS, MOST_ROUNDS
from ldpstream.protocol.names import is_round_name, shown, whole
from ldpstream.protocol.strata import round_name
from ldpstream.protocol.terms import Terms


class Refused(LdpStreamError):
    """A device refused something that the collector asked for, and sent nothing.

    >>> print(Refused(Problem.ROUND_MALFORMED, field="rate", given="[3, 2]"))
    a round's rate is [3, 2]; the collector must follow docs/protocol.md
    """


@dataclass(frozen=True)
class Round:
    """A request for reports at t, with this epsilon, from a share `rate` of the devices."""

    name: str
    t: int
    epsilon_nano: int
    deadline_ms: int
    rate: tuple[int, int]

    @property
    def key(self) -> tuple[int, str]:
        """The identity of the round: several rounds of one timestamp differ in their names."""
        return self.t, self.name

    @classmethod
    def of_slot(cls, terms: Terms, t: int) -> Round:
        """Return the round of a timestamp with slots, which follows from the terms."""
        name = round_name(t, terms.suffix)
        return cls(name, t, terms.epsilon_nano, terms.deadline_of(t), (1, 1))

    @classmethod
    def read(cls, sent: object) -> Round:
        """Validate one round of an announcement and return it.

        >>> Round.read({"round": "2-publication", "t": 2, "epsilon_nano": 10**9,
        ...     "purpose": "publication", "deadline_ms": 80000, "rate": [1, 20]}).rate
        (1, 20)
        """
        if not isinstance(sent, dict):
            raise Refused(Problem.ROUND_MALFORMED, field="form", given=shown(sent))
        rate = sent.get("rate")
        checks = {
            "round": is_round_name(sent.get("round")),
            "t": whole(sent.get("t"), 1, LATEST_MS),
            "epsilon_nano": whole(sent.get("epsilon_nano"), 1, LARGEST_NANO),
            "deadline_ms": whole(sent.get("deadline_ms"), 0, LATEST_MS),
            "rate": _is_share(rate),
        }
        for field, holds in checks.items():
            if not holds:
                raise Refused(
                    Problem.ROUND_MALFORMED, field=field, given=shown(sent.get(field, "missing"))
                )
        share = (sent["rate"][0], sent["rate"][1])
        return cls(sent["round"], sent["t"], sent["epsilon_nano"], sent["deadline_ms"], share)


def _is_share(rate: object) -> bool:
    return (
        isinstance(rate, list)
        and len(rate) == 2
        and whole(rate[1], 1, 1 << 63)
        and whole(rate[0], 0, rate[1])
    )


@dataclass(frozen=True)
class Announcement:
    """The rounds that are open now, and the time by the collector's clock, if it gives one.

    The time determines the current timestamp. No budget depends on it.
    """

    serial: int
    pin: str
    rounds: tuple[Round | Refused, ...]
    now_ms: int | None = None

    @classmethod
    def read(cls, sent: Any) -> Announcement:
        if not (
            isinstance(sent, dict)
            and whole(sent.get("serial"), 0, LARGEST_SERIAL)
            and isinstance(sent.get("pin"), str)
            and isinstance(sent.get("rounds"), list)
            and len(sent["rounds"]) <= MOST_ROUNDS
        ):
            raise Refused(Problem.ANSWER_MALFORMED, what="rounds", given=shown(sent))
        rounds = tuple(map(_round_or_refusal, sent["rounds"]))
        now_ms = sent["now_ms"] if whole(sent.get("now_ms"), 0, LATEST_MS) else None
        return cls(sent["serial"], sent["pin"], rounds, now_ms)


def _round_or_refusal(sent: object) -> Round | Refused:
    """Return a round, or why it is refused: one bad round must not spoil the others."""
    try:
        return Round.read(sent)
    except Refused as refusal:
        return refusal
