"""Planted bugs of values: old ones that are repeated, and leaks of a value beside the report."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from unittest.mock import patch

from ldpstream.audit import drills
from ldpstream.audit.planted.bug import Bug
from ldpstream.device import rules
from ldpstream.device.account import Account, CommittedReport, Outcome, Reading
from ldpstream.device.exchange import Conversation, Pause
from ldpstream.device.session import PollResult, Session
from ldpstream.device.values import HeldValue
from ldpstream.privacy.randomness import Source
from ldpstream.protocol.answers import Refused, Round
from ldpstream.protocol.limits import MAC_BYTES
from ldpstream.protocol.messages import HttpForm, SubmitReport
from ldpstream.protocol.terms import Terms, Value


def _last_known() -> AbstractContextManager[object]:
    honest = HeldValue.place

    def place(self: HeldValue, terms: Terms, source: Source) -> int:
        read = self._read
        value = read()
        self._read = lambda: vars(self).get("_known", 0) if value is None else value
        try:
            vars(self)["_known"] = honest(self, terms, source)
        finally:
            self._read = read
        return int(vars(self)["_known"])

    return patch.object(HeldValue, "place", place)


def _silent() -> AbstractContextManager[object]:
    def place(self: HeldValue, terms: Terms, source: Source) -> int:
        value = self._read()
        return source.below(len(terms.values)) if value is None else terms.place(value)

    return patch.object(HeldValue, "place", place)


# --- What tells of a value beside the report ------------------------------------------------------


def _coin_of_the_value() -> AbstractContextManager[object]:
    honest, selects = Account.consider, rules.selects

    def consider(self: Account, pin: str, asked: Round | Refused, reading: Reading) -> Outcome:
        place = bytes([reading(self.enrolled.terms, self._source)])
        with patch.object(rules, "selects", lambda secret, one: selects(secret + place, one)):
            return honest(self, pin, asked, reading)

    return patch.object(Account, "consider", consider)


def _submitting(
    changed: Callable[[SubmitReport, Value | None], SubmitReport],
) -> AbstractContextManager[object]:
    honest = Session.consider

    def consider(self: Session, pin: str, asked: Round | Refused) -> Outcome:
        outcome = honest(self, pin, asked)
        if not isinstance(outcome, CommittedReport):
            return outcome
        return replace(outcome, message=changed(outcome.message, self.value._read()))

    return patch.object(Session, "consider", consider)


def _code_of_the_value() -> AbstractContextManager[object]:
    def changed(message: SubmitReport, value: Value | None) -> SubmitReport:
        mixed = hmac.digest(message.mac, repr(value).encode(), "sha256")
        return replace(message, mac=mixed[:MAC_BYTES])

    return _submitting(changed)


@dataclass(frozen=True)
class Talkative(SubmitReport):
    """A message that reveals the value in a header."""

    held: str = ""

    @property
    def http(self) -> HttpForm:
        form = super().http
        return replace(form, headers={**form.headers, "Ldp-Debug": self.held})


def _header_of_the_value() -> AbstractContextManager[object]:
    return _submitting(lambda message, value: Talkative(**vars(message), held=repr(value)))


def _pause_of_the_value() -> AbstractContextManager[object]:
    honest = Session._deliver

    def deliver(
        self: Session, submission: CommittedReport, heard: PollResult, end_ms: float
    ) -> Conversation[None]:
        if self.value._read():
            yield Pause(0.01)
        yield from honest(self, submission, heard, end_ms)

    return patch.object(Session, "_deliver", deliver)


VALUES = (
    Bug(
        "the last known value",
        "a value that is not known any more is reported again and again",
        on_device=_last_known,
        drill=drills.value_gets_unknown,
    ),
    Bug(
        "silence about a value",
        "a value that the stream does not have ends the run",
        on_device=_silent,
        drill=drills.unusable_value,
    ),
    Bug(
        "a coin of the value",
        "whether a device answers a round is a function of its value too",
        on_device=_coin_of_the_value,
        drill=drills.twins_seen_from_outside,
    ),
    Bug(
        "a code of the value",
        "the value is mixed into the code that signs a report",
        on_device=_code_of_the_value,
        drill=drills.twins_seen_from_outside,
    ),
    Bug(
        "a header of the value",
        "the value leaves in a header beside the report",
        on_device=_header_of_the_value,
        drill=drills.twins_seen_from_outside,
    ),
    Bug(
        "a pause of the value",
        "a device waits for 10 ms before it sends a report of one of two values",
        on_device=_pause_of_the_value,
        drill=drills.twins_seen_from_outside,
    ),
)
