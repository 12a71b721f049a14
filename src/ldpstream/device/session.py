"""A device's conversations with a collector: enrol, report, retry with backoff, leave.

A device of a stream with slots reports unasked, by its own clock. Others poll for rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from ldpstream.device.account import Account, CommittedReport, Outcome, Turn
from ldpstream.device.answers import notice_in, read_keys, read_object, refusal_in, retry_after
from ldpstream.device.backoff import Jitter, pause_after, system_jitter
from ldpstream.device.exchange import (
    LARGEST_ANSWER,
    LONGEST_NAP,
    PATIENCE,
    Address,
    Connect,
    Conversation,
    Pause,
    Request,
    Response,
    Stop,
    Unreachable,
    never,
)
from ldpstream.device.halt_state import HaltState
from ldpstream.device.memory import StoredEnrolment
from ldpstream.device.pending_updates import PendingUpdates
from ldpstream.device.rules import SilenceReason, TooEarly
from ldpstream.device.store import DeviceStore, LedgerUnusable
from ldpstream.device.values import HeldValue, Warn, log_warning
from ldpstream.device.wallet import Amount, Wallet
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import Source, SystemSource
from ldpstream.protocol.answers import Announcement, Refused, Round
from ldpstream.protocol.identity import number_of
from ldpstream.protocol.limits import LONGEST_WAIT
from ldpstream.protocol.messages import Enrol, ListRounds, SubmitReport
from ldpstream.protocol.names import STREAM_NAME, is_stream_name, shown
from ldpstream.protocol.notice import Notice
from ldpstream.protocol.strata import is_level_name
from ldpstream.protocol.succession import Policy
from ldpstream.protocol.terms import SelectionMethod, Terms, TermsRefused

ENROLMENT_TRIES = 6
FAREWELLS = 3
"""How often a device that leaves tries to tell the collector."""
MOST_SPANS = 2
"""The next turn is no more than two windows away, once the budget is free."""
LONGEST_ENROLMENT_PAUSE = 60.0
"""Seconds; if the collector asks for a longer pause, the enrolment fails and says so."""
FIRST_PAUSE = 1.0
LEAST_PAUSE = 0.05
UPDATES_MS = 15_000
"""Updates are run if the next turn is further away than they can take, or than half a window."""
TRY_AGAIN = (425, 429)
"""Too early for this collector's clock, or too many requests."""
UNAUTHORIZED = 401
"""A MAC that the collector does not take."""


@dataclass(frozen=True)
class PollResult:
    """The outcome of one announcement or, with slots, of one turn.

    >>> PollResult().delivered
    []
    """

    serial: int = 0
    delivered: list[Round] = field(default_factory=list)
    undelivered: list[LdpStreamError] = field(default_factory=list)
    """The faults of reports that are not known to have arrived. Their debits stand."""
    refusals: list[Refused] = field(default_factory=list)
    silences: list[SilenceReason] = field(default_factory=list)
    put_off: list[Round] = field(default_factory=list)
    """Rounds for which the time of this poll did not suffice: the next one takes them up again."""


class Session:
    """One stream of a device, without a network: `Device` and `AsyncDevice` carry out its part."""

    def __init__(
        self, account: Account, jitter: Jitter = system_jitter, warn: Warn = log_warning
    ) -> None:
        self._clock = account.wallet.clock
        self._jitter = jitter
        self._serial = 0
        self._taken: int | None = None
        """The timestamp in which this process has last taken its turn."""
        self._named = False
        self._stop: Stop = never
        self.value = HeldValue(warn)
        self.account = account
        self.updates = PendingUpdates(account)
        self.halting = HaltState(account)

    @classmethod
    def of(cls, store: DeviceStore, source: Source | None = None) -> Session:
        """Return the session of a file with one stream, or none yet."""
        return cls(Account(Wallet(store, source or SystemSource())))

    def enrol(
        self,
        stream: str,
        url: str,
        token: str,
        pin: str | None,
        plain_http: bool = False,
        *,
        level: str | None = None,
        accept: Policy | None = None,
        reserve: Amount | None = None,
        moved_from: str | None = None,
    ) -> Conversation[Terms]:
        """Agree on a stream's terms, once; later, address, key and level can change.

        The token is empty if the stream lets anyone enrol. Who reads the enrolment can report in
        this device's name, so it needs TLS, unless `plain_http` says that it does not.
        """
        address = Address.of(url)
        _check_names(stream, token, level)
        before = None if moved_from is None else Address.of(moved_from).place
        if not (address.confidential or plain_http):
            raise Mistake(Problem.PLAIN_HTTP, url=url)
        wallet, new_level = self.account.wallet, level is not None
        wallet.refresh()
        level = self._level(address.place, stream, before) if level is None else level
        reserve_nano = None if reserve is None else Epsilon.of(reserve).nano
        shown_once = wallet.enrolment_secret(address.place, stream)
        number = number_of(shown_once)
        response = yield from self._insist(
            Request.of(Enrol(stream, token, shown_once, level), stop=self._stop),
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
                    Problem.PIN_DIFFERS, given=terms.pin, expected=shown(wanted).strip("'")
                )
        if terms.stream != stream:
            what = f"they are of the stream {terms.stream}"
            raise TermsRefused(Problem.TERMS_MALFORMED, what=what)
        known = self.account.enrolment
        if known is not None and known.number != number:
            self.account.label.restart()  # time that another collector told would link two numbers
        if (now_ms := Notice.read(answer).now_ms) is not None:
            self.account.label.correct(now_ms)
        key, slot_key = read_keys(answer, number)
        at_ms, secret = self._clock.wall_ms(), b""  # the wallet knows the secret
        offered = StoredEnrolment(
            url, terms.at_level(level), number, key, slot_key, secret, 0, at_ms
        )
        self.account.bind(
            wallet.enrol(offered, accept, reserve_nano, new_level=new_level, moved_from=before)
        )
        self._begin()
        self.halting.hear(notice_in(response))
        return self.account.enrolled.terms_at(self.account.t)

    def _level(self, place: str, stream: str, before: str | None) -> str:
        """Return the level of privacy that was chosen before, here or where the stream was."""
        wallet = self.account.wallet
        known = wallet.at(place, stream) or (before and wallet.at(before, stream))
        return known.terms.level if known else ""

    def _begin(self) -> None:
        """Forget what was heard under another enrolment: a serial would link two numbers."""
        self._serial, self._named, self._taken = 0, False, None
        self.updates = PendingUpdates(self.account)
        self.halting = HaltState(self.account)

    def moved(self, other: Session) -> None:
        """Go on with the enrolment of another session: the collector has a new address."""
        self.account.label = other.account.label
        self.account.bind(self.account.id)
        self._begin()

    def leave(self) -> Conversation[bool]:
        """Leave the stream, and return whether the collector was told.

        What identifies the device is deleted first, so that nothing is sent any more whatever the
        collector answers. The debits stay.
        """
        farewell = self.account.leave()
        self._begin()
        try:
            response = yield from self._insist(
                Request.of(farewell, stop=self._stop),
                give_up=lambda failures, pause: (
                    failures == FAREWELLS or pause > LONGEST_ENROLMENT_PAUSE
                ),
            )
        except (Unreachable, Refused):
            return False
        return response.status == 200

    def poll(self, wait: int = LONGEST_WAIT, most_ms: float = math.inf) -> Conversation[PollResult]:
        """Ask for rounds, waiting up to so many seconds for news, and answer them.

        With slots: take the device's turn, if it comes within so many seconds. A round for which it
        is too early is waited for, within its timestamp and for at most `most_ms`.
        """
        if self.account.refresh():
            self._begin()
        if self._speaks_unasked:
            turn = self._turn()
            if turn is None or self._wait_ms(turn) > 1000 * wait:
                return PollResult()
            yield Pause(self._wait_ms(turn) / 1000, self._stop)
            heard = yield from self._take(turn, 1000 * wait)
            yield from self.updates.run(self._stop)
            return heard
        if self.halting.rests_ms > 1000 * wait:
            return PollResult(self._serial)
        announcement = yield from self._inquire(wait)
        heard = yield from self.answer(announcement, most_ms)
        # Only now: rounds that a fault of the disk left unanswered must be announced again. So must
        # those that were put off, or open when the device was stopped.
        if not (self._stop() or heard.put_off):
            self._serial = announcement.serial
        self.account.mark_time()
        yield from self.updates.run(self._stop)
        return heard

    def _inquire(self, wait: int) -> Conversation[Announcement]:
        """Ask for the rounds that are open; hear what else the collector has to say."""
        response = yield from self._list_rounds(wait)
        if response.status == 404 and not self._identifies:
            self._named = True  # the stream may be a private one
            response = yield from self._list_rounds(wait)
        if response.status != 200:
            if 400 <= response.status < 500 and response.status != 429:
                self._serial = 0  # perhaps the collector refused the serial
            if response.status == UNAUTHORIZED:
                self.account.doubt_key()
            raise refusal_in(response, "to list rounds")
        announcement = Announcement.read(read_object(response, "rounds"))
        self.hear(announcement)
        told = notice_in(response)
        self.halting.hear(told)
        if told.successor is not None or told.renew:
            self.updates.hear(told)
        return announcement if told.halt is None else replace(announcement, rounds=())

    @property
    def _speaks_unasked(self) -> bool:
        return self.account.enrolled.terms.selection is SelectionMethod.SLOTS

    def due_in(self) -> float:
        """Return the seconds until this device reports next, by what it knows.

        Only a device that reports unasked knows: one that listens may be asked at any time.
        """
        if not self._speaks_unasked:
            return 0.0
        turn = self._turn()
        return math.inf if turn is None else self._wait_ms(turn) / 1000

    def _turn(self) -> Turn | None:
        """Return the next turn; ignore a collector's time that would put it off for long.

        A device that is not asked hears of the right time only when it reports again. Return None,
        and count it, if the limit over all streams never allows a report.
        """
        turn = self.account.turn(self._taken)
        if turn is not None and self._until(turn) > self._plausible_ms(turn):
            self.account.label.restart()
            turn = self.account.turn(self._taken)
        if turn is None:
            terms = self.account.terms
            self.account.note(
                Refused(Problem.LIMIT_SPENT, asked=terms.epsilon_nano, stream=terms.stream)
            )
        return turn

    def _plausible_ms(self, turn: Turn) -> int:
        """Return how far away a turn may be: until own time frees the budget, plus some windows."""
        spans = [terms.promise.span for terms in self.account.enrolled.all_terms]
        return self.account.free_in_ms(turn.round) + MOST_SPANS * max(spans)

    def _until(self, turn: Turn) -> int:
        return max(0, turn.at_ms - self.account.label.now_ms())

    def _wait_ms(self, turn: Turn) -> int:
        """Return how long to wait for a turn; for that of a retired stream, much longer."""
        return max(self._until(turn), self.halting.rests_ms)

    def _take(self, turn: Turn, most_ms: float = math.inf) -> Conversation[PollResult]:
        """Report, now that it is the device's turn: connect first, then read and send.

        Without a connection nothing is drawn, and the turn can be taken later. Nor is anything
        drawn for a stream that takes no reports: whether it does again is asked at each turn.
        """
        if self.halting.halt is not None:
            yield from self._inquire(0)
            if self.halting.halt is not None:
                self._taken = turn.round.t
                return PollResult()
        yield Connect(self._patience(turn.round), self._stop)
        terms = self.account.enrolled.terms_at(turn.round.t)
        heard = yield from self.answer(Announcement(0, terms.pin, (turn.round,)), most_ms)
        again = self._stop() or heard.put_off or self.account.t < turn.round.t  # too early for t
        if not again:
            self._taken = turn.round.t
        self.account.mark_time()
        return heard

    @property
    def _identifies(self) -> bool:
        """Whether this device tells its number when it listens.

        With open selection everyone is asked alike, and who listens is nobody's business, unless
        the stream is private: then it is unknown to whoever does not prove to take part.
        """
        return self._named or self.account.enrolled.terms.selection is not SelectionMethod.OPEN

    def _list_rounds(self, wait: int) -> Conversation[Response]:
        proof = self.account.proof(self._serial) if self._identifies else None
        terms, wait = self.account.terms, min(wait, LONGEST_WAIT)
        message = ListRounds(terms.stream, self._serial, wait, proof, terms.version)
        response = yield from _ask(Request.of(message, wait + PATIENCE, self._stop))
        return response

    def hear(self, announcement: Announcement, heard_steady_ms: int | None = None) -> None:
        """Set label time by an announcement, heard now or at this reading of the steady clock."""
        if announcement.now_ms is not None:
            self.account.label.correct(announcement.now_ms, heard_steady_ms)

    def answer(
        self, announcement: Announcement, most_ms: float = math.inf
    ) -> Conversation[PollResult]:
        """Answer the rounds of an announcement, as far as the rules allow.

        Rounds for which it is too early are retried after the others. After `most_ms`, or what a
        request may take, the others are put off: no collector can hold a device.
        """
        heard = PollResult(announcement.serial)
        began_ms = self._clock.steady_ms()
        wait_until, end_ms = began_ms + most_ms, began_ms + max(most_ms, 1000 * PATIENCE)
        pending: Sequence[Round | Refused] = announcement.rounds
        while pending and not self._stop():
            early: list[TooEarly] = []
            for asked in pending:
                now_ms = self._clock.steady_ms()
                if self._stop():
                    break
                if now_ms >= end_ms and isinstance(asked, Round):
                    heard.put_off.append(asked)
                    continue
                match self.consider(announcement.pin, asked):
                    case CommittedReport() as submission:
                        yield from self._deliver(submission, heard, end_ms)
                    case TooEarly() as waiting if now_ms + waiting.wait_ms <= wait_until:
                        early.append(waiting)
                    case TooEarly(asked=later):
                        heard.silences.append(SilenceReason.TOO_EARLY)
                        heard.put_off.append(later)
                    case SilenceReason() as silence:
                        heard.silences.append(silence)
                    case Refused() as refusal:
                        heard.refusals.append(refusal)
            if early:
                yield Pause(min(one.wait_ms for one in early) / 1000, self._stop)
            pending = [one.asked for one in early]
        self.value.tell()  # after all reports have left: their times must not tell of the value
        return heard

    def consider(self, pin: str, asked: Round | Refused) -> Outcome:
        """Decide what this device sends for a round; a gateway may do the sending.

        Afterwards `value.tell` warns the application, if its value could not be used.
        """
        if isinstance(asked, Round):
            self.value.renamed = self.account.renamed_at(asked.t)
        return self.account.consider(pin, asked, self.value.place)

    def run(
        self,
        stop: Stop = never,
        wait: int = LONGEST_WAIT,
        tell: Callable[[PollResult], None] = lambda heard: None,
    ) -> Conversation[None]:
        """Report until `stop()` returns true; after every fault, retry with backoff.

        It also returns when another process has left the stream, or enrolled the device elsewhere.
        """
        self._stop = stop
        run = self._run_slots(tell) if self._speaks_unasked else self._run(wait, tell)
        try:
            yield from run
        except Mistake:
            if self.account.enrolment is not None:  # else it was left in the midst of a step
                raise
        finally:
            self._stop = never

    def _run_slots(self, tell: Callable[[PollResult], None]) -> Conversation[None]:
        """Take the device's turns as they come, and run updates in between."""
        failures, began = 0, self._surroundings
        while not self._stop():
            try:
                self.account.refresh()
                if self._surroundings != began:
                    return
                turn = self._turn()
                wait_ms = 1000 * LONGEST_NAP if turn is None else self._wait_ms(turn)
                longest_ms = min(UPDATES_MS, self.account.terms.promise.span // 2)
                if self.updates.due and wait_ms > longest_ms:
                    yield from self.updates.run(self._stop)
                    continue
                if turn is None or wait_ms:
                    yield Pause(min(wait_ms / 1000, LONGEST_NAP), self._stop)
                    continue
                heard = yield from self._take(turn)
            except (Unreachable, Refused, LedgerUnusable) as fault:
                self.account.note(fault)
                failures += 1
                yield self._pause(failures, 0.0)
                continue
            tell(heard)
            failures = failures + 1 if heard.undelivered else 0
            if failures:  # do not flood a collector that refuses, and says that it is another t
                yield self._pause(failures, 0.0)

    @property
    def _surroundings(self) -> tuple[object, ...]:
        """What a run depends on: another process may enrol elsewhere, or in another stream."""
        streams = tuple(one.id for one in self.account.wallet.memory.enrolments)
        known = self.account.enrolment
        return known and known.identity, streams

    def _run(self, wait: int, tell: Callable[[PollResult], None]) -> Conversation[None]:
        failures, began = 0, self._surroundings
        while not self._stop():
            asked_ms, before = self._clock.steady_ms(), self._serial
            try:
                self.account.refresh()
                if self._surroundings != began:
                    return
                if rests_ms := self.halting.rests_ms:
                    yield Pause(min(rests_ms / 1000, LONGEST_NAP), self._stop)
                    continue
                heard = yield from self.poll(wait)
            except (Unreachable, Refused, LedgerUnusable) as fault:
                self.account.note(fault)
                failures += 1
                at_least = fault.facts.get("retry_after")
                yield self._pause(failures, at_least if isinstance(at_least, float) else 0.0)
                continue
            failures = 0
            tell(heard)
            if not heard.delivered and self._clock.steady_ms() - asked_ms < 1000:
                # Do not flood a collector that answers long polls at once.
                yield self._pause(1, FIRST_PAUSE if heard.serial == before else LEAST_PAUSE)

    def _deliver(
        self, submission: CommittedReport, heard: PollResult, end_ms: float
    ) -> Conversation[None]:
        """Send a report until it arrives, is refused, or its round or its timestamp is over.

        At `end_ms` of the steady clock it is put off.
        """
        asked, terms = submission.round, self.account.enrolled.terms
        over_ms = self._clock.steady_ms() + terms.interval_ms  # however often time is corrected
        give_up_ms = min(over_ms, end_ms)
        request = Request.of(submission.message, self._patience(asked), self._stop)

        def is_over(failures: int, pause: float) -> bool:
            too_long = self._clock.steady_ms() + 1000 * pause >= give_up_ms
            return too_long or 1000 * pause >= self._left_ms(asked)

        is_final = False
        try:
            response = yield from self._insist(request, is_over)
            is_final = True
            if response.status == UNAUTHORIZED:
                self.account.doubt_key()
            if response.status not in (200, 202):
                raise refusal_in(response, f"the report of round {asked.name}")
        except (Unreachable, Refused) as fault:
            heard.undelivered.append(self.account.note(fault))
            if not is_final and give_up_ms == end_ms:
                heard.put_off.append(asked)
        else:
            self.account.arrived(asked)
            heard.delivered.append(asked)

    def _left_ms(self, asked: Round) -> int:
        """Return how long a report of this round can still arrive."""
        end_ms = min(asked.deadline_ms, self.account.enrolled.terms.end_of(asked.t))
        return end_ms - self.account.label.now_ms()

    def _patience(self, asked: Round) -> float:
        """Return the seconds for one attempt to connect, or to send a report of this round."""
        return min(PATIENCE, max(self._left_ms(asked) / 1000, FIRST_PAUSE))

    def _insist(
        self, request: Request, give_up: Callable[[int, float], bool]
    ) -> Conversation[Response]:
        """Retry a request with backoff until its answer is final, or `give_up`.

        An answer is not final if it is 425, 429 or 5xx. Each is heeded: it may correct label time.
        """
        for failures in count(1):
            fault: LdpStreamError
            try:
                response = yield from _ask(request)
            except Unreachable as lost:
                fault, at_least = lost, 0.0
            else:
                self._heed(request, notice_in(response))
                if response.status not in TRY_AGAIN and response.status < 500:
                    return response
                fault = refusal_in(response, f"{request.method} {request.path}")
                at_least = retry_after(response)
            pause = self._pause(failures, at_least)
            if self._stop() or give_up(failures, pause.seconds):
                raise fault
            yield pause
        raise AssertionError("counting has no end")

    def _heed(self, request: Request, notice: Notice) -> None:
        """Correct label time by a notice, and remember what it asks for after a report."""
        if notice.now_ms is not None:
            self.account.label.correct(notice.now_ms)
        if isinstance(request.message, SubmitReport):
            self.updates.hear(notice)
            self.halting.hear(notice)

    def _pause(self, failures: int, at_least: float) -> Pause:
        """Return a pause, at first of at most a tenth of an interval, to leave time for retries."""
        first = FIRST_PAUSE
        if self.account.enrolment is not None:
            first = min(first, self.account.enrolment.terms.interval_ms / 10_000)
        return Pause(pause_after(failures, first, at_least, self._jitter), self._stop)


def _check_names(stream: object, token: object, level: object) -> None:
    if not is_stream_name(stream):
        expected = f"a stream's name: {STREAM_NAME}"
        raise Mistake(Problem.OPTION, option="the stream", given=shown(stream), expected=expected)
    if not (isinstance(token, str) and token.isascii() and token.isprintable()):
        # The token is not shown: it is a secret, even if malformed.
        given = "unprintable" if isinstance(token, str) else "no text"
        expected = "plain ASCII, or nothing if anyone may enrol"
        raise Mistake(Problem.OPTION, option="the token", given=given, expected=expected)
    if level and not is_level_name(level):
        expected = "the name of one of the stream's levels"
        raise Mistake(Problem.OPTION, option="the level", given=shown(level), expected=expected)


def _ask(request: Request) -> Conversation[Response]:
    response = yield request
    assert response is not None
    return response
