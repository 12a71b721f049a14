"""The HTTP client of a blocking device: one keep-alive connection."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any, TypeVar

from ldpstream.device.deadline import Deadline
from ldpstream.device.exchange import Address, Connect, Request, Response, unreachable
from ldpstream.device.http1 import AnswerReader, BadAnswer, write_request

READ_BYTES = 64 << 10
T = TypeVar("T")


class HttpTransport:
    """A transport with one connection to one collector at a time. It is not thread-safe.

    A request ends when its patience runs out, whatever the other side does, and soon after its
    `stop()` returns true. The one exception is the look-up of the collector's name: the system's
    resolver cannot be interrupted, and takes as long as it is configured to (`/etc/resolv.conf`).
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._given_tls = tls
        self._kept: tuple[str, socket.socket] | None = None

    def send(self, url: str, request: Request) -> Response:
        address = Address.of(url)
        deadline = Deadline(request.patience, request.stop)
        try:
            written = write_request(address, request)
            if (kept := self._take(url)) is not None:
                reader = AnswerReader()
                try:
                    return self._exchange(url, kept, written, reader, deadline)
                except (OSError, BadAnswer):
                    # The other side may have closed it because it was idle. All requests of a
                    # device are idempotent, so this one can be sent again.
                    if reader.started:
                        raise
            line = self._connect(address, deadline)
            return self._exchange(url, line, written, AnswerReader(), deadline)
        except (OSError, ValueError) as fault:
            # ValueError: a host or path that makes no valid request, or an answer that is not HTTP.
            raise unreachable(url, fault) from fault

    def connect(self, url: str, step: Connect) -> None:
        """Open a connection for the next request, unless an idle one is still there."""
        if (kept := self._take(url)) is not None:
            self._kept = url, kept
            return
        try:
            line = self._connect(Address.of(url), Deadline(step.patience, step.stop))
        except (OSError, ValueError) as fault:
            raise unreachable(url, fault) from fault
        self._kept = url, line

    def _exchange(
        self,
        url: str,
        line: socket.socket,
        written: bytes,
        reader: AnswerReader,
        deadline: Deadline,
    ) -> Response:
        try:
            with suppress(ConnectionError):  # the answer may have come before the reset
                rest = memoryview(written)
                while rest:
                    sent = _until_done(partial(line.send, rest), line, EVENT_WRITE, deadline)
                    rest = rest[sent:]
            response = None
            while response is None:
                data = _until_done(partial(line.recv, READ_BYTES), line, EVENT_READ, deadline)
                response = reader.feed(data) if data else reader.end()
        except BaseException:
            # Also when interrupted: a late answer must not be taken for that of the next request.
            line.close()
            raise
        if reader.reusable:
            self._kept = url, line
        else:
            line.close()
        return response

    def _take(self, url: str) -> socket.socket | None:
        """Return the idle connection if it leads to `url` and is still quiet, or close it."""
        if self._kept is not None and self._kept[0] == url:
            line = self._kept[1]
            with suppress(OSError):
                try:
                    line.recv(1)  # succeeds at the end of the stream, or on unsolicited bytes
                except (BlockingIOError, ssl.SSLWantReadError):
                    self._kept = None
                    return line
        self.close()
        return None

    def _connect(self, address: Address, deadline: Deadline) -> socket.socket:
        """Try all addresses of the host in turn, each with its share of the time left."""
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        fault: OSError = OSError("its host has no address")
        for tried, (family, kind, protocol, _, place) in enumerate(found):
            deadline.left()
            line = socket.socket(family, kind, protocol)
            try:
                return self._opened(line, place, address, deadline.share(len(found) - tried))
            except OSError as failed:
                fault = failed
        raise fault

    def _opened(
        self, line: socket.socket, place: Any, address: Address, deadline: Deadline
    ) -> socket.socket:
        try:
            line.setblocking(False)
            with suppress(BlockingIOError):
                line.connect(place)
            _wait(line, EVENT_WRITE, deadline)
            if code := line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(code, os.strerror(code))
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not address.secure:
                return line
            line = secured = self._tls.wrap_socket(
                line,
                server_hostname=address.host,
                do_handshake_on_connect=False,
                suppress_ragged_eofs=False,  # an answer that the network cut short is not valid
            )
            _until_done(secured.do_handshake, line, EVENT_READ, deadline)
        except BaseException:
            line.close()
            raise
        return line

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The TLS context, made once: reading the certificates takes longer than a request."""
        return self._given_tls or ssl.create_default_context()

    def close(self) -> None:
        if self._kept is not None:
            self._kept[1].close()
            self._kept = None


def _until_done(step: Callable[[], T], line: socket.socket, event: int, deadline: Deadline) -> T:
    """Repeat a step of a non-blocking socket, whenever the socket is ready, until it is done."""
    while True:
        deadline.left()
        try:
            return step()
        except ssl.SSLWantReadError:
            _wait(line, EVENT_READ, deadline)
        except ssl.SSLWantWriteError:
            _wait(line, EVENT_WRITE, deadline)
        except BlockingIOError:
            _wait(line, event, deadline)


def _wait(line: socket.socket, event: int, deadline: Deadline) -> None:
    with DefaultSelector() as ready:
        ready.register(line, event)
        while not ready.select(deadline.left()):
            pass
