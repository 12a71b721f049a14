"""A client that breaks a limit loses its connection, and no other client notices.

The deadlines are short here; `tests/hostile/test_strangers.py` attacks a real collector.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from ldpstream.collector.api.connection import (
    HEAD_BYTES,
    HEAD_LINES,
    PIPELINED,
    ConnectionTable,
    Deadlines,
    GuardedProtocol,
)
from ldpstream.collector.api.limits import read_body
from ldpstream.collector.api.server import proxies_of
from ldpstream.collector.config import Limits
from ldpstream.errors import Mistake

LONG = 60.0
NEVER = Deadlines(LONG, LONG, LONG, LONG, LONG, LONG)
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
ANSWER = b"x" * (8 << 20)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Read the body, and answer with its length, or with more than socket buffers hold."""
    body = b""
    if scope["method"] == "POST":
        try:
            body = await read_body(receive, 4 << 20)
        except Mistake:
            body = b"refused"
    content = ANSWER if scope["path"] == "/long" else b"%d" % len(body)
    headers = [(b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


@dataclass
class Client:
    """One connection to the server under test."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> bytes:
        """Read one answer; its body, or its status line if that is not 200."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        body = await self.reader.readexactly(length)
        status = head.split(b"\r\n")[0]
        return body if b" 200 " in status else status

    async def rest(self) -> int:
        """Read to the end of the connection; return how many bytes came."""
        heard = 0
        with contextlib.suppress(ConnectionError):
            while part := await self.reader.read(1 << 16):
                heard += len(part)
        return heard

    async def ends(self) -> bool:
        """Wait for the end of the connection."""
        return await self.rest() >= 0


@dataclass
class Site:
    """The server under test."""

    table: ConnectionTable
    port: int
    clients: list[Client] = field(default_factory=list)

    async def connect(self, lazy: bool = False, source: str = "127.0.0.1") -> Client:
        plain = socket.socket()
        plain.bind((source, 0))
        if lazy:  # little is read before anyone asks for it
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect(("127.0.0.1", self.port))
        limit = 1 << 10 if lazy else 1 << 20
        self.clients.append(Client(*await asyncio.open_connection(sock=plain, limit=limit)))
        return self.clients[-1]

    async def until(self, condition: Callable[[ConnectionTable], bool]) -> None:
        """Let the server work until its table says so."""
        while not condition(self.table):
            await asyncio.sleep(0.001)


@asynccontextmanager
async def server(
    limits: Limits | None = None, deadlines: Deadlines = NEVER, proxies: str = ""
) -> AsyncIterator[Site]:
    """Serve with these limits."""
    table = ConnectionTable(limits or Limits(), proxies_of(proxies), deadlines)
    config = uvicorn.Config(application, log_config=None, access_log=False, ws="none")
    config.load()
    make = partial(GuardedProtocol, table, config=config, server_state=ServerState(), app_state={})
    listening = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    site = Site(table, listening.sockets[0].getsockname()[1])
    try:
        async with asyncio.timeout(LONG):
            yield site
    finally:
        for one in site.clients:
            one.writer.transport.abort()
        listening.close()


def run(attack: Callable[[], Awaitable[None]]) -> None:
    async def call() -> None:
        await attack()

    asyncio.run(call())


@pytest.mark.parametrize(
    ("limit", "sent"),
    [
        ("first_byte", b""),
        ("first_byte", b"\r\n"),
        ("head", b"GET / HTTP/1.1\r\nHost"),
        ("pause", POST % 10 + b"12345"),
        ("body", POST % 10 + b"12345"),
    ],
)
def test_who_takes_too_long_is_cut_off(limit: str, sent: bytes) -> None:
    async def attack() -> None:
        async with server(deadlines=replace(NEVER, **{limit: 0.05})) as site:
            slow, honest = await site.connect(), await site.connect()
            await honest.send(GET)
            assert await honest.answer() == b"0"
            if sent:
                await slow.send(sent)
            if limit == "body":  # looked at when something comes
                await asyncio.sleep(0.06)
                await slow.send(b"6")
            assert await slow.ends()
            await honest.send(GET)
            assert await honest.answer() == b"0"

    run(attack)


def test_a_body_in_pieces_is_taken_as_long_as_they_come() -> None:
    async def attack() -> None:
        async with server() as site:
            client = await site.connect()
            await client.send(POST % 6)
            for _ in range(6):
                await client.send(b"x")
                await asyncio.sleep(0)
            assert await client.answer() == b"6"

    run(attack)


@pytest.mark.parametrize(
    "head",
    [
        GET[:-2] + b"X: " + b"x" * HEAD_BYTES + b"\r\n\r\n",
        GET[:-2] + b"X: y\r\n" * HEAD_LINES + b"\r\n",
        b"GET /" + b"x" * HEAD_BYTES + GET[5:],
        b"GET /" + b"x" * (HEAD_BYTES + 1),
    ],
    ids=["a long header", "many headers", "a long address", "a head without an end"],
)
def test_a_large_head_is_refused(head: bytes) -> None:
    async def attack() -> None:
        async with server() as site:
            client = await site.connect()
            await client.send(head)
            assert await client.answer() == b"HTTP/1.1 431 Request Header Fields Too Large"
            assert await client.ends()

    run(attack)


def test_a_usual_head_is_taken() -> None:
    async def attack() -> None:
        async with server() as site:
            client = await site.connect()
            await client.send(GET[:-2] + b"X: yyyyyyyyyy\r\n" * (HEAD_LINES - 1) + b"\r\n")
            assert await client.answer() == b"0"

    run(attack)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        GET[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\n\r\n",
        b"GET  HTTP/9\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused(request_bytes: bytes) -> None:
    async def attack() -> None:
        async with server() as site:
            client = await site.connect()
            await client.send(request_bytes)
            heard = await client.reader.read(1 << 16)
            assert heard.startswith((b"HTTP/1.1 400 Bad Request", b"HTTP/1.1 200 OK"))
            assert await client.ends()

    run(attack)


def test_few_requests_may_be_sent_ahead_and_many_may_not() -> None:
    async def attack() -> None:
        async with server() as site:
            patient, hasty = await site.connect(), await site.connect()
            await patient.send(GET * PIPELINED)
            for _ in range(PIPELINED):
                assert await patient.answer() == b"0"
            await hasty.send(GET * 20 * PIPELINED)
            assert await hasty.ends()

    run(attack)


def test_idle_connections_make_room_for_new_ones() -> None:
    async def attack() -> None:
        async with server(Limits(connections=2)) as site:
            first, second = await site.connect(), await site.connect()
            await second.send(GET)
            assert await second.answer() == b"0"
            third = await site.connect()
            assert await first.ends()
            await third.send(GET)
            assert await third.answer() == b"0"

    run(attack)


def test_when_all_are_at_work_a_new_connection_is_refused() -> None:
    async def attack() -> None:
        async with server(Limits(connections=2)) as site:
            working = [await site.connect(), await site.connect()]
            for one in working:
                await one.send(POST % 2 + b"1")
            await site.until(lambda table: not table.idle)
            refused = await site.connect()
            assert await refused.answer() == b"HTTP/1.1 429 Too Many Requests"
            assert await refused.ends()
            for one in working:
                await one.send(b"2")
                assert await one.answer() == b"2"

    run(attack)


@pytest.mark.parametrize(("proxies", "stays"), [("", False), ("127.0.0.0/8", True)])
def test_an_address_has_its_share_of_connections(proxies: str, stays: bool) -> None:
    """One that has more loses its oldest idle one; a proxy speaks for many."""

    async def attack() -> None:
        async with server(Limits(connections_per_address=1), proxies=proxies) as site:
            first, second = await site.connect(), await site.connect()
            await second.send(GET)
            assert await second.answer() == b"0"
            if stays:
                await first.send(GET)
                assert await first.answer() == b"0"
            else:
                assert await first.ends()

    run(attack)


def test_the_oldest_unfinished_body_makes_room() -> None:
    async def attack() -> None:
        async with server(Limits(receiving_bytes=100_000)) as site:
            old, new = await site.connect(), await site.connect()
            await old.send(POST % 90_000 + bytes(60_000))
            await site.until(lambda table: table.receiving.total == 60_000)
            await new.send(POST % 60_000 + bytes(60_000))
            assert await new.answer() == b"60000"
            assert await old.ends()

    run(attack)


def test_an_address_that_holds_much_makes_room_for_one_that_holds_little() -> None:
    """However long the honest one has taken already."""

    async def attack() -> None:
        async with server(Limits(receiving_bytes=100_000)) as site:
            honest, flood = await site.connect(), await site.connect(source="127.0.0.2")
            await honest.send(POST % 40_000 + bytes(30_000))
            await site.until(lambda table: table.receiving.total == 30_000)
            await flood.send(POST % 90_000 + bytes(80_000))
            assert await flood.ends()
            await honest.send(bytes(10_000))
            assert await honest.answer() == b"40000"

    run(attack)


def test_who_does_not_read_is_cut_off() -> None:
    async def attack() -> None:
        async with server(deadlines=replace(NEVER, reading=0.2)) as site:
            lazy, honest = await site.connect(lazy=True), await site.connect()
            for one in (lazy, honest):
                await one.send(GET.replace(b"/ ", b"/long ", 1))
            assert len(await honest.answer()) == len(ANSWER)
            await site.until(lambda table: table.number == 1)
            assert await lazy.rest() < len(ANSWER)

    run(attack)


def test_unread_answers_are_bounded() -> None:
    """The oldest makes room, long before its deadline."""

    async def attack() -> None:
        async with server(Limits(unread_bytes=12 << 20)) as site:
            clients = [await site.connect(lazy=True) for _ in range(3)]
            for one in clients:
                await one.send(GET.replace(b"/ ", b"/long ", 1))
                await one.reader.readexactly(100)  # its answer is under way
            assert 100 + await clients[0].rest() < len(ANSWER)

    run(attack)


def test_a_connection_that_was_closed_does_not_linger() -> None:
    """Whoever asks for the end after an answer, and never reads it, holds nothing for long."""

    async def attack() -> None:
        async with server(deadlines=replace(NEVER, linger=0.1)) as site:
            client = await site.connect(lazy=True)
            await client.send(GET[:-2].replace(b"/ ", b"/long ", 1) + b"Connection: close\r\n\r\n")
            await site.until(lambda table: table.number == 1)
            await site.until(lambda table: table.number == 0)
            assert await client.rest() < len(ANSWER)

    run(attack)


def test_a_refused_body_is_answered_all_the_same() -> None:
    async def attack() -> None:
        async with server() as site:
            client = await site.connect()
            await client.send(POST % (5 << 20) + bytes(5 << 20))
            assert await client.answer() == b"7"  # the length of "refused"

    run(attack)
