"""Sans-I/O conversations with a collector, and the loops that carry them out.

A conversation is a generator: it yields requests and pauses, is sent responses, and returns its
result. `drive` and `drive_async` carry one out, so that the blocking and the asyncio classes of a
device share all of its logic.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.protocol.messages import Message

LARGEST_ANSWER = 8 << 20
"""The most bytes of a response that are read: the terms of 65,536 labels fit."""
PATIENCE = 10.0
"""Seconds for a whole request, apart from the time that a long poll asks for."""
PORTS = {"http": 80, "https": 443}
LOOK_SECONDS = 0.2
"""The longest time between two calls of a `Stop`."""
LONGEST_NAP = 60.0
"""Seconds until a device that waits for its turn looks at the clock again: a machine may sleep."""

Stop = Callable[[], bool]
"""A function that returns whether to stop waiting. It is called often, so it should be quick."""


def never() -> bool:
    """Return false: the default `Stop`, which is recognised and never polled."""
    return False


@dataclass(frozen=True)
class Request:
    """An HTTP request, and how long to wait for its answer."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Not in the repr: a token may be among them."""
    body: bytes = field(default=b"", repr=False)
    """Not in the repr: that of an enrolment holds a secret."""
    patience: float = PATIENCE
    """Seconds for all of it: to connect, to send, to wait, to read the last byte of the answer, and
    to send again where a keep-alive connection turns out to be closed."""
    stop: Stop = field(default=never, repr=False, compare=False)
    """When it returns true, the request fails with `Unreachable` within `LOOK_SECONDS`."""
    message: Message | None = field(default=None, repr=False, compare=False)
    """The message that the request carries, for transports other than HTTP."""
    url: str = field(default="", compare=False)
    """The collector that it is for, where a conversation talks to several."""

    @classmethod
    def of(cls, message: Message, patience: float = PATIENCE, stop: Stop = never) -> Request:
        """Return the request that carries a message of the protocol."""
        http = message.http
        return cls(http.method, http.path, http.headers, http.body, patience, stop, message)


@dataclass(frozen=True)
class Response:
    """An HTTP response; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    """Not in the repr: that of an enrolment holds the device's key."""


@dataclass(frozen=True)
class Connect:
    """A connection to be opened ahead of the request that will need it.

    A device connects before it reads its value: where there is no network, nothing is debited.
    """

    patience: float = PATIENCE
    stop: Stop = field(default=never, repr=False, compare=False)
    url: str = field(default="", compare=False)


@dataclass(frozen=True)
class Pause:
    """A pause before the next step of a conversation."""

    seconds: float
    stop: Stop = field(default=never, repr=False, compare=False)
    """When it returns true, the pause ends within `LOOK_SECONDS`."""


class Unreachable(LdpStreamError):
    """A request got no answer. It is not known whether it arrived.

    >>> print(Unreachable(Problem.UNREACHABLE, url="https://stats.example", what="timed out"))
    https://stats.example does not answer: timed out; check the address and the network
    """


T = TypeVar("T")
Conversation = Generator[Request | Connect | Pause, Response | None, T]


class Transport(Protocol):
    """A carrier of requests to a collector."""

    def send(self, url: str, request: Request) -> Response:
        """Carry a request to the collector at `url`; raise `Unreachable` if there is no answer.

        It returns within `request.patience` seconds, and soon after `request.stop()` returns true.
        """
        ...

    def connect(self, url: str, step: Connect) -> None:
        """Open a connection to the collector, unless there is one; raise `Unreachable` if not."""
        ...

    def close(self) -> None: ...


class AsyncTransport(Protocol):
    """A carrier of requests that does not block, otherwise like `Transport`."""

    async def send(self, url: str, request: Request) -> Response: ...

    async def connect(self, url: str, step: Connect) -> None: ...

    async def close(self) -> None: ...


Sleep = Callable[[float, Stop], object]
AsyncSleep = Callable[[float, Stop], Awaitable[object]]


def sleep_blocking(seconds: float, stop: Stop = never) -> None:
    """Sleep, at most until `stop()` returns true."""
    end = time.monotonic() + seconds
    while not stop() and (left := end - time.monotonic()) > 0:
        time.sleep(left if stop is never else min(left, LOOK_SECONDS))


async def sleep_async(seconds: float, stop: Stop = never) -> None:
    """Sleep without blocking the event loop, at most until `stop()` returns true."""
    end = time.monotonic() + seconds
    while not stop() and (left := end - time.monotonic()) > 0:
        await asyncio.sleep(left if stop is never else min(left, LOOK_SECONDS))


def drive(
    conversation: Conversation[T],
    send: Callable[[Request], Response],
    sleep: Sleep = sleep_blocking,
    connect: Callable[[Connect], None] = lambda step: None,
) -> T:
    """Carry out a conversation, blocking."""
    try:
        step = next(conversation)
        while True:
            reply = None
            try:
                match step:
                    case Pause(seconds, stop):
                        sleep(seconds, stop)
                    case Connect():
                        connect(step)
                    case Request():
                        reply = send(step)
            except Unreachable as fault:
                step = conversation.throw(fault)
            else:
                step = conversation.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


async def connected(step: Connect) -> None:
    """Do nothing, where the transport needs no connection ahead of a request."""


async def drive_async(
    conversation: Conversation[T],
    send: Callable[[Request], Awaitable[Response]],
    sleep: AsyncSleep = sleep_async,
    connect: Callable[[Connect], Awaitable[None]] = connected,
) -> T:
    """Carry out a conversation on an event loop."""
    try:
        step = next(conversation)
        while True:
            reply = None
            try:
                match step:
                    case Pause(seconds, stop):
                        await sleep(seconds, stop)
                    case Connect():
                        await connect(step)
                    case Request():
                        reply = await send(step)
            except Unreachable as fault:
                step = conversation.throw(fault)
            else:
                step = conversation.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


@dataclass(frozen=True)
class Address:
    """The address of a collector.

    >>> Address.of("https://example.org/ldp")
    Address(secure=True, host='example.org', port=443, prefix='/ldp')
    """

    secure: bool
    host: str
    port: int
    prefix: str

    @classmethod
    def of(cls, url: object) -> Address:
        """Parse a URL; refuse anything that is not one."""
        return cls._of(url if isinstance(url, str) else "")

    @classmethod
    @lru_cache(64)
    def _of(cls, url: str) -> Address:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        host = _host(parts.hostname)
        if parts.scheme not in ("http", "https") or host is None or parts.query or port == 0:
            expected = "its URL, such as http://127.0.0.1:8080, in ASCII and with no query"
            raise Mistake(
                Problem.OPTION,
                option="the collector",
                given=repr(url.rpartition("@")[2]),  # never a password
                expected=expected,
            )
        if "@" in parts.netloc:
            expected = "its URL without user and password"
            raise Mistake(
                Problem.OPTION, option="the collector", given="one with an @", expected=expected
            )
        secure = parts.scheme == "https"
        port = port or (PORTS["https"] if secure else PORTS["http"])
        return cls(secure, host, port, parts.path.rstrip("/"))

    @property
    def origin(self) -> str:
        """The collector without its path, as a browser spells it.

        >>> Address.of("HTTPS://Stats.Example:443/ldp").origin, Address.of("http://[::1]:80").origin
        ('https://stats.example', 'http://[::1]')
        """
        scheme = "https" if self.secure else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}" + ("" if self.port == PORTS[scheme] else f":{self.port}")

    @property
    def place(self) -> str:
        """The origin and the path, which tell apart the collectors of one host."""
        return self.origin + self.prefix

    @property
    def confidential(self) -> bool:
        """Whether nobody on the way can read what is sent: over TLS, or within this machine."""
        return self.secure or self.host == "localhost" or _is_loopback(self.host)


def _host(name: str | None) -> str | None:
    """Return a host in the form in which a browser spells it; None if it has no such form."""
    if name is None or not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]+", name):
        return None
    if ":" in name or re.fullmatch(r"[0-9.]+|.*\.(0x)?[0-9a-f]*[0-9]", name):
        try:
            return ip_address(name).compressed
        except ValueError:
            return None
    return name


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def unreachable(url: str, what: object) -> Unreachable:
    return Unreachable(Problem.UNREACHABLE, url=url, what=str(what) or type(what).__name__)
