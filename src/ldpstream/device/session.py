"""What a device says to a collector, as conversations: enrol, listen, answer, try again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from ldpstream.device.account import Account, Reading, Submission
from ldpstream.device.answers import read_key, read_object, refusal_in, retry_after
from ldpstream.device.backoff import Jitter, pause_after, system_jitter
from ldpstream.device.clock import Clock, SystemClock, offset_at_enrolment
from ldpstream.device.exchange import Conversation, Pause, Request, Response, Unreachable
from ldpstream.device.rounds import Announcement, Refused, Round
from ldpstream.device.rules import Silence
from ldpstream.device.store import Enrolment, LedgerUnusable, Store
from ldpstream.device.terms import (
    LATEST_MS,
    Terms,
    TermsRefused,
    Value,
    is_stream_name,
    shown,
    whole,
)
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.privacy.randomness import Source, SystemSource

LONGEST_WAIT = 30
"""Seconds that a collector holds a question for rounds back until there is news."""
ENROLMENT_TRIES = 6
FIRST_PAUSE = 1.0


@dataclass(frozen=True)
class Heard:
    """What came of one announcement."""

    serial: int
    delivered: list[Round] = field(default_factory=list)
    undelivered: list[LdpStreamError] = field(default_factory=list)
    """Of reports that are not known to have arrived. Their debit stands."""
    refusals: list[Refused] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)


class Session:
    """A device without its network: `Device` and `AsyncDevice` carry out its conversations."""

    def __init__(
        self,
        store: Store,
        clock: Clock | None = None,
        source: Source | None = None,
        jitter: Jitter = system_jitter,
    ) -> None:
        self._clock = clock or SystemClock()
        self._jitter = jitter
        self._reading: Reading = _nothing
        self._serial = 0
        self._sent_ms = 0
        """When the last request that was insisted on left, by the wall clock."""
        self.account = Account(store, self._clock, source or SystemSource())

    def observe(self, value: Value | None) -> None:
        """From now on the device holds this value, or none."""
        place = None if value is None else self.account.enrolled.terms.place(value)
        self._reading = lambda _: place

    def follow(self, value_at: Callable[[int], Value | None]) -> None:
        """From now on ask `value_at` for the value at each timestamp."""

        def reading(t: int) -> int | None:
            value = value_at(t)
            return None if value is None else self.account.enrolled.terms.place(value)

        self._reading = reading

    def enrol(
        self, stream: str, url: str, token: str, pin: str | None, first_install: bool
    ) -> Conversation[Terms]:
        """Agree on a stream's terms, once; later only the address and the key may change.

        The token is empty where the stream lets anyone enrol.
        """
        if not is_stream_name(stream):
            expected = "a stream's name: letters, digits, '.', '_' and '-'"
            raise Mistake(
                Problem.OPTION, option="the stream", given=shown(stream), expected=expected
            )
        if not (token.isascii() and token.isprintable()):
            # Not shown: it is a secret, if a broken one.
            raise Mistake(
                Problem.OPTION, option="the token", given="unprintable", expected="plain ASCII"
            )
        authorised = {"Authorization": f"Bearer {token}"} if token else {}
        response = yield from self._insist(
            Request(
                "POST",
                f"/v1/streams/{stream}/devices",
                authorised | {"Content-Type": "application/json"},
                json.dumps({"device": self.account.number.hex(), "version": 2}).encode(),
            ),
            give_up=lambda failures, pause: failures == ENROLMENT_TRIES,
        )
        received_ms = self._clock.wall_ms()
        if response.status not in (200, 201):
            raise refusal_in(response, "the enrolment")
        answer = read_object(response, "enrolment")
        terms = Terms.read(answer.get("terms"))
        for wanted in (answer.get("pin"), pin):
            if wanted is not None and wanted != terms.pin:
                raise TermsRefused(
                    Problem.TERMS_DIFFER, given=terms.pin, expected=shown(wanted).strip("'")
                )
        if terms.stream != stream:
            what = f"they are of the stream {terms.stream}"
            raise TermsRefused(Problem.TERMS_MALFORMED, what=what)
        offset_ms = 0
        if whole(answer.get("now_ms"), 0, LATEST_MS):
            offset_ms = offset_at_enrolment(answer["now_ms"], self._sent_ms, received_ms)
        selection = "open" if answer.get("selection") == "open" else "roster"
        self.account.enrol(
            Enrolment(url, terms, read_key(answer.get("key")), selection, offset_ms, received_ms),
            first_install,
        )
        return terms

    def poll(self, wait: int = LONGEST_WAIT) -> Conversation[Heard]:
        """Ask for rounds, waiting up to so many seconds for news, and answer them."""
        enrolment = self.account.enrolled
        # Where everyone is asked alike, who listens is nobody's business.
        anonymous = enrolment.selection == "open"
        response = yield from _ask(
            Request(
                "GET",
                f"/v1/streams/{enrolment.terms.stream}/rounds?after={self._serial}&wait={wait}",
                {} if anonymous else {"Ldp-Device": self.account.number.hex()},
                patience=wait + 10.0,
            )
        )
        if response.status != 200:
            if 400 <= response.status < 500 and response.status != 429:
                self._serial = 0  # it may be what the collector does not take
            raise refusal_in(response, "to list rounds")
        announcement = Announcement.read(read_object(response, "rounds"))
        heard = yield from self.answer(announcement)
        # Not before: what a fault of the disk left unanswered must be announced again.
        self._serial = announcement.serial
        return heard

    def answer(self, announcement: Announcement) -> Conversation[Heard]:
        """Answer the rounds of an announcement, as far as the rules allow."""
        heard = Heard(announcement.serial)
        for asked in announcement.rounds:
            match self.consider(announcement.pin, asked):
                case Submission() as submission:
                    yield from self._deliver(submission, heard)
                case Silence() as silence:
                    heard.silences.append(silence)
                case Refused() as refusal:
                    heard.refusals.append(refusal)
        return heard

    def consider(self, pin: str, asked: Round | Refused) -> Submission | Silence | Refused:
        """What this device has to send for a round; a gateway may do the sending."""
        return self.account.consider(pin, asked, self._reading)

    def run(
        self,
        stop: Callable[[], bool] = lambda: False,
        wait: int = LONGEST_WAIT,
        tell: Callable[[Heard], None] = lambda heard: None,
    ) -> Conversation[None]:
        """Poll until told to stop; go on after every fault, with growing pauses."""
        failures = 0
        while not stop():
            asked_ms, before = self._clock.steady_ms(), self._serial
            try:
                heard = yield from self.poll(wait)
            except (Unreachable, Refused, LedgerUnusable) as fault:
                self.account.note(fault)
                failures += 1
                at_least = fault.facts.get("retry_after")
                yield self._pause(failures, at_least if isinstance(at_least, float) else 0.0)
                continue
            failures = 0
            tell(heard)
            if heard.serial == before and self._clock.steady_ms() - asked_ms < 1000:
                # A collector that does not hold the question back must not be asked in a frenzy.
                yield self._pause(1, FIRST_PAUSE)

    def _deliver(self, submission: Submission, heard: Heard) -> Conversation[None]:
        """Send a report until it arrives, is refused, or its round is over."""
        asked = submission.round
        request = Request(
            "POST",
            submission.path,
            {
                "Content-Type": "application/octet-stream",
                "Ldp-Device": self.account.number.hex(),
                "Ldp-Mac": submission.mac.hex(),
            },
            submission.report,
        )

        def round_is_over(failures: int, pause: float) -> bool:
            return self.account.now_ms() + 1000 * pause >= asked.deadline_ms

        try:
            response = yield from self._insist(request, round_is_over)
            if response.status not in (200, 202):
                raise refusal_in(response, f"the report of round {asked.name}")
        except (Unreachable, Refused) as fault:
            heard.undelivered.append(self.account.note(fault))
        else:
            self.account.arrived(asked)
            heard.delivered.append(asked)

    def _insist(
        self, request: Request, give_up: Callable[[int, float], bool]
    ) -> Conversation[Response]:
        """Send the same request until there is an answer other than "later"."""
        for failures in count(1):
            fault: LdpStreamError
            self._sent_ms = self._clock.wall_ms()
            try:
                response = yield from _ask(request)
            except Unreachable as lost:
                fault, at_least = lost, 0.0
            else:
                if response.status != 429 and response.status < 500:
                    return response
                fault = refusal_in(response, f"{request.method} {request.path}")
                at_least = retry_after(response)
            pause = self._pause(failures, at_least)
            if give_up(failures, pause.seconds):
                raise fault
            yield pause
        raise AssertionError("counting has no end")

    def _pause(self, failures: int, at_least: float) -> Pause:
        """Of a tenth of a timestamp at first, so that there is time to try again within it."""
        first = FIRST_PAUSE
        if self.account.enrolment is not None:
            first = min(first, self.account.enrolment.terms.interval_ms / 10_000)
        return Pause(pause_after(failures, first, at_least, self._jitter))


def _nothing(t: int) -> None:
    """The reading of a device that holds no value."""


def _ask(request: Request) -> Conversation[Response]:
    response = yield request
    assert response is not None
    return response
