"""The public classes `Device` (blocking) and `AsyncDevice` (asyncio): a session with a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import signature
from os.path import isfile
from pathlib import Path
from typing import Any, Self, TypeVar

from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.device.backoff import Jitter, system_jitter
from ldpstream.device.exchange import (
    AsyncSleep,
    AsyncTransport,
    Conversation,
    Sleep,
    Stop,
    Transport,
    drive,
    drive_async,
    never,
    sleep_async,
    sleep_blocking,
)
from ldpstream.device.session import PollResult, Session
from ldpstream.device.sessions import EnrolmentRequest, Sessions
from ldpstream.device.store import DeviceStore
from ldpstream.device.transport import HttpTransport
from ldpstream.device.values import Warn, log_warning
from ldpstream.device.wallet import Amount, Limit, Wallet, promise_of
from ldpstream.device.witness import Witness
from ldpstream.errors import Mistake, Problem
from ldpstream.machine_clock import MachineClock
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Promise
from ldpstream.privacy.randomness import Source, SystemSource
from ldpstream.protocol.limits import LONGEST_WAIT
from ldpstream.protocol.names import shown
from ldpstream.protocol.succession import Acceptance, Policy
from ldpstream.protocol.terms import Terms, Value

T = TypeVar("T")


class ObservedStream:
    """The part of a stream that needs no network: what is observed, and what is known of it."""

    session: Session

    @property
    def terms(self) -> Terms | None:
        """The terms in force, at the person's level; None before the enrolment."""
        account = self.session.account
        return account.terms if account.enrolment else None

    @property
    def t(self) -> int:
        """The current timestamp, as far as the device knows."""
        return self.session.account.t

    def due_in(self) -> float:
        """Return the seconds until the device reports next, for a scheduler that wakes it up.

        Only a stream with slots allows a device to sleep until then: wake it up, and `poll`.
        """
        return self.session.due_in()

    def observe(self, value: Value | None) -> None:
        """Hold this value from now on.

        Give a label by its name or index or, for a stream of numbers, a number, which is clamped to
        the stream's range; for an open vocabulary any text, of which 256 bytes count. Names outlive
        a change of the stream's labels, and indexes do not. Anything else (None, NaN, an unknown
        label) does not make the device silent, since silence would reveal it: the stream's `other`
        label is reported or, if it has none, a value drawn at random. That biases a label's
        frequency f towards 1/d, by theta (1/d - f) if a share theta of the fleet has no value; the
        collector cannot see it.
        """
        self.session.value.observe(value)

    def describe(self, **attributes: str) -> None:
        """Set this device's public attributes, by the names that the terms declare.

        They are sent beside every report and nothing protects them. So they must not depend on the
        value. What is not declared, or not said, counts as `other`; each call replaces the last.
        """
        self.session.account.described = attributes

    def follow(self, read: Callable[[], Value | None]) -> None:
        """Call `read` for the value whenever a report is made.

        It must return the value that is held at that moment, and at once: the report leaves after
        it, and must not be late by the value. An exception is treated like None.
        """
        self.session.value.follow(read)


class DeviceStream(ObservedStream):
    """One of the streams of a device."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def reserve(self, epsilon: Amount | None) -> None:
        """Keep so much of the limit over all streams free for this one; None is nothing."""
        account = self.session.account
        nano = 0 if epsilon is None else Epsilon.of(epsilon).nano
        account.wallet.set_reserve(account.enrolled.id, nano)


class _Streams(ObservedStream):
    """The methods that `Device` and `AsyncDevice` share, which need no network.

    Those of one stream are for a device that has only one; see `stream` for others.
    """

    sessions: Sessions

    def __repr__(self) -> str:
        """Return the file and the streams, and never a value, a key or what was spent."""
        enrolments = self.sessions.wallet.memory.enrolments
        streams = ", ".join(f"{one.terms.stream} at {one.url}" for one in enrolments)
        file = self.sessions.wallet.store.path.name
        return f"{type(self).__name__}({file}: {streams or 'not enrolled'})"

    @property
    def session(self) -> Session:  # type: ignore[override]
        """The session of the only stream."""
        return self.sessions.only

    def stream(self, name: str, url: str | None = None) -> DeviceStream:
        """Return one of several streams, by its name; give the URL if two have the same."""
        return DeviceStream(self.sessions.named(name, url))

    @property
    def streams(self) -> tuple[DeviceStream, ...]:
        """All streams that this device is enrolled in."""
        return tuple(map(DeviceStream, self.sessions.all))

    def due_in(self) -> float:
        """Return the seconds until the device reports next, in any of its streams."""
        self.sessions.refresh()
        found = self.sessions.all or [self.session]
        return min(one.due_in() for one in found)

    @property
    def limit(self) -> Promise | None:
        """The limit on what all streams spend together."""
        return self.sessions.wallet.limit

    @property
    def _url(self) -> str:
        """The collector of the only stream; with several, each request says where it goes."""
        found = self.sessions.all
        return "" if len(found) > 1 else self.session.account.enrolled.url

    def _leaving(self, stream: str | None, url: str | None) -> Session:
        self.sessions.refresh()
        return self.session if stream is None else self.sessions.named(stream, url)

    def set_limit(self, limit: Limit | None) -> None:
        """Set the limit on what all streams spend together; None removes it.

        One that is not stricter than that of before leaves the latter binding for its span.
        """
        self.sessions.wallet.set_limit(limit)


class Device(_Streams):
    """A device whose calls block. It is not thread-safe.

    >>> import tempfile
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Device.create(f"{folder}/device.ldp", first_install=True) as device,
    ... ):
    ...     device.poll()
    Traceback (most recent call last):
    ldpstream.errors.Mistake: device.ldp is not enrolled; call enrol(url, stream, token) once
    """

    def __init__(
        self,
        sessions: Sessions,
        transport: Transport | None = None,
        sleep: Sleep = sleep_blocking,
    ) -> None:
        self.sessions = sessions
        self._transport = transport or HttpTransport()
        self._sleep = sleep

    @classmethod
    def create(cls, path: str | Path, *, first_install: bool = False, **parts: Any) -> Self:
        """Create a device in a new file: an installer does it, once. `parts` are those of `open`.

        Give `first_install=True` if this person's device has never reported before: only an
        installer can know. Otherwise the device is silent for the first w intervals, since a ledger
        that was lost looks like one that never existed.
        """
        _make(cls.open, path, first_install, **parts)
        return cls.open(path, **parts)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        limit: Limit | None = None,
        witness: Witness | None = None,
        clock: MachineClock | None = None,
        source: Source | None = None,
        jitter: Jitter = system_jitter,
        warn: Warn = log_warning,
        transport: Transport | None = None,
        sleep: Sleep = sleep_blocking,
    ) -> Self:
        """Open the device in this file. The file is never created here.

        `limit` is what all of its streams spend together, at most; it is stored, and without it the
        stored one goes on. `warn` is called, once for each kind, about values that cannot be
        reported.
        """
        wallet = _wallet(_existing(path, witness, clock), source, limit)
        return cls(Sessions(wallet, jitter, warn), transport, sleep)

    def enrol(
        self,
        url: str,
        stream: str,
        token: str,
        *,
        pin: str | None = None,
        plain_http: bool = False,
        level: str | None = None,
        accept: Policy | Acceptance | str | None = None,
        reserve: Amount | None = None,
        moved_from: str | None = None,
    ) -> Terms:
        """Enrol in a collector's stream. Give `pin` to accept only the terms with that hash.

        Over plain http, whoever reads the enrolment can report in this device's name. Outside of
        this machine it is refused, unless `plain_http` is given.

        `level` is the level of privacy that the person has chosen; enrol again to move to another
        one. `accept` says which new terms of the stream the device may go over to by itself: a
        `Policy`, "never" (the default), "same-labels" or "not-looser". `reserve` is how much of the
        limit over all streams is kept free for this one. `moved_from` is the address that the
        stream had before: without it, the same stream at a second address is refused.
        """
        request = EnrolmentRequest(
            url, stream, token, pin, plain_http, level, accept, reserve, moved_from
        )
        return self._drive(self.sessions.enrol(request), url)

    def leave(self, stream: str | None = None, url: str | None = None) -> bool:
        """Leave a stream, or the only one; return whether the collector could be told.

        Number, key, secret and stored reports are deleted. What was spent is kept until it leaves
        the window, so that `enrol` finds it.
        """
        session = self._leaving(stream, url)
        return self._drive(session.leave(), session.account.enrolled.url)

    def poll(self, wait: int = 0) -> PollResult:
        """Ask once for rounds, with a long poll of up to `wait` seconds, and answer them.

        With slots nothing is asked: the device reports if its turn comes within `wait` seconds. A
        round whose budget is free later in its timestamp is waited for, for `wait` seconds or what
        a request may take; otherwise, and with several streams, it is put off, and comes up in the
        next poll. A stream at fault is raised when all were polled.
        """
        self.sessions.refresh()
        return self._drive(self.sessions.poll(wait), self._url)

    def run(
        self,
        stop: Stop = never,
        wait: int = LONGEST_WAIT,
        tell: Callable[[PollResult], None] = lambda heard: None,
    ) -> None:
        """Take part until `stop()` returns true, and pass what came of each step to `tell`.

        Faults of the network and of the disk are retried with backoff.
        """
        while not stop():
            self._drive(self.sessions.run(stop, wait, tell), self._url)
            self.sessions.refresh()

    def _drive(self, conversation: Conversation[T], url: str) -> T:
        return drive(
            conversation,
            lambda request: self._transport.send(request.url or url, request),
            self._sleep,
            lambda step: self._transport.connect(step.url or url, step),
        )

    def close(self) -> None:
        self.sessions.wallet.close()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncDevice(_Streams):
    """A device on an event loop. Its commits block the loop for as long as the disk takes.

    >>> import asyncio, tempfile
    >>> async def report(path):
    ...     async with AsyncDevice.create(path, first_install=True) as device:
    ...         await device.poll()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(report(f"{folder}/device.ldp"))
    Traceback (most recent call last):
    ldpstream.errors.Mistake: device.ldp is not enrolled; call enrol(url, stream, token) once
    """

    def __init__(
        self,
        sessions: Sessions,
        transport: AsyncTransport | None = None,
        sleep: AsyncSleep = sleep_async,
    ) -> None:
        self.sessions = sessions
        self._transport = transport or AsyncHttpTransport()
        self._sleep = sleep

    @classmethod
    def create(cls, path: str | Path, *, first_install: bool = False, **parts: Any) -> Self:
        """Create a device in a new file, as `Device.create` does."""
        _make(cls.open, path, first_install, **parts)
        return cls.open(path, **parts)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        limit: Limit | None = None,
        witness: Witness | None = None,
        clock: MachineClock | None = None,
        source: Source | None = None,
        jitter: Jitter = system_jitter,
        warn: Warn = log_warning,
        transport: AsyncTransport | None = None,
        sleep: AsyncSleep = sleep_async,
    ) -> Self:
        """Open the device in this file, as `Device.open` does; many may share a transport."""
        wallet = _wallet(_existing(path, witness, clock), source, limit)
        return cls(Sessions(wallet, jitter, warn), transport, sleep)

    async def enrol(
        self,
        url: str,
        stream: str,
        token: str,
        *,
        pin: str | None = None,
        plain_http: bool = False,
        level: str | None = None,
        accept: Policy | Acceptance | str | None = None,
        reserve: Amount | None = None,
        moved_from: str | None = None,
    ) -> Terms:
        """Enrol, as `Device.enrol` does."""
        request = EnrolmentRequest(
            url, stream, token, pin, plain_http, level, accept, reserve, moved_from
        )
        return await self._drive(self.sessions.enrol(request), url)

    async def leave(self, stream: str | None = None, url: str | None = None) -> bool:
        """Leave a stream, as `Device.leave` does."""
        session = self._leaving(stream, url)
        return await self._drive(session.leave(), session.account.enrolled.url)

    async def poll(self, wait: int = 0) -> PollResult:
        """Poll once, as `Device.poll` does."""
        self.sessions.refresh()
        return await self._drive(self.sessions.poll(wait), self._url)

    async def run(
        self,
        stop: Stop = never,
        wait: int = LONGEST_WAIT,
        tell: Callable[[PollResult], None] = lambda heard: None,
    ) -> None:
        """Take part as `Device.run` does, until it is cancelled or `stop()` returns true.

        Streams are served side by side: none waits for another's collector.
        """
        while not stop():
            found = self.sessions.all
            if len(found) <= 1:
                await self._drive(self.session.run(stop, wait, tell), self._url)
                self.sessions.refresh()
                continue
            serving = [
                asyncio.create_task(
                    self._drive(one.run(stop, wait, tell), one.account.enrolled.url)
                )
                for one in found
            ]
            try:
                await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in serving:
                    task.cancel()
                ends = await asyncio.gather(*serving, return_exceptions=True)
            for end in ends:
                if isinstance(end, Exception):
                    raise end
            self.sessions.refresh()

    async def _drive(self, conversation: Conversation[T], url: str) -> T:
        return await drive_async(
            conversation,
            lambda request: self._transport.send(request.url or url, request),
            self._sleep,
            lambda step: self._transport.connect(step.url or url, step),
        )

    async def close(self) -> None:
        self.sessions.wallet.close()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def _store(
    path: str | Path, witness: Witness | None = None, clock: MachineClock | None = None, **_: object
) -> DeviceStore:
    given: object = path
    if not isinstance(given, (str, Path)) or "\0" in str(given):
        expected = "the name of a file"
        raise Mistake(Problem.OPTION, option="the path", given=shown(given), expected=expected)
    return DeviceStore(Path(path), witness, clock)


def _make(
    opening: Callable[..., object],
    path: str | Path,
    first_install: bool,
    *,
    limit: Limit | None = None,
    **parts: Any,
) -> None:
    """Make a new file; refuse before what `open` would refuse: it would be without a limit."""
    signature(opening).bind(path, **parts)
    promise_of(limit)
    _store(path, **parts).create(first_install)


def _wallet(store: DeviceStore, source: Source | None, limit: Limit | None) -> Wallet:
    """Return what all streams of a file share; a limit that is given is stored."""
    wallet = Wallet(store, source or SystemSource())
    if limit is not None:
        wallet.set_limit(limit)
    return wallet


def _existing(path: str | Path, witness: Witness | None, clock: MachineClock | None) -> DeviceStore:
    store = _store(path, witness, clock)
    if not isfile(store.path):  # `Path.is_file` raises if the name is too long
        raise Mistake(Problem.LEDGER_MISSING, file=store.path.name)
    return store
