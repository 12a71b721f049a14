"""A device's conversations with a collector: enrol, poll for rounds, answer, retry with backoff."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from ldpstream.device.account import Account, Outcome, Submission
from ldpstream.device.answers import read_key, read_object, refusal_in, retry_after
from ldpstream.device.backoff import Jitter, pause_after, system_jitter
from ldpstream.device.exchange import (
    LARGEST_ANSWER,
    PATIENCE,
    Conversation,
    Pause,
    Request,
    Response,
    Stop,
    Unreachable,
    never,
)
from ldpstream.device.rounds import Announcement, Refused, Round
from ldpstream.device.rules import Silence, TooEarly
from ldpstream.device.store import Enrolment, LedgerUnusable, Store
from ldpstream.device.values import HeldValue, Warn, log_warning
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.privacy.randomness import Source, SystemSource
from ldpstream.protocol.limits import LATEST_MS, LONGEST_WAIT
from ldpstream.protocol.messages import Enrol, ListRounds
from ldpstream.protocol.names import STREAM_NAME, is_stream_name, shown, whole
from ldpstream.protocol.terms import Terms, TermsRefused

ENROLMENT_TRIES = 6
LONGEST_ENROLMENT_PAUSE = 60.0
"""Seconds; if the collector asks for a longer pause, the enrolment fails and says so."""
FIRST_PAUSE = 1.0


@dataclass(frozen=True)
class Heard:
    """The outcome of one announcement."""

    serial: int
    delivered: list[Round] = field(default_factory=list)
    undelivered: list[LdpStreamError] = field(default_factory=list)
    """The faults of reports that are not known to have arrived. Their debits stand."""
    refusals: list[Refused] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)


class Session:
    """A device without a network: `Device` and `AsyncDevice` carry out its conversations."""

    def __init__(
        self,
        store: Store,
        source: Source | None = None,
        jitter: Jitter = system_jitter,
        warn: Warn = log_warning,
    ) -> None:
        self._clock = store.clock
        self._jitter = jitter
        self._serial = 0
        self._named = False
        self._stop: Stop = never
        self.value = HeldValue(warn)
        self.account = Account(store, source or SystemSource())

    def enrol(self, stream: str, url: str, token: str, pin: str | None) -> Conversation[Terms]:
        """Agree on a stream's terms, once; later, only the address and the key can change.

        The token is empty if the stream lets anyone enrol.
        """
        if not is_stream_name(stream):
            expected = f"a stream's name: {STREAM_NAME}"
            raise Mistake(
                Problem.OPTION, option="the stream", given=shown(stream), expected=expected
            )
        if not (token.isascii() and token.isprintable()):
            # The token is not shown: it is a secret, even if malformed.
            raise Mistake(
                Problem.OPTION, option="the token", given="unprintable", expected="plain ASCII"
            )
        number = self.account.number
        response = yield from self._insist(
            Request.of(Enrol(stream, token, number), stop=self._stop),
            give_up=lambda failures, pause: (
                failures == ENROLMENT_TRIES or pause > LONGEST_ENROLMENT_PAUSE
            ),
        )
        if response.status not in (200, 201):
            raise refusal_in(response, "the enrolment")
        answer = read_object(response, "enrolment", LARGEST_ANSWER)
        terms = Terms.read(answer.get("terms"))
        for wanted in (answer.get("pin"), pin):
            if wanted is not None and wanted != terms.pin:
                raise TermsRefused(
                    Problem.TERMS_DIFFER, given=terms.pin, expected=shown(wanted).strip("'")
                )
        if terms.stream != stream:
            what = f"they are of the stream {terms.stream}"
            raise TermsRefused(Problem.TERMS_MALFORMED, what=what)
        if whole(answer.get("now_ms"), 0, LATEST_MS):
            self.account.label.correct(answer["now_ms"])
        selection = "open" if answer.get("selection") == "open" else "roster"
        key = read_key(answer.get("key"))
        self.account.enrol(number, Enrolment(url, terms, key, selection, self._clock.wall_ms()))
        return terms

    def poll(self, wait: int = LONGEST_WAIT) -> Conversation[Heard]:
        """Ask for rounds, waiting up to so many seconds for news, and answer them."""
        response = yield from self._list_rounds(wait)
        if response.status == 404 and not self._identifies:
            self._named = True  # the stream may be a private one
            response = yield from self._list_rounds(wait)
        if response.status != 200:
            if 400 <= response.status < 500 and response.status != 429:
                self._serial = 0  # perhaps the collector refused the serial
            raise refusal_in(response, "to list rounds")
        announcement = Announcement.read(read_object(response, "rounds"))
        self.hear(announcement)
        heard = yield from self.answer(announcement)
        # Only now: rounds that a fault of the disk left unanswered must be announced again. So must
        # those that were open when the device was stopped.
        if not self._stop():
            self._serial = announcement.serial
        self.account.mark_time()
        return heard

    @property
    def _identifies(self) -> bool:
        """Whether this device tells its number when it listens.

        With open selection everyone is asked alike, and who listens is nobody's business, unless
        the stream is private: then it is unknown to whoever does not prove to take part.
        """
        return self._named or self.account.enrolled.selection == "roster"

    def _list_rounds(self, wait: int) -> Conversation[Response]:
        proof = self.account.proof(self._serial) if self._identifies else None
        message = ListRounds(self.account.enrolled.terms.stream, self._serial, wait, proof)
        response = yield from _ask(Request.of(message, wait + PATIENCE, self._stop))
        return response

    def hear(self, announcement: Announcement, heard_steady_ms: int | None = None) -> None:
        """Set label time by an announcement, heard now or at this reading of the steady clock."""
        if announcement.now_ms is not None:
            self.account.label.correct(announcement.now_ms, heard_steady_ms)

    def answer(self, announcement: Announcement) -> Conversation[Heard]:
        """Answer the rounds of an announcement, as far as the rules allow.

        Rounds for which it is too early are retried after the others.
        """
        heard = Heard(announcement.serial)
        pending: Sequence[Round | Refused] = announcement.rounds
        while pending and not self._stop():
            early: list[TooEarly] = []
            for asked in pending:
                if self._stop():
                    break
                match self.consider(announcement.pin, asked):
                    case Submission() as submission:
                        yield from self._deliver(submission, heard)
                    case TooEarly() as waiting:
                        early.append(waiting)
                    case Silence() as silence:
                        heard.silences.append(silence)
                    case Refused() as refusal:
                        heard.refusals.append(refusal)
            if early:
                yield Pause(min(one.wait_ms for one in early) / 1000, self._stop)
            pending = [one.asked for one in early]
        return heard

    def consider(self, pin: str, asked: Round | Refused) -> Outcome:
        """Decide what this device sends for a round; a gateway may do the sending."""
        outcome = self.account.consider(pin, asked, self.value.place)
        self.value.tell()
        return outcome

    def run(
        self,
        stop: Stop = never,
        wait: int = LONGEST_WAIT,
        tell: Callable[[Heard], None] = lambda heard: None,
    ) -> Conversation[None]:
        """Poll until `stop()` returns true; after every fault, retry with backoff."""
        self._stop = stop
        try:
            yield from self._run(wait, tell)
        finally:
            self._stop = never

    def _run(self, wait: int, tell: Callable[[Heard], None]) -> Conversation[None]:
        failures = 0
        while not self._stop():
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
                # Do not flood a collector that answers long polls at once.
                yield self._pause(1, FIRST_PAUSE)

    def _deliver(self, submission: Submission, heard: Heard) -> Conversation[None]:
        """Send a report until it arrives, is refused, or its round or its timestamp is over."""
        asked = submission.round
        terms = self.account.enrolled.terms
        over_ms = min(asked.deadline_ms, terms.end_of(asked.t)) - self.account.label.now_ms()
        left = max(0, min(over_ms, terms.interval_ms)) / 1000  # at most one interval
        give_up_ms = self._clock.steady_ms() + 1000 * left
        patience = min(PATIENCE, max(left, FIRST_PAUSE))
        request = Request.of(submission.message, patience, self._stop)

        def is_over(failures: int, pause: float) -> bool:
            return self._clock.steady_ms() + 1000 * pause >= give_up_ms

        try:
            response = yield from self._insist(request, is_over)
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
        """Retry a request with backoff until the answer is neither 429 nor 5xx, or `give_up`."""
        for failures in count(1):
            fault: LdpStreamError
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
            if self._stop() or give_up(failures, pause.seconds):
                raise fault
            yield pause
        raise AssertionError("counting has no end")

    def _pause(self, failures: int, at_least: float) -> Pause:
        """Return a pause, at first of at most a tenth of an interval, to leave time for retries."""
        first = FIRST_PAUSE
        if self.account.enrolment is not None:
            first = min(first, self.account.enrolment.terms.interval_ms / 10_000)
        return Pause(pause_after(failures, first, at_least, self._jitter), self._stop)


def _ask(request: Request) -> Conversation[Response]:
    response = yield request
    assert response is not None
    return response
