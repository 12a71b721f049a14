"""HTTP for a device that may block: one connection, kept alive."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any, TypeVar

from ldpstream.device.exchange import Address, Request, Response, unreachable
from ldpstream.device.http1 import AnswerReader, BadAnswer, write_request
from ldpstream.device.patience import Patience

READ_BYTES = 64 << 10
T = TypeVar("T")


class HttpTransport:
    """One connection to one collector at a time. Not for several threads at once.

    A request ends when its patience runs out, whatever the other side does, and soon after its
    `stop()` says true. The one exception is the look-up of the collector's name: the system's
    resolver cannot be interrupted, and takes as long as it is set up to (`/etc/resolv.conf`).
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._given_tls = tls
        self._kept: tuple[str, socket.socket] | None = None

    def send(self, url: str, request: Request) -> Response:
        address = Address.of(url)
        patience = Patience(request.patience, request.stop)
        try:
            written = write_request(address, request)
            if (kept := self._take(url)) is not None:
                reader = AnswerReader()
                try:
                    return self._exchange(url, kept, written, reader, patience)
                except (OSError, BadAnswer):
                    # The other side may have closed it for idleness. All that a device sends may
                    # arrive twice, so it need not be known whether this did.
                    if reader.started:
                        raise
            line = self._connect(address, patience)
            return self._exchange(url, line, written, AnswerReader(), patience)
        except (OSError, ValueError) as fault:
            # ValueError: a host or path that no request can be made of, or no answer in HTTP.
            raise unreachable(url, fault) from fault

    def _exchange(
        self,
        url: str,
        line: socket.socket,
        written: bytes,
        reader: AnswerReader,
        patience: Patience,
    ) -> Response:
        try:
            with suppress(ConnectionError):  # it may have answered before it hung up
                rest = memoryview(written)
                while rest:
                    sent = _until_done(partial(line.send, rest), line, EVENT_WRITE, patience)
                    rest = rest[sent:]
            response = None
            while response is None:
                data = _until_done(partial(line.recv, READ_BYTES), line, EVENT_READ, patience)
                response = reader.feed(data) if data else reader.end()
        except BaseException:
            # Also when interrupted: an answer that nobody waits for must not meet the next request.
            line.close()
            raise
        if reader.reusable:
            self._kept = url, line
        else:
            line.close()
        return response

    def _take(self, url: str) -> socket.socket | None:
        """The connection that was kept alive, if it leads there and nothing has happened on it."""
        if self._kept is not None and self._kept[0] == url:
            line = self._kept[1]
            with suppress(OSError):
                try:
                    line.recv(1)  # the end, or an answer to nothing
                except (BlockingIOError, ssl.SSLWantReadError):
                    self._kept = None
                    return line
        self.close()
        return None

    def _connect(self, address: Address, patience: Patience) -> socket.socket:
        """Try all addresses of the host in turn, each with its share of what patience is left."""
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        fault: OSError = OSError("its host has no address")
        for tried, (family, kind, protocol, _, place) in enumerate(found):
            patience.left()
            line = socket.socket(family, kind, protocol)
            try:
                return self._opened(line, place, address, patience.share(len(found) - tried))
            except OSError as failed:
                fault = failed
        raise fault

    def _opened(
        self, line: socket.socket, place: Any, address: Address, patience: Patience
    ) -> socket.socket:
        try:
            line.setblocking(False)
            with suppress(BlockingIOError):
                line.connect(place)
            _wait(line, EVENT_WRITE, patience)
            if code := line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(code, os.strerror(code))
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not address.secure:
                return line
            line = secured = self._tls.wrap_socket(
                line,
                server_hostname=address.host,
                do_handshake_on_connect=False,
                suppress_ragged_eofs=False,  # an answer that the network cuts short is none
            )
            _until_done(secured.do_handshake, line, EVENT_READ, patience)
        except BaseException:
            line.close()
            raise
        return line

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Made once: to read the certificates of the system takes longer than a request."""
        return self._given_tls or ssl.create_default_context()

    def close(self) -> None:
        if self._kept is not None:
            self._kept[1].close()
            self._kept = None


def _until_done(step: Callable[[], T], line: socket.socket, event: int, patience: Patience) -> T:
    """Try a step of a non-blocking socket whenever it may go on."""
    while True:
        patience.left()
        try:
            return step()
        except ssl.SSLWantReadError:
            _wait(line, EVENT_READ, patience)
        except ssl.SSLWantWriteError:
            _wait(line, EVENT_WRITE, patience)
        except BlockingIOError:
            _wait(line, event, patience)


def _wait(line: socket.socket, event: int, patience: Patience) -> None:
    with DefaultSelector() as ready:
        ready.register(line, event)
        while not ready.select(patience.left()):
            pass
