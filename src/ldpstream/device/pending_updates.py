"""Follow-ups to a notice: the device fetches a successor of its terms, and renews its key.

Updates are run after a report has left, never before. A fault costs nothing: they are tried again
later, ever more rarely. So a collector that lies in its notices causes neither a flood of requests
nor silence.
"""

from __future__ import annotations

from ldpstream.device.account import Account
from ldpstream.device.answers import read_keys, read_object, refusal_in
from ldpstream.device.exchange import (
    LARGEST_ANSWER,
    Address,
    Conversation,
    Request,
    Response,
    Stop,
    Unreachable,
)
from ldpstream.device.store import LedgerUnusable
from ldpstream.errors import Problem
from ldpstream.protocol.answers import Refused
from ldpstream.protocol.messages import FetchTerms, RenewKey
from ldpstream.protocol.notice import Notice
from ldpstream.protocol.succession import Acceptance
from ldpstream.protocol.terms import Terms, TermsRefused

PATIENCE = 5.0
"""Seconds for the request of an update, on which no report may have to wait for long."""
MOST_DECLINED = 16
"""How many pins that were declined are remembered: a collector may name any number."""


class PendingUpdates:
    """What the notices of one stream have asked for and is still to be done."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._clock = account.wallet.clock
        self._named: str | None = None
        self._renew = False
        self._declined: list[str] = []
        self._attempts = 0
        self._not_before_ms = 0

    def hear(self, notice: Notice) -> None:
        """Remember what the answer to a report asks for."""
        self._renew, self._named = notice.renew, notice.successor
        if not self._renew and self._named is None:
            # When the next attempt may be stays: notices that come and go must cause no flood.
            self._attempts = 0

    @property
    def _wanted(self) -> str | None:
        """The pin of the successor that is to be fetched, if there is one that may be accepted."""
        enrolled, pin = self._account.enrolment, self._named
        if pin is None or enrolled is None or pin in self._declined:
            return None
        willing = enrolled.policy.accept is not Acceptance.NEVER or pin in enrolled.policy.pins
        pending = enrolled.successor is not None and not self._account.went_over
        known = pin in {one.pin for one in enrolled.all_terms}
        return pin if willing and not pending and not known else None

    @property
    def due(self) -> bool:
        """Whether there is something to do, now."""
        asked = self._renew or self._wanted is not None
        return asked and self._clock.steady_ms() >= self._not_before_ms

    def run(self, stop: Stop) -> Conversation[None]:
        """Do what is due; a fault is counted, and leaves it for later."""
        if not self.due or self._account.enrolment is None:
            return
        terms = self._account.enrolled.terms
        wait_ms = min(terms.interval_ms << min(self._attempts, 30), terms.promise.span)
        self._not_before_ms = self._clock.steady_ms() + wait_ms
        self._attempts += 1
        try:
            # A key that was renewed must prove good first, or that of before would be lost.
            if self._renew and self._account.enrolled.other_keys is None:
                yield from self._renew_key(stop)
            if (pin := self._wanted) is not None:
                yield from self._fetch(pin, stop)
        except (Unreachable, Refused, TermsRefused, LedgerUnusable) as fault:
            self._account.note(fault)

    def _renew_key(self, stop: Stop) -> Conversation[None]:
        enrolled = self._account.enrolled
        address = Address.of(enrolled.url)
        message = self._account.renewal(address.place)
        answer = yield from self._ask(message, "the renewal of a key", stop)
        key, slot_key = read_keys(read_object(answer, "key", LARGEST_ANSWER), enrolled.number)
        self._account.renew(enrolled, key, slot_key)
        self._renew = False

    def _fetch(self, pin: str, stop: Stop) -> Conversation[None]:
        self._named = None  # the next notice names it again
        message = self._account.question_for(pin)
        answer = yield from self._ask(message, "the successor of its terms", stop)
        sent = read_object(answer, "terms", LARGEST_ANSWER)
        terms = Terms.read(sent.get("terms", sent))
        if terms.pin != pin:  # a wrong answer says nothing of the terms
            raise Refused(Problem.SUCCESSOR_REFUSED, pin=pin, what="they have another pin")
        if (fault := self._account.accept(terms)) is not None:
            self._declined = [*self._declined, pin][-MOST_DECLINED:]
            raise Refused(Problem.SUCCESSOR_REFUSED, pin=pin, what=fault)

    @staticmethod
    def _ask(message: FetchTerms | RenewKey, what: str, stop: Stop) -> Conversation[Response]:
        response = yield Request.of(message, PATIENCE, stop)
        assert response is not None
        if response.status not in (200, 201):
            raise refusal_in(response, what)
        return response
