"""Both transports against servers that do what a hostile one would: nothing holds a device."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import count, pairwise
from typing import NoReturn, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.device import Unreachable, http1
from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.device.exchange import (
    LARGEST_ANSWER,
    Address,
    Conversation,
    Pause,
    Request,
    Response,
    drive,
    drive_async,
    sleep_async,
    sleep_blocking,
)
from ldpstream.device.http1 import AnswerReader, BadAnswer, write_request
from ldpstream.device.transport import HttpTransport
from tests.device.scripted import JOIN_SECONDS, PEM, Script, ScriptedServer, Talk

T = TypeVar("T")
Send = Callable[..., list[Response]]

SHORT = Request("GET", "/v1/streams/regions/rounds", patience=0.5)
"""Ends because its patience runs out."""
LONG = replace(SHORT, patience=3600)
"""Ends for another reason."""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def blocking(url: str, *requests: Request, tls: ssl.SSLContext | None = None) -> list[Response]:
    transport = HttpTransport(tls)
    try:
        return [transport.send(url, request) for request in requests]
    finally:
        transport.close()


def on_a_loop(url: str, *requests: Request, tls: ssl.SSLContext | None = None) -> list[Response]:
    async def run() -> list[Response]:
        transport = AsyncHttpTransport(tls)
        try:
            return [await transport.send(url, request) for request in requests]
        finally:
            await transport.close()

    return asyncio.run(run())


def in_time(call: Callable[[], T]) -> T:
    """Call it in a thread, so that a test of something that never ends ends."""
    outcome: list[T] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(JOIN_SECONDS)
    assert not thread.is_alive(), "it is still held"
    if faults:
        raise faults[0]
    return outcome[0]


@pytest.fixture(params=[blocking, on_a_loop])
def send(request: pytest.FixtureRequest) -> Send:
    chosen: Send = request.param
    return lambda *given, **options: in_time(lambda: chosen(*given, **options))


def after_the_request(act: Script) -> Script:
    def script(talk: Talk) -> None:
        while talk.hear():
            act(talk)

    return script


def saying(*pieces: bytes) -> Script:
    """Answer each request with these bytes, piece by piece."""

    def act(talk: Talk) -> None:
        for piece in pieces:
            talk.say(piece)

    return after_the_request(act)


def saying_once(answer: bytes) -> Script:
    """Answer one request, and hang up."""

    def script(talk: Talk) -> None:
        talk.hear()
        talk.say(answer)

    return script


def dripping(first: bytes, again: bytes) -> Script:
    def act(talk: Talk) -> None:
        talk.say(first)
        talk.drip(again)

    return after_the_request(act)


def flooding(first: bytes, again: bytes) -> Script:
    def act(talk: Talk) -> None:
        talk.say(first)
        talk.flood(again)

    return after_the_request(act)


SLOW = {
    "nothing": dripping(b"", b""),
    "a head that drips": dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "a body that drips": dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x"),
    "a body without a length that drips": dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
    "chunks that drip": dripping(CHUNKED, b"1\r\nx\r\n"),
    "trailers that drip": dripping(CHUNKED + b"0\r\nX: ", b"x"),
    "a request that nobody reads": lambda talk: talk.drip(b""),
}


@pytest.mark.parametrize("script", SLOW.values(), ids=SLOW)
def test_a_server_that_takes_its_time_does_not_hold_a_device(send: Send, script: Script) -> None:
    large = replace(SHORT, method="POST", body=bytes(30 << 20))  # more than a socket's buffers
    with ScriptedServer(script) as server, pytest.raises(Unreachable, match="takes too long"):
        send(server.url, large if script is SLOW["a request that nobody reads"] else SHORT)


ENDLESS = {
    "100 Continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "never a final one"),
    "103 Early Hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", "never a final one"),
    "header lines": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", "too long"),
    "a header": (b"HTTP/1.1 200 OK\r\nX: ", b"y" * 1000, "too long"),
    "a body": (b"HTTP/1.1 200 OK\r\n\r\n", bytes(1 << 16), "no end"),
    "chunks": (CHUNKED, b"10000\r\n" + bytes(1 << 16) + b"\r\n", "no end"),
    "the size of a chunk": (CHUNKED, b"0", "too long"),
    "an extension of a chunk": (CHUNKED + b"1;", b"x", "too long"),
    "trailers": (CHUNKED + b"0\r\n", b"X: y\r\n", "no end"),
}


@pytest.mark.parametrize(("first", "again", "why"), ENDLESS.values(), ids=ENDLESS)
def test_an_answer_without_an_end_is_refused(
    send: Send, first: bytes, again: bytes, why: str
) -> None:
    script = flooding(first, again)
    with ScriptedServer(script) as server, pytest.raises(Unreachable, match=why):
        send(server.url, LONG)


def test_a_hundred_continue_now_and_then_does_not_hold_a_device(send: Send) -> None:
    script = dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n")
    with ScriptedServer(script) as server, pytest.raises(Unreachable):
        send(server.url, SHORT)


SHORT_ANSWERS = {
    "of another length": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    "without the last chunk": CHUNKED + b"3\r\nabc\r\n",
    "without the end of trailers": CHUNKED + b"0\r\n",
    "in the head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "before the answer": b"HTTP/1.1 100 Continue\r\n\r\n",
}


@pytest.mark.parametrize("answer", SHORT_ANSWERS.values(), ids=SHORT_ANSWERS)
def test_an_answer_that_is_cut_short_is_none(send: Send, answer: bytes) -> None:
    with ScriptedServer(saying_once(answer)) as server:
        with pytest.raises(Unreachable, match="cut short"):
            send(server.url, LONG)
        assert server.connections == 1  # it began to answer, so the request is not sent again


def test_a_body_that_would_be_too_large_is_not_read(send: Send) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (LARGEST_ANSWER + 1)
    with ScriptedServer(saying(answer)) as server, pytest.raises(Unreachable, match="too large"):
        send(server.url, LONG)


def test_the_largest_body_is_read(send: Send) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGEST_ANSWER
    with ScriptedServer(saying(answer, bytes(LARGEST_ANSWER))) as server:
        assert [len(one.body) for one in send(server.url, LONG, LONG)] == 2 * [LARGEST_ANSWER]
        assert server.connections == 1


def test_a_body_may_end_with_the_connection(send: Send) -> None:
    script = saying_once(b"HTTP/1.1 200 OK\r\nServer: old\r\n\r\nall of it")
    with ScriptedServer(script) as server:
        (response,) = send(server.url, LONG)
    assert (response.status, response.body) == (200, b"all of it")
    assert response.headers == {"server": "old"}


def test_what_comes_before_the_answer_is_skipped(send: Send) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    script = saying(b"HTTP/1.1 100 Continue\r\n\r\n", early, OK)
    with ScriptedServer(script) as server:
        assert [one.body for one in send(server.url, LONG, LONG)] == [b"{}", b"{}"]
        assert server.connections == 1


def test_chunks_and_trailers_leave_a_connection_that_can_be_used(send: Send) -> None:
    answer = CHUNKED + b"3;note=x\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n"
    with ScriptedServer(saying(answer)) as server:
        bodies = [one.body for one in send(server.url, LONG, LONG)]
        assert bodies == 2 * [b"abc0123456789"]
        assert server.connections == 1


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body_is_complete(send: Send, status: int) -> None:
    with ScriptedServer(saying(b"HTTP/1.1 %d None\r\n\r\n" % status)) as server:
        assert [one.status for one in send(server.url, LONG, LONG)] == [status, status]
        assert server.connections == 1


def test_a_connection_that_was_closed_between_requests_is_opened_again(send: Send) -> None:
    with ScriptedServer(saying_once(OK)) as server:
        assert len(send(server.url, LONG, LONG, LONG)) == 3
        assert server.connections == 3


def test_sending_again_takes_of_the_same_patience(send: Send) -> None:
    def script(talk: Talk) -> None:
        talk.hear()
        if talk.number == 0:
            talk.say(OK)
            talk.hear()  # and it hangs up
        else:
            talk.drip(b"")

    with ScriptedServer(script) as server:
        with pytest.raises(Unreachable, match="takes too long"):
            send(server.url, LONG, SHORT)
        assert server.connections == 2


def test_a_server_that_always_hangs_up_is_asked_twice_at_most(send: Send) -> None:
    def script(talk: Talk) -> None:
        talk.hear()
        if talk.number == 0:
            talk.say(OK)
            talk.hear()

    with ScriptedServer(script) as server:
        with pytest.raises(Unreachable, match="disconnected"):
            send(server.url, LONG, LONG)
        assert server.connections == 2


def test_an_answer_to_nothing_is_not_taken_for_the_next_one(send: Send) -> None:
    """Two answers to one request; those to the second connection differ."""

    def act(talk: Talk) -> None:
        talk.say((OK + OK).replace(b"{}", b"[]") if talk.number == 0 else OK)

    with ScriptedServer(after_the_request(act)) as server:
        assert [one.body for one in send(server.url, LONG, LONG)] == [b"[]", b"{}"]


def test_an_early_answer_to_a_large_request_is_read(send: Send) -> None:
    """A collector may say that a batch is too large before it has read it."""

    def script(talk: Talk) -> None:
        talk.hear()
        talk.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        while talk.line.recv(1 << 16):
            pass

    large = replace(LONG, method="POST", body=bytes(30 << 20))
    with ScriptedServer(script) as server:
        assert [one.status for one in send(server.url, large)] == [413]


# Told to stop


def test_told_to_stop_before_it_begins_nothing_is_sent(send: Send) -> None:
    with ScriptedServer(saying(OK)) as server:
        with pytest.raises(Unreachable, match="told to stop"):
            send(server.url, replace(LONG, stop=lambda: True))
        assert server.connections == 0


@pytest.mark.parametrize(
    "first", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"]
)
def test_told_to_stop_while_it_waits_or_reads(send: Send, first: bytes) -> None:
    reached = threading.Event()

    def act(talk: Talk) -> None:
        talk.say(first)
        reached.set()
        talk.drip(b"x" if first else b"")

    script = after_the_request(act)
    with ScriptedServer(script) as server, pytest.raises(Unreachable, match="told to stop"):
        send(server.url, replace(LONG, stop=reached.is_set))


def test_told_to_stop_during_a_handshake(send: Send) -> None:
    reached = threading.Event()

    def script(talk: Talk) -> None:
        talk.line.recv(1)
        reached.set()
        talk.over.wait()

    with ScriptedServer(script) as server:
        url = server.url.replace("http:", "https:")
        with pytest.raises(Unreachable, match="told to stop"):
            send(url, replace(LONG, stop=reached.is_set))


def test_told_to_stop_while_it_connects(send: Send) -> None:
    """The queue of the listening socket is full, so the system does not answer."""
    looks = count()
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(8):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(Unreachable, match="told to stop"):
            send(url, replace(LONG, stop=lambda: next(looks) >= 4))


def pausing(pause: Pause) -> Conversation[str]:
    yield pause
    return "over"


def nobody_is_asked(request: Request) -> NoReturn:
    raise AssertionError(request)


def test_a_pause_ends_when_told_to_stop() -> None:
    looks = count()
    pause = Pause(3600, stop=lambda: next(looks) >= 2)
    assert in_time(lambda: drive(pausing(pause), nobody_is_asked)) == "over"
    looks = count()
    assert in_time(lambda: asyncio.run(drive_async(pausing(pause), nobody_is_asked))) == "over"


def test_sleeping_takes_the_time_it_takes() -> None:
    """A look at the stop may end it early; nothing else does."""
    looks = count()
    sleep_blocking(0.01, lambda: next(looks) < 0)
    asyncio.run(sleep_async(0.01, lambda: next(looks) < 0))
    assert next(looks) >= 4  # before and after, twice


def test_a_stop_is_neither_shown_nor_compared() -> None:
    stopped = replace(LONG, stop=lambda: True)
    assert stopped == LONG
    assert "stop" not in repr(stopped) + repr(Pause(1, lambda: True))
    assert Pause(1, lambda: True) == Pause(1)


# Connections


def test_idle_connections_are_limited() -> None:
    """Three requests at once; all three connections are open until all have been heard."""
    heard = threading.Barrier(3)

    def act(talk: Talk) -> None:
        heard.wait(JOIN_SECONDS)
        talk.say(OK)

    async def run(url: str) -> int:
        transport = AsyncHttpTransport(most_idle=1)
        await asyncio.gather(*(transport.send(url, LONG) for _ in range(3)))
        kept = len(transport._idle[url])
        await transport.close()
        return kept

    with ScriptedServer(after_the_request(act)) as server:
        assert in_time(lambda: asyncio.run(run(server.url))) == 1
        assert server.connections == 3


def test_an_idle_connection_that_was_closed_is_forgotten() -> None:
    async def run(url: str) -> None:
        transport = AsyncHttpTransport()
        await transport.send(url, LONG)
        while transport._idle[url]:
            await asyncio.sleep(0)
        await transport.close()

    with ScriptedServer(saying_once(OK)) as server:
        in_time(lambda: asyncio.run(run(server.url)))


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=PEM)


def test_tls_carries_requests_on_one_connection(send: Send) -> None:
    with ScriptedServer(saying(OK), secure=True) as server:
        assert [one.body for one in send(server.url, LONG, LONG, tls=trusting())] == 2 * [b"{}"]
        assert server.connections == 1


def test_tls_that_drips_does_not_hold_a_device(send: Send) -> None:
    script = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x")
    server, short = ScriptedServer(script, secure=True), replace(SHORT, patience=2)
    with server, pytest.raises(Unreachable, match="takes too long"):
        send(server.url, short, tls=trusting())


def test_a_certificate_that_nobody_vouches_for_is_refused(send: Send) -> None:
    server = ScriptedServer(saying(OK), secure=True)
    with server, pytest.raises(Unreachable, match="certificate"):
        send(server.url, LONG)


def test_a_body_that_the_network_cuts_short_is_none_under_tls() -> None:
    """The end of the connection is the end of the body only if the server says so, under TLS."""
    script = saying_once(b"HTTP/1.1 200 OK\r\n\r\nnot all of")
    with ScriptedServer(script, secure=True) as server, pytest.raises(Unreachable):
        in_time(lambda: blocking(server.url, LONG, tls=trusting()))


def test_a_transport_makes_one_tls_context(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks twice over TLS: the first connection answers one request and is closed."""
    made = count()

    def make() -> ssl.SSLContext:
        next(made)
        return trusted

    trusted = trusting()
    monkeypatch.setattr(ssl, "create_default_context", make)
    with ScriptedServer(saying_once(OK), secure=True) as server:
        assert len(send(server.url, LONG, LONG)) == 2
        assert server.connections == 2
    assert next(made) == 1


# The reader and the writer, without a socket


def read(*pieces: bytes) -> Response:
    reader = AnswerReader()
    for piece in pieces:
        if (response := reader.feed(piece)) is not None:
            return response
    return reader.end()


def read_or_refused(*pieces: bytes) -> Response | str:
    try:
        return read(*pieces)
    except BadAnswer as refusal:
        return str(refusal)


AMBIGUOUS = {
    "two lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n",
    "one length twice": b"Content-Length: 2\r\nContent-Length: 2\r\n",
    "a list of lengths": b"Content-Length: 2, 2\r\n",
    "a length and chunks": b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
    "chunks twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "gzip, chunked": b"Transfer-Encoding: gzip, chunked\r\n",
    "identity": b"Transfer-Encoding: identity\r\n",
    "xchunked": b"Transfer-Encoding: xchunked\r\n",
    "vertical tab": b"Transfer-Encoding: \x0bchunked\r\n",
    "no length": b"Content-Length:\r\n",
    "negative": b"Content-Length: -2\r\n",
    "signed": b"Content-Length: +2\r\n",
    "hexadecimal": b"Content-Length: 0x2\r\n",
    "underscore": b"Content-Length: 1_0\r\n",
    "fraction": b"Content-Length: 2.0\r\n",
    "digits of another script": "Content-Length: ²\r\n".encode("latin-1"),
    "many digits": b"Content-Length: " + b"0" * 5000 + b"2\r\n",
    "folded": b"Content-Length: 2\r\nX: a\r\n b\r\n",
    "folded at once": b" X: a\r\nContent-Length: 2\r\n",
    "space before the colon": b"Content-Length : 2\r\n",
    "no colon": b"Content-Length\r\n",
    "no name": b": 2\r\n",
    "bare line feed": b"X: a\nContent-Length: 2\r\n",
    "bare carriage return": b"X: a\rContent-Length: 2\r\n",
    "null": b"X: a\x00\r\n",
    "too many": b"X: a\r\n" * (http1.MOST_HEADERS + 1),
}


@pytest.mark.parametrize("headers", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_headers_that_can_be_read_in_two_ways_are_refused(headers: bytes) -> None:
    with pytest.raises(BadAnswer):
        read(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n{}")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"HTTP/1.1",
        b"HTTP/2 200 OK",
        b"HTTP/1.10 200 OK",
        b"http/1.1 200 OK",
        b"HTTP/1.1  200 OK",
        b"HTTP/1.1 099 OK",
        b"HTTP/1.1 600 OK",
        b"HTTP/1.1 +20 OK",
        b"HTTP/1.1 2000 OK",
        b"HTTP/1.1 101 Switching Protocols",
        b"\r\nHTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK\n",
        b"ICY 200 OK",
    ],
)
def test_a_line_that_is_no_status_is_refused(line: bytes) -> None:
    with pytest.raises(BadAnswer):
        read(line + b"\r\nContent-Length: 2\r\n\r\n{}")


@pytest.mark.parametrize(
    "chunks",
    [
        b"+2\r\n{}\r\n0\r\n\r\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
        b"0x2\r\n{}\r\n0\r\n\r\n",
        b"0_2\r\n{}\r\n0\r\n\r\n",
        b" 2\r\n{}\r\n0\r\n\r\n",
        b"2 \r\n{}\r\n0\r\n\r\n",
        b"\r\n{}\r\n0\r\n\r\n",
        b"2\n{}\r\n0\r\n\r\n",
        b"2;a\nb\r\n{}\r\n0\r\n\r\n",
        b"1\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}0\r\n\r\n",
        b"2\r\n{}\r\n0\r\n folded: x\r\n\r\n",
        b"2\r\n{}\r\n0\r\nno trailer\r\n\r\n",
        b"F" * 16 + b"\r\n{}\r\n0\r\n\r\n",
        b"1\r\n{\r\n" * (http1.MOST_CHUNKS + 1),
    ],
    ids=lambda chunks: repr(chunks[:12]),
)
def test_chunks_that_can_be_read_in_two_ways_are_refused(chunks: bytes) -> None:
    with pytest.raises(BadAnswer):
        read(CHUNKED + chunks)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 204 None\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 204 None\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\nContent-Length: 2\r\n\r\n{}" + OK,
    ],
)
def test_a_body_where_there_is_none_is_refused(answer: bytes) -> None:
    with pytest.raises(BadAnswer):
        read(answer)


@pytest.mark.parametrize(
    ("answer", "reusable"),
    [
        (OK, True),
        (OK + b"x", False),
        (OK.replace(b"1.1", b"1.0"), False),
        (OK.replace(b"\r\n", b"\r\nConnection: keep-alive, Close\r\n", 1), False),
        (OK.replace(b"\r\n", b"\r\nConnection: keep-alive\r\n", 1), True),
        (b"HTTP/1.1 204 None\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n", True),
    ],
)
def test_what_can_be_told_of_the_connection(answer: bytes, reusable: bool) -> None:
    reader = AnswerReader()
    assert reader.feed(answer) is not None
    assert reader.reusable == reusable


def test_headers_of_one_name_are_joined() -> None:
    response = read(b"HTTP/1.1 200\r\nVia: a\r\nvia:b \r\nEMPTY:\r\nContent-Length: 0\r\n\r\n")
    assert response.headers == {"via": "a, b", "empty": "", "content-length": "0"}


def test_a_head_of_spaces_takes_no_longer_than_another() -> None:
    """One that is quadratic in them would take minutes."""
    spaces = b"X: a" + b" " * (http1.LARGEST_HEAD - 100) + b"\x00\r\n"
    for _ in range(20):
        with pytest.raises(BadAnswer):
            in_time(lambda: read(b"HTTP/1.1 200 OK\r\n" + spaces + b"\r\n"))


SOME_ANSWERS = [
    OK,
    b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + OK,
    CHUNKED + b"3;note=x\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nX: y\r\n\r\nuntil the end",
    b"HTTP/1.1 204 None\r\n\r\n",
    b"HTTP/1.1 503 Later\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n",
]


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """One of some answers, perhaps with a few bytes replaced by others of HTTP's, or cut off."""
    content = bytearray(draw(st.sampled_from(SOME_ANSWERS)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(content)))
        piece = draw(st.sampled_from([b"\r", b"\n", b"\r\n", b":", b" ", b"0", b"\xff", b"x", b""]))
        content[at : at + draw(st.integers(0, 3))] = piece
    return bytes(content)


@given(answers(), st.lists(st.integers(0, 120), max_size=8))
def test_an_answer_is_the_same_however_it_is_cut(answer: bytes, cuts: list[int]) -> None:
    ends = sorted({min(cut, len(answer)) for cut in cuts} | {0, len(answer)})
    pieces = [answer[start:end] for start, end in pairwise(ends)]
    whole = read_or_refused(answer)
    assert read_or_refused(*pieces) == whole
    assert read_or_refused(*(answer[at : at + 1] for at in range(len(answer)))) == whole


@pytest.mark.parametrize("size", range(http1.LARGEST_HEAD - 3, http1.LARGEST_HEAD + 5))
def test_a_limit_is_the_same_however_an_answer_is_cut(size: int) -> None:
    start, end = b"HTTP/1.1 204 None\r\nX: ", b"\r\n\r\n"
    answer = start + b"x" * (size - len(start) - len(end)) + end
    whole = read_or_refused(answer)
    assert isinstance(whole, Response) == (size <= http1.LARGEST_HEAD)
    for cut in range(size - 6, size):
        assert read_or_refused(answer[:cut], answer[cut:]) == whole


@given(st.binary(max_size=200) | answers(), st.binary(max_size=20))
def test_garbage_raises_nothing_but_the_one_error(garbage: bytes, more: bytes) -> None:
    reader = AnswerReader()
    for _ in range(3):
        try:
            reader.feed(garbage + more)
            reader.feed(more)
            reader.end()
        except BadAnswer:
            pass


HERE = Address.of("http://collector.example:8080/ldp")


def test_a_request_as_it_is_written() -> None:
    request = Request("POST", "/v1/x", {"Ldp-Mac": "00"}, b"body")
    assert write_request(HERE, request) == (
        b"POST /ldp/v1/x HTTP/1.1\r\nLdp-Mac: 00\r\nHost: collector.example:8080\r\n"
        b"Content-Length: 4\r\n\r\nbody"
    )
    get = write_request(Address.of("https://[::1]"), Request("GET", "/"))
    assert get == b"GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        Request("GET", "/", {"X": "a\r\nY: b"}),
        Request("GET", "/", {"X": "a\nb"}),
        Request("GET", "/", {"X": "a\rb"}),
        Request("GET", "/", {"X": "a\x00b"}),
        Request("GET", "/", {"X": "→"}),
        Request("GET", "/", {"X\r\nY": "b"}),
        Request("GET", "/", {"X: a\r\nY": "b"}),
        Request("GET", "/", {"X ": "b"}),
        Request("GET", "/", {"": "b"}),
        Request("GET", "/", {"content-Length": "5"}),
        Request("GET", "/", {"Transfer-Encoding": "chunked"}),
        Request("GET", "/", {"HOST": "other"}),
        Request("GET", "/a b"),
        Request("GET", "/a\r\nX: y"),
        Request("GET", "/é"),
        Request("HEAD", "/"),
        Request("GET /", "/"),
        Request("CONNECT", "/"),
    ],
    ids=lambda one: json.dumps([one.method, one.path, dict(one.headers)]),
)
def test_a_request_that_could_be_read_as_another_is_not_written(request_: Request) -> None:
    with pytest.raises(ValueError, match="request"):
        write_request(HERE, request_)
