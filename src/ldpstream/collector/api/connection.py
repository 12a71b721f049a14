"""Connections with limits, which hold before anything of a request is looked at.

uvicorn's protocol for httptools, with what neither of the two has: deadlines for the first byte,
the head and the body of a request, bounds on a head and on what one address may hold, and an end
for clients that do not read their answers. Whoever stays within the limits pays for them with a few
comparisons for each request.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ldpstream.collector.api.limits import network_of, unmapped
from ldpstream.collector.api.problems import problem_bytes
from ldpstream.collector.config import Limits
from ldpstream.errors import Mistake, Problem

Network = IPv4Network | IPv6Network

HEAD_BYTES = 16 << 10
"""The most bytes of the request line and all headers."""
HEAD_LINES = 64
READER_BYTES = 64 << 10
PIPELINED = 16
"""Requests that one connection may send before the first of them is answered."""
SMALL_BODY = 4 << 10
"""Smaller bodies are not counted: all connections together hold few of them."""
CHUNKS = 4096
"""The most chunks of one body: each of them costs the parser as much as a whole piece."""
WITH_BODY = ("POST", "PUT")
"""Methods whose routes read a body. A longer one than SMALL_BODY ends any other request, which may
wait for news with it, or for ever."""


@dataclass(frozen=True)
class Deadlines:
    """How long a client may take, in seconds."""

    first_byte: float = 10
    """From a connection to the first byte of a request."""
    head: float = 10
    """From the first byte of a head to its last."""
    pause: float = 10
    """Between two pieces of a body."""
    body: float = 60
    """From the end of a head to the end of the body."""
    linger: float = 10
    """From the end of a connection to when what is still unread of it is dropped."""
    reading: float = 10
    """The time in which READER_BYTES of an answer must be sent, while more of it waits."""


class RequestPart(Enum):
    """The part of a request that a connection is to send next."""

    HEAD = auto()
    BODY = auto()
    NOTHING = auto()


class ConnectionTable:
    """All connections of a server, and what they hold together.

    When a limit is reached, whoever has held on for longest without need is dropped: an honest
    request is over in a moment, so that this hits those who only hold on.
    """

    def __init__(
        self,
        limits: Limits,
        proxies: Collection[Network] = (),
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
    ) -> None:
        self.deadlines = deadlines
        self._limits = limits
        self._proxies = proxies
        self.number = 0
        self._of_address: Counter[str] = Counter()
        self.idle: dict[GuardedProtocol, None] = {}
        """Connections without a request, longest first."""
        self._idle_of: defaultdict[str, dict[GuardedProtocol, None]] = defaultdict(dict)
        """The same, by address."""
        self.receiving = _HeldBytes(limits.receiving_bytes)
        """Bytes of bodies whose requests are not answered yet."""
        self.unread = _HeldBytes(limits.unread_bytes)
        """Bytes of answers that wait to be read."""

    def use(self, limits: Limits) -> None:
        """Apply other limits to new connections; existing connections are kept."""
        self._limits = limits
        self.receiving.most = limits.receiving_bytes
        self.unread.most = limits.unread_bytes

    def admit(self, new: GuardedProtocol) -> bool:
        """Count a new connection; return whether there is room for it."""
        self.number += 1
        self._of_address[new.address] += 1
        crowded = self._of_address[new.address] > self._limits.connections_per_address
        if crowded and new.client and not self._is_proxy(new.client[0]):
            held: Iterable[GuardedProtocol] = self._idle_of[new.address]
        elif self.number > self._limits.connections:
            held = self.idle
        else:
            return True
        oldest = next(iter(held), None)
        if oldest is not None:
            oldest.drop()
        return oldest is not None

    def mark_idle(self, connection: GuardedProtocol) -> None:
        """Note that a connection has no request now."""
        self.idle[connection] = self._idle_of[connection.address][connection] = None

    def mark_active(self, connection: GuardedProtocol) -> None:
        """Note that a connection has a request, or ends."""
        if self.idle.pop(connection, connection) is None:
            del self._idle_of[connection.address][connection]

    def _is_proxy(self, host: str) -> bool:
        return any(ip_address(host) in proxy for proxy in self._proxies)

    def forget(self, gone: GuardedProtocol) -> None:
        self.number -= 1
        self._of_address[gone.address] -= 1
        self.mark_active(gone)
        if not self._of_address[gone.address]:
            del self._of_address[gone.address]
            self._idle_of.pop(gone.address, None)
        self.receiving.set(gone, 0)
        self.unread.set(gone, 0)


class _HeldBytes:
    """Bytes that connections hold.

    When there are too many, the address that holds most of them loses its oldest connection that
    has to act next.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.total = 0
        self._bytes: dict[GuardedProtocol, int] = {}
        self._of_address: Counter[str] = Counter()

    def set(self, connection: GuardedProtocol, number: int) -> None:
        self._put(connection, number)
        while self.total > self.most:
            held = (one for one in self._bytes if one.holds_on)
            most = max(held, key=lambda one: self._of_address[one.address], default=None)
            if most is None:
                return
            self._put(most, 0)
            most.drop()

    def _put(self, connection: GuardedProtocol, number: int) -> None:
        more = number - self._bytes.get(connection, 0)
        if number:
            self._bytes[connection] = number
        else:
            self._bytes.pop(connection, None)
        self.total += more
        self._of_address[connection.address] += more
        if not self._of_address[connection.address]:
            del self._of_address[connection.address]


class GuardedProtocol(HttpToolsProtocol):
    """One connection. A client that breaks a limit loses it, and no other."""

    def __init__(self, table: ConnectionTable, **given: Any) -> None:
        super().__init__(**given)
        self._table = table
        self._deadlines = table.deadlines
        self._next = RequestPart.NOTHING
        self._fault = Mistake(Problem.HTTP_SYNTAX)
        """The error message when the parser gives up."""
        self._head_bytes = 0
        self._body_bytes = 0
        self._body_began = 0.0
        self._chunks = 0
        self._wire_bytes = 0
        """What was received since the piece in which the head ended."""
        self._running: RequestResponseCycle | None = None
        """The request that is answered now; others may wait in the pipeline."""
        self._unread_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None
        self.address = ""

    # The life of a connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client:
            self.client = (unmapped(self.client[0]), self.client[1])
            self.address = network_of(self.client[0])
        if self._table.admit(self):
            self._table.mark_idle(self)
            self._expect(self._deadlines.first_byte)
        else:
            self._refuse(Mistake(Problem.RATE_LIMITED, what="connections", seconds=1))

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.forget(self)
        self._cancel()
        if self._reader is not None:
            self._reader.cancel()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        if self._running is not None:  # uvicorn tells the last request of a pipeline only
            self._running.disconnected = True
            self._running.message_event.set()

    def eof_received(self) -> None:
        self._close()

    def drop(self) -> None:
        """End the connection at once, with all that it holds."""
        self._table.mark_active(self)
        self.transport.abort()

    def _close(self) -> None:
        """End the connection once its answer has been read, or some time after."""
        self.transport.close()
        self._cancel()
        self._deadline = self.loop.call_later(self._deadlines.linger, self.transport.abort)

    def _refuse(self, error: Mistake) -> None:
        self.transport.write(problem_bytes(error))
        self._close()

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser refuses."""
        if not self.transport.is_closing():
            self._refuse(self._fault)

    def timeout_keep_alive_handler(self) -> None:
        if not self.transport.is_closing():
            self._close()

    # Requests

    def data_received(self, data: bytes) -> None:
        self._wire_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if (
            self._next is not RequestPart.HEAD
            and self._wire_bytes > HEAD_BYTES + 2 * self._body_bytes
        ):
            self.drop()  # bytes around a body: a trailer, say, which the parser gathers for ever
        elif self._next is RequestPart.NOTHING:
            self._between_requests()
        elif self._next is RequestPart.BODY:
            self._expect(self._deadlines.pause)
            if self.loop.time() - self._body_began > self._deadlines.body:
                self.drop()
        else:
            if not self._head_bytes:
                self._expect(self._deadlines.head)
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(_too_large())

    def _between_requests(self) -> None:
        """Go on after a whole request, or after bytes that belong to none."""
        if self._running is not None and not self.cycle.response_complete:
            self._cancel()
            return
        self._table.mark_idle(self)
        if self._deadline is None:
            self._expect(self._deadlines.first_byte)

    def on_message_begin(self) -> None:
        self._next = RequestPart.HEAD
        self._head_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._next is not RequestPart.HEAD:
            raise ValueError("a body has no headers of its own here")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > HEAD_BYTES or len(self.headers) > HEAD_LINES:
            self._fault = _too_large()
            raise ValueError("the head is too large")
        if len(self.pipeline) >= PIPELINED:
            self.drop()
            raise ValueError("too many requests were sent ahead")
        self._table.mark_active(self)
        self._next = RequestPart.BODY
        self._body_bytes = self._chunks = self._wire_bytes = 0
        self._body_began = self.loop.time()
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_chunk_header(self) -> None:
        self._chunks += 1
        if self._chunks > CHUNKS:
            self.drop()
            raise ValueError("the chunks are too small")

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._body_bytes += len(body)
        if self._body_bytes > SMALL_BODY and not self.cycle.response_complete:
            self._table.receiving.set(self, self._body_bytes)
            if self.cycle.scope["method"] not in WITH_BODY:
                self.drop()

    def on_message_complete(self) -> None:
        self._next = RequestPart.NOTHING
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._body_bytes > SMALL_BODY:
            self._table.receiving.set(self, 0)
        # The rest of a body that was refused is read for a while, so that the answer arrives.
        self._body_began = self.loop.time() - self._deadlines.body + self._deadlines.linger
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()
        elif self._next is RequestPart.NOTHING and self.timeout_keep_alive_task is not None:
            self._table.mark_idle(self)

    @property
    def holds_on(self) -> bool:
        """Whether the client, and not this process, has to act next."""
        return self._next is RequestPart.BODY or self.flow.write_paused

    # Deadlines

    def _expect(self, seconds: float) -> None:
        """Drop the connection unless something arrives in time."""
        self._cancel()
        self._deadline = self.loop.call_later(seconds, self._late, seconds)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self, seconds: float) -> None:
        if self.flow.read_paused:  # it is this process that has not read on
            self._expect(seconds)
        else:
            self.drop()

    # Answers that nobody reads

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_bytes = self.transport.get_write_buffer_size()
        self._reader = self.loop.call_later(self._deadlines.reading, self._check_reader)
        self._table.unread.set(self, self._unread_bytes)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._table.unread.set(self, 0)
        if self._reader is not None:
            self._reader.cancel()

    def _check_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        if left > self._unread_bytes - READER_BYTES:
            self.drop()
            return
        self._unread_bytes = left
        self._table.unread.set(self, left)
        self._reader = self.loop.call_later(self._deadlines.reading, self._check_reader)


def _too_large() -> Mistake:
    return Mistake(Problem.HEAD_TOO_LARGE, limit=HEAD_BYTES, lines=HEAD_LINES)
