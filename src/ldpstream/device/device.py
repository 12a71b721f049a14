"""The public classes `Device` (blocking) and `AsyncDevice` (asyncio): a session with a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
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
from ldpstream.device.session import Heard, Session
from ldpstream.device.store import Store
from ldpstream.device.transport import HttpTransport
from ldpstream.device.values import Warn, log_warning
from ldpstream.device.witness import Witness
from ldpstream.errors import Mistake, Problem
from ldpstream.machine_clock import MachineClock
from ldpstream.privacy.randomness import Source
from ldpstream.protocol.limits import LONGEST_WAIT
from ldpstream.protocol.terms import Terms, Value

T = TypeVar("T")


class _Values:
    """The methods that `Device` and `AsyncDevice` share, which need no network."""

    session: Session

    @property
    def terms(self) -> Terms | None:
        """The terms agreed on at enrolment; None before it."""
        enrolment = self.session.account.enrolment
        return enrolment.terms if enrolment else None

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
        the stream's range. Anything else (None, NaN, an unknown label) does not make the device
        silent, since silence would reveal it: the stream's `other` label is reported or, if it has
        none, a value drawn at random. That biases a label's frequency f towards 1/d, by
        theta (1/d - f) if a share theta of the fleet has no value; the collector cannot see it.
        """
        self.session.value.observe(value)

    def follow(self, read: Callable[[], Value | None]) -> None:
        """Call `read` for the value whenever a report is made.

        It must return the value that is held at that moment. An exception is treated like None.
        """
        self.session.value.follow(read)


class Device(_Values):
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
        session: Session,
        transport: Transport | None = None,
        sleep: Sleep = sleep_blocking,
    ) -> None:
        self.session = session
        self._transport = transport or HttpTransport()
        self._sleep = sleep

    @classmethod
    def create(cls, path: str | Path, *, first_install: bool = False, **parts: Any) -> Self:
        """Create a device in a new file: an installer does it, once. `parts` are those of `open`.

        Give `first_install=True` if this person's device has never reported before: only an
        installer can know. Otherwise the device is silent for the first w intervals, since a ledger
        that was lost looks like one that never existed.
        """
        _store(path, **parts).create(first_install)
        return cls.open(path, **parts)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        witness: Witness | None = None,
        clock: MachineClock | None = None,
        source: Source | None = None,
        jitter: Jitter = system_jitter,
        warn: Warn = log_warning,
        transport: Transport | None = None,
        sleep: Sleep = sleep_blocking,
    ) -> Self:
        """Open the device in this file. The file is never created here.

        `warn` is called, once for each kind, about values that cannot be reported.
        """
        session = Session(_existing(path, witness, clock), source, jitter, warn)
        return cls(session, transport, sleep)

    def enrol(
        self,
        url: str,
        stream: str,
        token: str,
        *,
        pin: str | None = None,
        plain_http: bool = False,
    ) -> Terms:
        """Enrol in a collector's stream. Give `pin` to accept only the terms with that hash.

        Over plain http, whoever reads the enrolment can report in this device's name. Outside of
        this machine it is refused, unless `plain_http` is given.
        """
        return self._drive(self.session.enrol(stream, url, token, pin, plain_http), url)

    def leave(self) -> bool:
        """Leave the stream; return whether the collector could be told.

        Number, key, secret and stored reports are deleted. What was spent is kept until it leaves
        the window, so that `enrol` finds it.
        """
        url = self.session.account.enrolled.url
        return self._drive(self.session.leave(), url)

    def poll(self, wait: int = 0) -> Heard:
        """Ask once for rounds, with a long poll of up to `wait` seconds, and answer them.

        With slots nothing is asked: the device reports if its turn comes within `wait` seconds.
        """
        return self._drive(self.session.poll(wait), self.session.account.enrolled.url)

    def run(
        self,
        stop: Stop = never,
        wait: int = LONGEST_WAIT,
        tell: Callable[[Heard], None] = lambda heard: None,
    ) -> None:
        """Take part until `stop()` returns true, and pass what came of each step to `tell`.

        Faults of the network and of the disk are retried with backoff.
        """
        while not stop():
            self._drive(self.session.run(stop, wait, tell), self.session.account.enrolled.url)

    def _drive(self, conversation: Conversation[T], url: str) -> T:
        return drive(
            conversation,
            partial(self._transport.send, url),
            self._sleep,
            partial(self._transport.connect, url),
        )

    def close(self) -> None:
        self.session.account.close()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncDevice(_Values):
    """A device on an event loop. Its commits block the loop for as long as the disk takes."""

    def __init__(
        self,
        session: Session,
        transport: AsyncTransport | None = None,
        sleep: AsyncSleep = sleep_async,
    ) -> None:
        self.session = session
        self._transport = transport or AsyncHttpTransport()
        self._sleep = sleep

    @classmethod
    def create(cls, path: str | Path, *, first_install: bool = False, **parts: Any) -> Self:
        """Create a device in a new file, as `Device.create` does."""
        _store(path, **parts).create(first_install)
        return cls.open(path, **parts)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        witness: Witness | None = None,
        clock: MachineClock | None = None,
        source: Source | None = None,
        jitter: Jitter = system_jitter,
        warn: Warn = log_warning,
        transport: AsyncTransport | None = None,
        sleep: AsyncSleep = sleep_async,
    ) -> Self:
        """Open the device in this file, as `Device.open` does; many may share a transport."""
        session = Session(_existing(path, witness, clock), source, jitter, warn)
        return cls(session, transport, sleep)

    async def enrol(
        self,
        url: str,
        stream: str,
        token: str,
        *,
        pin: str | None = None,
        plain_http: bool = False,
    ) -> Terms:
        """Enrol, as `Device.enrol` does."""
        return await self._drive(self.session.enrol(stream, url, token, pin, plain_http), url)

    async def leave(self) -> bool:
        """Leave the stream, as `Device.leave` does."""
        url = self.session.account.enrolled.url
        return await self._drive(self.session.leave(), url)

    async def poll(self, wait: int = 0) -> Heard:
        """Poll once, as `Device.poll` does."""
        return await self._drive(self.session.poll(wait), self.session.account.enrolled.url)

    async def run(
        self,
        stop: Stop = never,
        wait: int = LONGEST_WAIT,
        tell: Callable[[Heard], None] = lambda heard: None,
    ) -> None:
        """Poll as `Device.run` does, until it is cancelled or `stop()` returns true."""
        while not stop():
            url = self.session.account.enrolled.url
            await self._drive(self.session.run(stop, wait, tell), url)

    async def _drive(self, conversation: Conversation[T], url: str) -> T:
        return await drive_async(
            conversation,
            partial(self._transport.send, url),
            self._sleep,
            partial(self._transport.connect, url),
        )

    async def close(self) -> None:
        self.session.account.close()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _store(
    path: str | Path, witness: Witness | None = None, clock: MachineClock | None = None, **_: object
) -> Store:
    return Store(Path(path), witness, clock)


def _existing(path: str | Path, witness: Witness | None, clock: MachineClock | None) -> Store:
    store = _store(path, witness, clock)
    if not store.path.is_file():
        raise Mistake(Problem.LEDGER_MISSING, file=store.path.name)
    return store
