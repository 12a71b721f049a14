"""The answers that spell more than a notice: announcements of rounds, and counts of a batch.

A collector writes them. Whoever reads them trusts nothing: what is malformed is `Refused`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldpstream.errors import LdpStreamError, Problem
from ldpstream.privacy.epsilon import LARGEST_NANO
from ldpstream.protocol.limits import LARGEST_SERIAL, LATEST_MS, MOST_ROUNDS
from ldpstream.protocol.names import is_round_name, shown, whole
from ldpstream.protocol.notice import Notice
from ldpstream.protocol.strata import round_name
from ldpstream.protocol.terms import Terms

_CODE = re.compile(r"[a-z][a-z0-9-]{0,63}")


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

    @property
    def coin_message(self) -> bytes:
        """The message whose HMAC under a device's own secret decides whether it is selected."""
        return f"ldpstream coin 1\n{self.t}\n{self.name}".encode()

    @classmethod
    def of_slot(cls, terms: Terms, t: int) -> Round:
        """Return the round of a timestamp with slots, which follows from the terms."""
        name = round_name(t, terms.suffix)
        return cls(name, t, terms.epsilon_nano, terms.deadline_of(t), (1, 1))

    @classmethod
    def read(cls, sent: object) -> Round:
        """Validate one round of an announcement and return it.

        >>> sent = Round("2-publication", 2, 10**9, 80_000, (1, 20)).to_json("publication")
        >>> Round.read(sent).rate
        (1, 20)
        """
        if not isinstance(sent, dict):
            raise Refused(Problem.ROUND_MALFORMED, field="form", given=shown(sent))
        checks = {
            "round": is_round_name(sent.get("round")),
            "t": whole(sent.get("t"), 1, LATEST_MS),
            "epsilon_nano": whole(sent.get("epsilon_nano"), 1, LARGEST_NANO),
            "deadline_ms": whole(sent.get("deadline_ms"), 0, LATEST_MS),
            "rate": _is_share(sent.get("rate")),
        }
        for field, holds in checks.items():
            if not holds:
                raise Refused(
                    Problem.ROUND_MALFORMED, field=field, given=shown(sent.get(field, "missing"))
                )
        share = (sent["rate"][0], sent["rate"][1])
        return cls(sent["round"], sent["t"], sent["epsilon_nano"], sent["deadline_ms"], share)

    def to_json(self, purpose: str) -> dict[str, Any]:
        """Return the form that is announced, with what the reports are for."""
        return {
            "round": self.name,
            "t": self.t,
            "epsilon_nano": self.epsilon_nano,
            "purpose": purpose,
            "deadline_ms": self.deadline_ms,
            "rate": list(self.rate),
        }


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
            and serial_in(sent) is not None
            and isinstance(sent.get("pin"), str)
            and isinstance(sent.get("rounds"), list)
            and len(sent["rounds"]) <= MOST_ROUNDS
        ):
            raise Refused(Problem.ANSWER_MALFORMED, what="rounds", given=shown(sent))
        rounds = tuple(map(_round_or_refusal, sent["rounds"]))
        return cls(sent["serial"], sent["pin"], rounds, Notice.read(sent).now_ms)


def _round_or_refusal(sent: object) -> Round | Refused:
    """Return a round, or why it is refused: one bad round must not spoil the others."""
    try:
        return Round.read(sent)
    except Refused as refusal:
        return refusal


def announced(
    notice: Notice, serial: int, pin: str, t: int, rounds: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the form of an announcement, which is a notice too, with rounds in their form."""
    return {**notice.to_json(), "serial": serial, "pin": pin, "t": t, "rounds": rounds}


def serial_in(sent: object) -> int | None:
    """Return the serial of an announcement; None if it is malformed."""
    serial = sent.get("serial") if isinstance(sent, dict) else None
    return serial if whole(serial, 0, LARGEST_SERIAL) else None


@dataclass(frozen=True)
class BatchAnswer:
    """What became of the records of a batch."""

    accepted: int
    repeated: int
    refused: dict[str, int]
    """How many were refused, by the code of the reason."""

    @classmethod
    def read(cls, sent: dict[str, Any], records: int) -> BatchAnswer:
        """Validate the answer to a batch of so many records; a malformed reason is left out.

        >>> BatchAnswer.read({"accepted": 2, "repeated": 0, "refused": {"report-mac": 1}}, 3)
        BatchAnswer(accepted=2, repeated=0, refused={'report-mac': 1})
        """
        accepted, repeated, refused = map(sent.get, ("accepted", "repeated", "refused"))
        if not (whole(accepted, 0, records) and whole(repeated, 0, records - accepted)):
            raise Refused(Problem.ANSWER_MALFORMED, what="batch", given=shown(sent))
        told = refused.items() if isinstance(refused, dict) else ()
        counts = {code: n for code, n in told if _CODE.fullmatch(code) and whole(n, 0, records)}
        return cls(accepted, repeated, counts)
