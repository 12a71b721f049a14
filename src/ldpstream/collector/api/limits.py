"""Access tokens, rate limits and size limits of requests."""

from __future__ import annotations

import hmac
import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.types import Receive, Scope

from ldpstream.collector.clock import Clock
from ldpstream.errors import Mistake, Problem

Result = TypeVar("Result")

MOST_ADDRESSES = 10_000
LENGTH = b"content-length"
FEW_BYTES = 16 << 10
"""The longest body of a route that takes JSON."""
USABLE = "a JSON object in UTF-8, with little nesting"


def check_token(request: Request, expected: bytes, kind: str) -> None:
    """Refuse a request that does not carry the token."""
    if not has_token(request, expected):
        raise Mistake(Problem.TOKEN, kind=kind)


def has_token(request: Request, expected: bytes) -> bool:
    """Return whether the request carries the token, compared in constant time."""
    given = request.headers.get("authorization", "").encode()
    return hmac.compare_digest(given, b"Bearer " + expected)


def is_number(text: str, most: int) -> bool:
    """Return whether a client's text is a whole number from 0 to `most`.

    >>> is_number("20", 30), is_number("²", 30), is_number("9" * 5000, 30)
    (True, False, False)
    """
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    return digits and int(text) <= most


class ReaderPool:
    """A few threads for long reads, so that health checks and reports do not wait for them."""

    def __init__(self, threads: int = 2, most: int = 64, most_of_one: int = 4) -> None:
        self._limiter = CapacityLimiter(threads)
        self._most = most
        self._most_of_one = most_of_one
        self._reading: Counter[str] = Counter()
        """Reads under way, by the address that they are for."""

    def is_full(self, reader: str) -> bool:
        """Return whether there is no place for another read of this address."""
        crowded = self._reading.total() >= self._most
        return crowded or self._reading[reader] >= self._most_of_one

    async def run(self, reader: str, work: Callable[..., Result], *given: object) -> Result:
        """Do `work` in one of the threads; refuse it if too much waits already."""
        if self.is_full(reader):
            raise Mistake(Problem.RATE_LIMITED, what="long reads", seconds=1)
        self._reading[reader] += 1
        try:
            return await to_thread.run_sync(work, *given, limiter=self._limiter)
        finally:
            self._reading[reader] -= 1
            if not self._reading[reader]:
                del self._reading[reader]


class TokenBucket:
    """A rate limit of so many per second (or another `period_ms`), with a burst of as many.

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

    def use(self, number: int) -> None:
        """Allow another number from now on."""
        with self._lock:
            self._number, self._most = number, number * self._period_ms

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
    """A token bucket for each address; the least recently seen ones are forgotten.

    >>> from ldpstream.collector.clock import ManualClock
    >>> buckets = AddressBuckets(1, ManualClock(), period_ms=60_000)
    >>> buckets.take("192.0.2.1"), buckets.take("192.0.2.1"), buckets.take("192.0.2.2")
    (True, False, True)
    """

    def __init__(self, number: int, clock: Clock, period_ms: int) -> None:
        self._new = partial(TokenBucket, clock=clock, period_ms=period_ms)
        self._number = number
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()
        self._lock = threading.Lock()

    def use(self, number: int) -> None:
        """Allow another number from now on, to each address."""
        with self._lock:
            self._number = number
            self._buckets.clear()

    def take(self, address: str) -> bool:
        key = network_of(address)
        with self._lock:
            bucket = self._buckets.pop(key, None) or self._new(self._number)
            self._buckets[key] = bucket
            if len(self._buckets) > MOST_ADDRESSES:
                self._buckets.popitem(last=False)
        return bucket.take()


def network_of(address: str) -> str:
    """Return what is counted as one sender: an IPv4 host, or an IPv6 network.

    >>> network_of("2001:db8::1") == network_of("2001:db8::2")
    True
    """
    address = unmapped(address)
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv4Address):
        return address
    return str(ip_network((found, 64), strict=False))


def sender_of(scope: Scope) -> str:
    """Return the sender of a request, as `network_of` groups addresses."""
    host: str = scope["client"][0] if scope.get("client") else ""
    return network_of(host) if ":" in host else host


def unmapped(address: str) -> str:
    """Return an IPv4-mapped IPv6 address as IPv4, and any other address unchanged.

    >>> unmapped("::ffff:192.0.2.1"), unmapped("2001:db8::1"), unmapped("192.0.2.1")
    ('192.0.2.1', '2001:db8::1', '192.0.2.1')
    """
    return address.removeprefix("::ffff:") if "." in address else address


def announced(scope: Scope) -> bytes:
    """Return the Content-Length, or 0 if the request has none."""
    found: bytes = next((value for name, value in scope["headers"] if name == LENGTH), b"0")
    return found


async def read_body(receive: Receive, most: int, length: bytes = b"0") -> bytes:
    """Return the body of a request, unless it is too long: then no more of it is read.

    A body that is announced as too long is not read at all.
    """
    if len(length) > len(str(most)) or not length.isdigit() or int(length) > most:
        raise Mistake(Problem.TOO_LARGE, limit=most)
    message = await receive()
    body: bytes = message.get("body", b"")
    parts = [body]
    size = len(body)
    while message.get("more_body", False) and size <= most:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if size > most:
        raise Mistake(Problem.TOO_LARGE, limit=most)
    return body if len(parts) == 1 else b"".join(parts)


async def read_json(request: Request) -> dict[str, Any]:
    """Read a small JSON object. Called after the token was checked: strangers send no body."""
    body = await read_body(request.receive, FEW_BYTES, announced(request.scope))
    try:
        content = json.loads(body.decode())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise Mistake(Problem.PARAMETER, name="the body", given="not usable", expected=USABLE)
    return content
