"""The sessions of all streams of a device's file, for its blocking and its asyncio class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ldpstream.device.account import Account
from ldpstream.device.backoff import Jitter, system_jitter
from ldpstream.device.exchange import PATIENCE, Address, Conversation, Stop, Unreachable
from ldpstream.device.interleaving import SHARED_WAIT, addressed, interleave
from ldpstream.device.memory import StoredEnrolment
from ldpstream.device.session import PollResult, Session
from ldpstream.device.store import LedgerUnusable
from ldpstream.device.values import Warn, log_warning
from ldpstream.device.wallet import Amount, Wallet
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.protocol.answers import Refused
from ldpstream.protocol.names import shown
from ldpstream.protocol.succession import Acceptance, Policy
from ldpstream.protocol.terms import Terms

Tell = Callable[[PollResult], None]


@dataclass(frozen=True)
class EnrolmentRequest:
    """What an application asks for when it enrols."""

    url: str
    stream: str
    token: str = field(repr=False)
    pin: str | None
    plain_http: bool
    level: str | None
    accept: Policy | Acceptance | str | None
    reserve: Amount | None
    moved_from: str | None

    @property
    def policy(self) -> Policy | None:
        """Which successors of the terms the application agrees to, or None for as before."""
        if self.accept is None or isinstance(self.accept, Policy):
            return self.accept
        given: object = self.accept
        if not isinstance(given, str) or given not in set(Acceptance):
            expected = f"a Policy, or one of {', '.join(Acceptance)}"
            raise Mistake(Problem.OPTION, option="accept", given=shown(given), expected=expected)
        return Policy(Acceptance(given))


class Sessions:
    """A session for each stream; before the first enrolment, one that waits for it.

    A session stands for one enrolment. When that is left, the session ends with it, and the value
    that it holds: it was handed over for that stream, and must not be reported in another.
    """

    def __init__(
        self, wallet: Wallet, jitter: Jitter = system_jitter, warn: Warn = log_warning
    ) -> None:
        self.wallet = wallet
        self._jitter, self._warn = jitter, warn
        self._all: list[Session] = []
        self._first = self.made(Account(wallet))

    def made(self, account: Account) -> Session:
        """Make the session of an account."""
        return Session(account, self._jitter, self._warn)

    @property
    def all(self) -> list[Session]:
        """The sessions of the streams that the file is enrolled in, in that order."""
        enrolments = self.wallet.memory.enrolments
        if self._first.account.was_left:
            self._first = self.made(Account(self.wallet))
        known = {one.account.id: one for one in (self._first, *self._all) if one.account.id}
        for enrolment in enrolments:
            if enrolment.id not in known:
                if not self._first.account.id:
                    self._first.account.bind(enrolment.id)
                    known[enrolment.id] = self._first
                    continue
                known[enrolment.id] = self.made(Account(self.wallet, enrolment.id))
                self._all.append(known[enrolment.id])
        self._all = [one for one in self._all if one.account.id]
        self._first.account.sole = not self._all
        return [known[one.id] for one in enrolments]

    @property
    def only(self) -> Session:
        """The session of the only stream; refuse if there are several."""
        found = self.all
        if len(found) > 1:
            names = ", ".join(_named(one.account.enrolled) for one in found)
            file = self.wallet.store.path.name
            raise Mistake(Problem.SEVERAL_STREAMS, file=file, streams=names)
        return found[0] if found else self._first

    def named(self, stream: str, url: str | None = None) -> Session:
        """Return the session of a stream, by its name and, if need be, its collector."""
        place = None if url is None else Address.of(url).place
        found = [
            one
            for one in self.all
            if one.account.enrolled.terms.stream == stream
            and place in (None, Address.of(one.account.enrolled.url).place)
        ]
        file = self.wallet.store.path.name
        if len(found) > 1:
            names = ", ".join(_named(one.account.enrolled) for one in found)
            raise Mistake(Problem.SEVERAL_STREAMS, file=file, streams=names)
        if not found:
            names = ", ".join(_named(one) for one in self.wallet.memory.enrolments) or "no stream"
            raise Mistake(Problem.STREAM_NOT_ENROLLED, file=file, stream=stream, streams=names)
        return found[0]

    def refresh(self) -> None:
        """Learn what other processes have written."""
        self.wallet.refresh()

    def enrol(self, request: EnrolmentRequest) -> Conversation[Terms]:
        """Enrol in a stream; the value that is held before the first enrolment is meant for it."""
        place, waiting = Address.of(request.url).place, not self.all
        known = self.wallet.at(place, request.stream)
        if waiting:
            session = self._first
        elif known is not None:
            session = next(one for one in self.all if one.account.id == known.id)
        else:
            session = self.made(Account(self.wallet))
            session.account.sole = False
        terms = yield from session.enrol(
            request.stream,
            request.url,
            request.token,
            request.pin,
            request.plain_http,
            level=request.level,
            accept=request.policy,
            reserve=request.reserve,
            moved_from=request.moved_from,
        )
        self._keep(session)
        return terms

    def _keep(self, session: Session) -> None:
        """Keep the session of an enrolment, unless there is one: then the stream has moved."""
        held = [one for one in (self._first, *self._all) if one.account.id == session.account.id]
        if not held:
            self._all.append(session)
        elif held != [session]:
            held[0].moved(session)

    def poll(self, wait: int) -> Conversation[PollResult]:
        """Poll every stream once, those first whose turn comes first, for `wait` seconds in all.

        A fault of one is counted, and raised when all were polled: none suffers for another.
        """
        found = self.all
        if len(found) <= 1:
            return (yield from self.only.poll(wait, 1000 * max(wait, PATIENCE)))
        clock, together, faults = self.wallet.clock, PollResult(), list[LdpStreamError]()
        end_ms = clock.steady_ms() + 1000 * wait
        for session in sorted(found, key=Session.due_in):
            left = max(0, end_ms - clock.steady_ms()) // 1000
            try:
                url = session.account.enrolled.url
                polling = session.poll(min(left, SHARED_WAIT), 1000 * left)
                heard = yield from addressed(polling, url)
            except (Unreachable, Refused, LedgerUnusable, Mistake) as fault:
                faults.append(session.account.note(fault))
                continue
            for name in ("delivered", "undelivered", "refusals", "silences", "put_off"):
                getattr(together, name).extend(getattr(heard, name))
        if faults:
            raise faults[0]
        return together

    def run(self, stop: Stop, wait: int, tell: Tell) -> Conversation[None]:
        """Serve all streams on one thread, until `stop()` returns true or one comes or goes."""
        found = self.all
        if len(found) <= 1:
            return self.only.run(stop, wait, tell)
        # Long polls are short, so that no other stream misses its slot.
        talks = [
            (one.account.enrolled.url, one.run(stop, min(wait, SHARED_WAIT), tell)) for one in found
        ]
        return interleave(talks, self.wallet.clock.steady_ms, stop)


def _named(enrolment: StoredEnrolment) -> str:
    return f"{enrolment.terms.stream} at {Address.of(enrolment.url).place}"
