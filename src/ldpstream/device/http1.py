"""HTTP/1.1 without a socket: a writer of requests and an incremental parser of answers.

The other side may be hostile. So whatever is ambiguous is refused, and everything that could go on
for ever has a limit.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from functools import lru_cache
from typing import TypeVar

from ldpstream.device.exchange import LARGEST_ANSWER, Address, Request, Response

LARGEST_HEAD = 64 << 10
"""The most bytes of the status line and the headers together."""
MOST_HEADERS = 100
MOST_INFORMATIONAL = 8
"""The most informational (1xx) answers before the final one."""
LONGEST_CHUNK_LINE = 256
MOST_CHUNKS = 1 << 16
MOST_TRAILERS = 20
LONGEST_TRAILER = 4 << 10

FRAMING = {"content-length", "transfer-encoding"}
"""The headers that define where a body ends."""
NOT_THE_CALLERS = FRAMING | {"host"}
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}

TEXT = r"[\t -~\x80-\xff]*+"
HEADERS = re.compile(rf"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:{TEXT}\r\n)*+")
"""Header lines with their line ends. No backtracking: the time is linear in their length."""
HEAD = re.compile(rf"HTTP/1\.([01]) ([1-5][0-9]{{2}})(?: {TEXT})?\r\n{HEADERS.pattern}")
LENGTH = re.compile(r"[0-9]{1,16}")
CHUNK = re.compile(rf"([0-9A-Fa-f]{{1,16}})(?:[ \t]*+;{TEXT})?")
TARGET = re.compile(r"/[!-~]*")

T = TypeVar("T")
Reading = Generator[None, None, T]
"""A coroutine that parses part of an answer, and yields whenever it needs more bytes."""


class BadAnswer(ValueError):
    """An answer that is not HTTP/1.1, is ambiguous, or exceeds a limit."""


def write_request(address: Address, request: Request) -> bytes:
    """Return the bytes of a request; raise `ValueError` if they would be parsed as another."""
    target = address.prefix + request.path
    if request.method not in METHODS or not TARGET.fullmatch(target):
        raise ValueError("the request has a method or path that is not valid in HTTP")
    if not NOT_THE_CALLERS.isdisjoint(map(str.lower, request.headers)):
        raise ValueError("the request sets a header that only the transport may set")
    headers = [f"{name}: {value}\r\n" for name, value in request.headers.items()]
    headers.append(f"Host: {_host(address)}\r\n")
    if request.body or request.method != "GET":
        headers.append(f"Content-Length: {len(request.body)}\r\n")
    lines = "".join(headers)
    if not HEADERS.fullmatch(lines) or lines.count("\n") != len(headers):
        raise ValueError("a header of the request has a character that is not allowed")
    head = f"{request.method} {target} HTTP/1.1\r\n{lines}\r\n"
    return head.encode("latin-1") + request.body


def _host(address: Address) -> str:
    host = address.host if address.host.isascii() else address.host.encode("idna").decode()
    host = f"[{host}]" if ":" in host else host
    return host if address.port == (443 if address.secure else 80) else f"{host}:{address.port}"


class AnswerReader:
    r"""An incremental parser of one answer. It raises `BadAnswer` and nothing else.

    >>> reader = AnswerReader()
    >>> reader.feed(b"HTTP/1.1 200 OK\r\ncontent-le")
    >>> reader.feed(b"ngth: 2\r\n\r\n{}")
    Response(status=200, headers={'content-length': '2'})
    """

    def __init__(self) -> None:
        self.started = False
        """Whether any byte has arrived."""
        self._bytes = bytearray()
        self._ended = False
        self._persistent = False
        self._reading = self._answer()

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request, now that the answer is complete."""
        return self._persistent and not self._bytes

    def feed(self, data: bytes) -> Response | None:
        """Parse bytes that have arrived; return the answer if it is complete."""
        self.started = True
        self._bytes += data
        return self._go_on()

    def end(self) -> Response:
        """Note the end of the input; return the answer if that completes it."""
        self._ended = True
        if (response := self._go_on()) is None:
            raise BadAnswer("its answer is cut short" if self.started else "it disconnected")
        return response

    def _go_on(self) -> Response | None:
        try:
            next(self._reading)
        except StopIteration as end:
            response: Response | None = end.value
            return response
        return None

    def _answer(self) -> Reading[Response]:
        for _ in range(MOST_INFORMATIONAL + 1):
            minor, status, headers = _head((yield from self._until(b"\r\n\r\n", LARGEST_HEAD)))
            if status >= 200:
                break
            if status == 101 or not FRAMING.isdisjoint(headers):
                raise BadAnswer("its informational answer switches protocols or has a body")
        else:
            raise BadAnswer("it sends informational answers and never a final one")
        self._persistent = minor == "1" and "close" not in headers.get("connection", "").lower()
        if minor == "0" and "transfer-encoding" in headers:
            raise BadAnswer("its answer is chunked, which HTTP/1.0 does not have")
        return Response(status, dict(headers), (yield from self._body(status, headers)))

    def _body(self, status: int, headers: Mapping[str, str]) -> Reading[bytes]:
        size = _content_length(headers)
        coding = headers.get("transfer-encoding")
        if coding is not None and (coding.lower() != "chunked" or size is not None):
            raise BadAnswer("it does not say clearly where its answer ends")
        if status in (204, 304):
            if status == 204 and (size or coding):
                raise BadAnswer("its answer has status 204 and announces a body")
            return b""
        if coding is not None:
            return (yield from self._chunks())
        return (yield from self._rest() if size is None else self._exactly(size))

    def _rest(self) -> Reading[bytes]:
        """Read everything until the connection is closed."""
        self._persistent = False
        while len(self._bytes) <= LARGEST_ANSWER:
            if self._ended:
                return bytes(self._bytes)
            yield
        raise BadAnswer("its answer has no end")

    def _chunks(self) -> Reading[bytes]:
        body = bytearray()
        for _ in range(MOST_CHUNKS):
            line = CHUNK.fullmatch((yield from self._until(b"\r\n", LONGEST_CHUNK_LINE)))
            if line is None:
                raise BadAnswer("its answer has a chunk without a size")
            size = int(line[1], 16)
            if size == 0:
                yield from self._trailers()
                return bytes(body)
            if len(body) + size > LARGEST_ANSWER:
                break
            body += yield from self._exactly(size)
            if (yield from self._exactly(2)) != b"\r\n":
                raise BadAnswer("its answer has a chunk that is not of the size it states")
        raise BadAnswer("its answer has no end")

    def _trailers(self) -> Reading[None]:
        """Skip the headers after the body."""
        for _ in range(MOST_TRAILERS + 1):
            line = yield from self._until(b"\r\n", LONGEST_TRAILER)
            if not line:
                return
            if not HEADERS.fullmatch(line + "\r\n"):
                raise BadAnswer("its answer has a malformed trailer")
        raise BadAnswer("its answer has no end")

    def _until(self, mark: bytes, most: int) -> Reading[str]:
        """Read at most `most` bytes up to and with the mark; return what precedes it."""
        start = 0
        while (at := self._bytes.find(mark, start, most)) < 0:
            if len(self._bytes) >= most:
                raise BadAnswer("its answer has a line or a head that is too long")
            start = max(0, len(self._bytes) - len(mark) + 1)
            yield
        return self._take(at + len(mark))[:at].decode("latin-1")

    def _exactly(self, size: int) -> Reading[bytes]:
        while len(self._bytes) < size:
            yield
        return self._take(size)

    def _take(self, size: int) -> bytes:
        if size == len(self._bytes):  # the most common case, without a second copy
            found = bytes(self._bytes)
            self._bytes.clear()
        else:
            found = bytes(self._bytes[:size])
            del self._bytes[:size]
        return found


@lru_cache(16)
def _head(text: str) -> tuple[str, int, Mapping[str, str]]:
    """Parse the minor version, the status and the headers; values of one name are joined by commas.

    Within a second, a collector sends thousands of devices the same few heads, hence the cache.
    """
    status = HEAD.fullmatch(text + "\r\n")
    if status is None:
        raise BadAnswer("it does not speak HTTP/1.1")
    lines = text.split("\r\n")
    if len(lines) > 1 + MOST_HEADERS:
        raise BadAnswer("its answer has too many headers")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return status[1], int(status[2]), headers


def _content_length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length")
    if text is None:
        return None
    if not LENGTH.fullmatch(text):  # also if it was sent twice
        raise BadAnswer("its answer has a Content-Length that is not a number")
    if (size := int(text)) > LARGEST_ANSWER:
        raise BadAnswer("its answer is too large")
    return size
