"""Both flavours of a device over real HTTP on the loopback, with an honest and a broken server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ldpstream.device import AsyncDevice, Device, Unreachable
from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.device.exchange import LARGEST_ANSWER, Request, Response
from ldpstream.device.session import PollResult
from ldpstream.device.transport import HttpTransport
from tests.device.collectors import TOKEN, Bench, MemoryCollector, ScriptedWitness, a_round

Behaviour = Callable[[BaseHTTPRequestHandler, Request], None]


@dataclass
class LoopbackServer:
    """A collector in memory behind a real socket; `behaviour` says how it answers."""

    collector: MemoryCollector
    behaviour: Behaviour | None = None
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> LoopbackServer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                outer.connections += 1

            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.title(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, body)
                outer.requests.append(request)
                response = outer.collector._respond(request)
                if outer.behaviour is not None:
                    outer.behaviour(self, request)
                else:
                    answer(self, response)

            do_GET = do_POST = handle_one  # noqa: N815

            def log_message(self, *arguments: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            def handle_error(self, *arguments: Any) -> None:
                """A client that hangs up is what some of these tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *arguments: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"


def answer(handler: BaseHTTPRequestHandler, response: Response) -> None:
    handler.send_response(response.status)
    handler.send_header("Content-Length", str(len(response.body)))
    handler.end_headers()
    handler.wfile.write(response.body)


def write(raw: bytes) -> Behaviour:
    """Answer with these bytes, and hang up."""

    def behave(handler: BaseHTTPRequestHandler, request: Request) -> None:
        handler.wfile.write(raw)
        handler.close_connection = True

    return behave


@pytest.fixture
def server(bench: Bench) -> Iterator[LoopbackServer]:
    with LoopbackServer(bench.collector) as running:
        yield running


class Blocking:
    """The blocking flavour."""

    def send(self, url: str, *requests: Request) -> list[Response]:
        transport = HttpTransport()
        try:
            return [transport.send(url, request) for request in requests]
        finally:
            transport.close()

    def enrol_and_poll(self, bench: Bench, url: str, polls: int = 1) -> PollResult:
        parts: dict[str, Any] = {"clock": bench.clock, "witness": ScriptedWitness()}
        new = not bench.path.exists()
        made = Device.create(bench.path, first_install=True, **parts) if new else None
        with made or Device.open(bench.path, **parts) as device:
            device.enrol(url, "regions", TOKEN)
            device.observe("east")
            for _ in range(polls):
                heard = device.poll()
        return heard


class OnALoop:
    """The asyncio flavour."""

    def send(self, url: str, *requests: Request) -> list[Response]:
        async def run() -> list[Response]:
            transport = AsyncHttpTransport()
            try:
                return [await transport.send(url, request) for request in requests]
            finally:
                await transport.close()

        return asyncio.run(run())

    def enrol_and_poll(self, bench: Bench, url: str, polls: int = 1) -> PollResult:
        async def run() -> PollResult:
            parts: dict[str, Any] = {"clock": bench.clock, "witness": ScriptedWitness()}
            new = not bench.path.exists()
            made = AsyncDevice.create(bench.path, first_install=True, **parts) if new else None
            async with made or AsyncDevice.open(bench.path, **parts) as device:
                await device.enrol(url, "regions", TOKEN)
                device.observe("east")
                for _ in range(polls):
                    heard = await device.poll()
                return heard

        return asyncio.run(run())


@pytest.fixture(params=[Blocking, OnALoop])
def flavour(request: pytest.FixtureRequest) -> Blocking | OnALoop:
    chosen: Blocking | OnALoop = request.param()
    return chosen


Flavour = Blocking | OnALoop


def test_a_report_goes_all_the_way(bench: Bench, server: LoopbackServer, flavour: Flavour) -> None:
    bench.collector.rounds = [a_round(1)]
    heard = flavour.enrol_and_poll(bench, server.url, polls=3)
    assert len(bench.collector.sent) == 1
    assert heard.undelivered == []
    assert bench.collector.sent[0].on_disk_first
    assert [request.method for request in server.requests] == ["POST", "GET", "POST", "GET", "GET"]
    assert server.connections == 1  # kept alive


def test_lost_responses_give_one_payload(
    bench: Bench, server: LoopbackServer, flavour: Flavour
) -> None:
    """The server reads every report and hangs up without a word."""
    bench.collector.rounds = [a_round(1, deadline_ms=bench.clock.wall + 1)]

    def hang_up(handler: BaseHTTPRequestHandler, request: Request) -> None:
        if request.path.endswith("/reports"):
            handler.close_connection = True
        else:
            answer(handler, bench.collector._respond(request))

    server.behaviour = hang_up
    heard = flavour.enrol_and_poll(bench, server.url)
    for _ in range(3):
        flavour.enrol_and_poll(bench, server.url)
    assert len(heard.undelivered) == 1
    assert len(bench.collector.sent) >= 4
    assert len({sent.report for sent in bench.collector.sent}) == 1


GET = Request("GET", "/v1/streams/regions/rounds", patience=0.3)


def test_an_idle_connection_that_was_closed_is_opened_again(
    server: LoopbackServer, flavour: Flavour
) -> None:
    def close_after(handler: BaseHTTPRequestHandler, request: Request) -> None:
        answer(handler, Response(200, {}, b"{}"))  # says nothing of closing,
        handler.close_connection = True  # and does

    server.behaviour = close_after
    assert [one.body for one in flavour.send(server.url, GET, GET, GET)] == [b"{}"] * 3


def test_chunks_are_put_together(server: LoopbackServer, flavour: Flavour) -> None:
    server.behaviour = write(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        b"3;note=x\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n"
    )
    (response,) = flavour.send(server.url, GET)
    assert (response.status, response.body) == (200, b"abc0123456789")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (LARGEST_ANSWER + 1)
        + bytes(LARGEST_ANSWER + 1),
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    ],
    ids=["nothing", "nonsense", "short", "bad chunk", "endless", "long head"],
)
def test_an_answer_that_is_none_is_unreachable(
    server: LoopbackServer, flavour: Flavour, raw: bytes
) -> None:
    server.behaviour = write(raw)
    with pytest.raises(Unreachable):
        flavour.send(server.url, GET)


def test_silence_is_unreachable(server: LoopbackServer, flavour: Flavour) -> None:
    done = threading.Event()

    def say_nothing(handler: BaseHTTPRequestHandler, request: Request) -> None:
        done.wait(5)

    server.behaviour = say_nothing
    try:
        with pytest.raises(Unreachable):
            flavour.send(server.url, GET)
    finally:
        done.set()


@pytest.mark.parametrize("host", ["collector..invalid", "a" * 70 + ".invalid"])
def test_a_host_that_cannot_be_one_is_unreachable(flavour: Flavour, host: str) -> None:
    with pytest.raises(Unreachable, match="does not answer"):
        flavour.send(f"http://{host}", GET)


@pytest.mark.parametrize("path", ["/→", "/é\ud800"])
def test_a_path_that_no_request_can_be_made_of_is_unreachable(
    server: LoopbackServer, flavour: Flavour, path: str
) -> None:
    with pytest.raises(Unreachable, match="does not answer"):
        flavour.send(server.url + path, GET)
    assert server.requests == []


def test_nobody_there_is_unreachable(flavour: Flavour) -> None:
    with pytest.raises(Unreachable, match="does not answer"):
        flavour.send("http://127.0.0.1:9", GET)
