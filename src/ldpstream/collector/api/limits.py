"""Who may ask, how often, and how much."""

from __future__ import annotations

import hmac
import threading
from collections import OrderedDict
from functools import partial
from ipaddress import IPv4Address, ip_address, ip_network

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldpstream.collector.clock import Clock
from ldpstream.errors import Mistake, Problem

MOST_ADDRESSES = 10_000
LENGTH = b"content-length"
WITHOUT_BODY = ("GET", "HEAD")
"""Nobody reads theirs: what comes all the same is dropped, and must not end an answer under way."""


def check_token(request: Request, expected: bytes, kind: str) -> None:
    """Let through whoever sends the token."""
    if not has_token(request, expected):
        raise Mistake(Problem.TOKEN, kind=kind)


def has_token(request: Request, expected: bytes) -> bool:
    """Whether the request carries the token; comparing takes as long whatever was sent."""
    given = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
    return hmac.compare_digest(given, expected)


def is_number(text: str, most: int) -> bool:
    """Whether a client's text is a whole number from 0 to `most`.

    >>> is_number("20", 30), is_number("²", 30), is_number("9" * 5000, 30)
    (True, False, False)
    """
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    return digits and int(text) <= most


class TokenBucket:
    """At most so many a second (or another `period_ms`), and as many at once after a pause.

    >>> from ldpstream.collector.clock import ManualClock
    >>> clock = ManualClock()
    >>> bucket = TokenBucket(2, clock)
    >>> [bucket.take() for _ in range(3)]
    [True, True, False]
    >>> clock.advance(500)
    >>> bucket.take()
    True
    """

    def __init__(self, number: int, clock: Clock, period_ms: int = 1000) -> None:
        self._period_ms = period_ms
        self._most = number * period_ms
        """A token is `period_ms` parts; `number` parts are gained in a millisecond."""
        self._number = number
        self._parts = self._most
        self._clock = clock
        self._last_ms = clock.now_ms()
        self._lock = threading.Lock()

    def take(self) -> bool:
        with self._lock:
            now = self._clock.now_ms()
            gained = max(now - self._last_ms, 0) * self._number
            self._parts = min(self._parts + gained, self._most)
            self._last_ms = now
            if self._parts < self._period_ms:
                return False
            self._parts -= self._period_ms
            return True


class AddressBuckets:
    """A bucket for each address; those that were not seen for longest are forgotten.

    >>> from ldpstream.collector.clock import ManualClock
    >>> buckets = AddressBuckets(1, ManualClock(), period_ms=60_000)
    >>> buckets.take("192.0.2.1"), buckets.take("192.0.2.1"), buckets.take("192.0.2.2")
    (True, False, True)
    """

    def __init__(self, number: int, clock: Clock, period_ms: int) -> None:
        self._new = partial(TokenBucket, number, clock, period_ms)
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, address: str) -> bool:
        key = _network(address)
        with self._lock:
            bucket = self._buckets.pop(key, None) or self._new()
            self._buckets[key] = bucket
            if len(self._buckets) > MOST_ADDRESSES:
                self._buckets.popitem(last=False)
        return bucket.take()


def _network(address: str) -> str:
    """Whom an address belongs to: one host of IPv4, one network of IPv6.

    >>> _network("2001:db8::1") == _network("2001:db8::2")
    True
    """
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv4Address):
        return address
    return str(ip_network((found, 64), strict=False))


class BodyLimit:
    """Around all routes: whoever reads a body is refused what is beyond the limit."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in WITHOUT_BODY:
            receive = limited(receive, self._limit, _announced(scope))
        await self._app(scope, receive, send)


def limited(receive: Receive, limit: int, announced: str = "0") -> Receive:
    """`receive`, unless the body is too long: then no more of it is read.

    A body that is announced as too long is not read at all.
    """
    size = 0 if is_number(announced, limit) else limit + 1

    async def receive_within_limit() -> Message:
        nonlocal size
        message = await receive() if size <= limit else {}
        size += len(message.get("body", b""))
        if size > limit:
            raise Mistake(Problem.TOO_LARGE, limit=limit)
        return message

    return receive_within_limit


def _announced(scope: Scope) -> str:
    """The Content-Length; a body may come without."""
    found: bytes = next((value for name, value in scope["headers"] if name == LENGTH), b"0")
    return found.decode("latin-1")


async def read_body(receive: Receive) -> bytes:
    """The body of a request; the limit is that of `receive`."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body
    parts = [body]
    while message.get("more_body", False):
        message = await receive()
        parts.append(message.get("body", b""))
    return b"".join(parts)
