"""Who may ask, how often, and how much."""

from __future__ import annotations

import hmac
import threading

from starlette.requests import Request
from starlette.types import Receive

from ldpstream.collector.clock import Clock
from ldpstream.errors import Mistake, Problem


def check_token(request: Request, expected: bytes, kind: str) -> None:
    """Let through whoever sends the token."""
    if not has_token(request, expected):
        raise Mistake(Problem.TOKEN, kind=kind)


def has_token(request: Request, expected: bytes) -> bool:
    """Whether the request carries the token; comparing takes as long whatever was sent."""
    given = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
    return hmac.compare_digest(given, expected)


class TokenBucket:
    """At most so many a second, and as many at once after a pause.

    >>> from ldpstream.collector.clock import ManualClock
    >>> clock = ManualClock()
    >>> bucket = TokenBucket(per_second=2, clock=clock)
    >>> [bucket.take() for _ in range(3)]
    [True, True, False]
    >>> clock.advance(500)
    >>> bucket.take()
    True
    """

    def __init__(self, per_second: int, clock: Clock) -> None:
        self._per_second = per_second
        self._clock = clock
        self._milli_tokens = 1000 * per_second
        self._last_ms = clock.now_ms()
        self._lock = threading.Lock()

    def take(self) -> bool:
        with self._lock:
            now = self._clock.now_ms()
            gained = max(now - self._last_ms, 0) * self._per_second
            self._milli_tokens = min(self._milli_tokens + gained, 1000 * self._per_second)
            self._last_ms = now
            if self._milli_tokens < 1000:
                return False
            self._milli_tokens -= 1000
            return True


async def read_body(receive: Receive, limit: int) -> bytes:
    """The body of a request, unless it is too long: then no more of it is read."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False) and len(body) <= limit:
        return body
    parts = [body]
    size = len(body)
    while message.get("more_body", False) and size <= limit:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if size > limit:
        raise Mistake(Problem.TOO_LARGE, limit=limit)
    return b"".join(parts)
