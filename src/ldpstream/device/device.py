"""A device, blocking or on an event loop: a session with a network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.device.backoff import Jitter, system_jitter
from ldpstream.device.clock import Clock
from ldpstream.device.exchange import (
    Address,
    AsyncTransport,
    Conversation,
    Request,
    Response,
    Stop,
    Transport,
    drive,
    drive_async,
    never,
    sleep_async,
    sleep_blocking,
)
from ldpstream.device.session import LONGEST_WAIT, Heard, Session
from ldpstream.device.store import Store
from ldpstream.device.terms import Terms, Value
from ldpstream.device.transport import HttpTransport
from ldpstream.device.witness import Witness
from ldpstream.privacy.randomness import Source

T = TypeVar("T")


class _Values:
    """What both flavours do without a network."""

    session: Session

    @property
    def terms(self) -> Terms | None:
        """What was agreed at enrolment; None before."""
        enrolment = self.session.account.enrolment
        return enrolment.terms if enrolment else None

    def observe(self, value: Value | None) -> None:
        """The device holds this value from now on, or none (None).

        A label by its name or index; where the stream is of numbers, a number.
        """
        self.session.observe(value)

    def follow(self, value_at: Callable[[int], Value | None]) -> None:
        """Let a function of t say which value the device holds, or None."""
        self.session.follow(value_at)


class Device(_Values):
    """A device that may block. Not for several threads at once.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Device.open(f"{folder}/device.ldp") as device:
    ...     device.poll()
    Traceback (most recent call last):
    ldpstream.errors.Mistake: device.ldp is not enrolled; call enrol(url, stream, token) once
    """

    def __init__(
        self,
        session: Session,
        transport: Transport | None = None,
        sleep: Callable[[float, Stop], object] = sleep_blocking,
    ) -> None:
        self.session = session
        self._transport = transport or HttpTransport()
        self._sleep = sleep

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        witness: Witness | None = None,
        clock: Clock | None = None,
        source: Source | None = None,
        jitter: Jitter = system_jitter,
        transport: Transport | None = None,
        sleep: Callable[[float, Stop], object] = sleep_blocking,
    ) -> Self:
        """Open the device that lives in this file, or make one."""
        session = Session(Store(Path(path), witness), clock, source, jitter)
        return cls(session, transport, sleep)

    def enrol(
        self,
        url: str,
        stream: str,
        token: str,
        *,
        pin: str | None = None,
        first_install: bool = False,
    ) -> Terms:
        """Agree with a collector on a stream's terms.

        Give `pin` to accept these terms only. Say `first_install` if this user's device has never
        reported to this stream before; otherwise it first keeps silent for w timestamps.
        """
        Address.of(url)
        return self._drive(self.session.enrol(stream, url, token, pin, first_install), url)

    def poll(self, wait: int = 0) -> Heard:
        """Ask once for rounds, waiting up to `wait` seconds for news, and answer them."""
        return self._drive(self.session.poll(wait), self.session.account.enrolled.url)

    def run(
        self,
        stop: Stop = never,
        wait: int = LONGEST_WAIT,
        tell: Callable[[Heard], None] = lambda heard: None,
    ) -> None:
        """Poll until `stop()`, and `tell` what came of it.

        Faults of the network and of the disk only make it wait.
        """
        self._drive(self.session.run(stop, wait, tell), self.session.account.enrolled.url)

    def _drive(self, conversation: Conversation[T], url: str) -> T:
        def send(request: Request) -> Response:
            return self._transport.send(url, request)

        return drive(conversation, send, self._sleep)

    def close(self) -> None:
        self.session.account.save_refusals()
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
        sleep: Callable[[float, Stop], Awaitable[object]] = sleep_async,
    ) -> None:
        self.session = session
        self._transport = transport or AsyncHttpTransport()
        self._sleep = sleep

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        witness: Witness | None = None,
        clock: Clock | None = None,
        source: Source | None = None,
        jitter: Jitter = system_jitter,
        transport: AsyncTransport | None = None,
        sleep: Callable[[float, Stop], Awaitable[object]] = sleep_async,
    ) -> Self:
        """Open the device that lives in this file, or make one; many may share a transport."""
        session = Session(Store(Path(path), witness), clock, source, jitter)
        return cls(session, transport, sleep)

    async def enrol(
        self,
        url: str,
        stream: str,
        token: str,
        *,
        pin: str | None = None,
        first_install: bool = False,
    ) -> Terms:
        """As `Device.enrol`."""
        Address.of(url)
        conversation = self.session.enrol(stream, url, token, pin, first_install)
        return await self._drive(conversation, url)

    async def poll(self, wait: int = 0) -> Heard:
        """As `Device.poll`."""
        return await self._drive(self.session.poll(wait), self.session.account.enrolled.url)

    async def run(
        self,
        stop: Stop = never,
        wait: int = LONGEST_WAIT,
        tell: Callable[[Heard], None] = lambda heard: None,
    ) -> None:
        """As `Device.run`; cancel it, or let `stop()` say so."""
        await self._drive(self.session.run(stop, wait, tell), self.session.account.enrolled.url)

    async def _drive(self, conversation: Conversation[T], url: str) -> T:
        def send(request: Request) -> Awaitable[Response]:
            return self._transport.send(url, request)

        return await drive_async(conversation, send, self._sleep)

    async def close(self) -> None:
        self.session.account.save_refusals()
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
