"""A collector among strangers, who hold no token and no key, and need none to send bytes.

A real process, attacked from outside. Whatever they send: it answers honest clients, does not grow
beyond what is stated, gives back what connections held, and logs no error.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.hostile.strangers import (
    HEALTH,
    PIECE,
    Place,
    Sockets,
    Witness,
    ask,
    connect,
    connections,
    first_line,
    flood,
    head,
    reset,
    send,
    wait_for_ends,
)
from tests.serving import HEAD, CollectorProcess, stream_table
from tests.waiting import eventually

LABELS = 65_536
MASTER = "master secret among strangers"
SECRETS = {"LDPSTREAM_MASTER_SECRET": MASTER, "LDPSTREAM_ENROLMENT_TOKEN": "a token for the fleet"}
CONNECTIONS = 1500
LIMITS = f"""
[collector.limits]
connections = {CONNECTIONS}
connections_per_address = 5000
"""
SLOWEST = 5.0
"""Seconds; beside other work of the machine, the answers measured took tenths."""
UNFINISHED = 40.0
"""Seconds in which a connection that only holds on is ended; the deadlines are 10 s."""
MB = 1 << 20
BODY = 4 * MB
FEED = "/v1/streams/wide/feed?since=1"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    """A small stream and a wide one, each with a round that stays open and with a history."""
    now = datetime.now(UTC)
    start = now - timedelta(hours=20)
    labels = json.dumps([f"label {number}" for number in range(LABELS)])
    streams = (
        stream_table("small", start, interval='"1h"', public="true"),
        stream_table("wide", start, interval='"1h"', labels=labels, oracle='"oue"'),
    )
    folder = tmp_path_factory.mktemp("collector")
    with CollectorProcess.of(folder, HEAD + LIMITS + "\n".join(streams), SECRETS) as running:
        yield running
        assert running.complaints == []


@contextmanager
def witnessed(at: CollectorProcess, most_growth: int) -> Iterator[Witness]:
    """Attack inside; honest clients are served meanwhile, and afterwards nothing is left."""
    place = Place(at.process.pid)
    before, files = place.resident, place.open_files
    with Witness(at.port, place, "small", MASTER.encode()) as witness:
        yield witness
        eventually(lambda: witness.answers[202] >= 3)
    assert set(witness.answers) == {200, 202}, witness.answers
    assert max(witness.seconds) < SLOWEST
    assert witness.largest - before < most_growth
    eventually(lambda: place.open_files <= files + READERS)
    assert at.complaints == []


READERS = 8
"""Connections to the store that readers open once, and that stay."""


def open_round(at: CollectorProcess, stream: str) -> str:
    """Return the name of the stream's round, once it is open."""
    connection = HTTPConnection("127.0.0.1", at.port)
    with closing(connection):
        connection.request("GET", f"/v1/streams/{stream}/rounds?after=0&wait=20")
        name: str = json.loads(connection.getresponse().read())["rounds"][0]["round"]
        return name


def batch(at: CollectorProcess, stream: str = "wide") -> str:
    return f"/v1/streams/{stream}/rounds/{open_round(at, stream)}/batch"


def at_once(number: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(number)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def test_who_only_holds_on_is_ended(collector: CollectorProcess) -> None:
    """All at the same time, since each takes its deadline."""
    chunked = head("POST", batch(collector), "Transfer-Encoding: chunked")
    length = f"Content-Length: {BODY}"
    sent = {
        "a head that does not go on": head("GET", HEALTH)[:-2] + b"X",
        "line ends before a head": b"\r\n",
        "a second head that does not go on": head("GET", HEALTH) + b"GET",
        "a body that does not go on": head("POST", batch(collector), length) + b"x",
        "a body that was refused": head("POST", "/v1/streams/wide/devices", length) + b"x",
        "a chunk that does not go on": chunked + b"ff\r\nx",
        "a size that does not go on": chunked + b"f",
        "a trailer that does not go on": chunked + b"0\r\nX: y",
        "a wait for 100 Continue": head("POST", batch(collector), length, "Expect: 100-continue"),
    }
    upgrade = head("GET", HEALTH, "Connection: upgrade", "Upgrade: websocket")
    refused = head("POST", "/v1/streams/wide/devices", "Content-Length: 100")
    answered = (  # and then sent, after the answer
        (b"200", head("GET", HEALTH), b"\r\n"),
        (b"200", upgrade, b"\0"),
        (b"401", refused, bytes(100)),
    )
    with witnessed(collector, 64 * MB), ExitStack() as stack:
        # Silence first: it fills the table, and has to make room for whoever comes after it.
        held = stack.enter_context(connections(collector.port, CONNECTIONS))
        for data in sent.values():
            held += stack.enter_context(connections(collector.port, 20, data))
        for status, data, more in answered:
            for one in stack.enter_context(connections(collector.port, 20, data)):
                assert one.recv(1 << 16).startswith(b"HTTP/1.1 " + status)
                send(one, more)
                held.append(one)
        assert wait_for_ends(held, UNFINISHED) == 0


def test_slow_heads_make_room(collector: CollectorProcess) -> None:
    """As those do who say nothing: an honest client is served though they have every place."""
    with (
        witnessed(collector, 64 * MB) as witness,
        connections(collector.port, CONNECTIONS, b"GET"),
    ):
        before = witness.answers[202]
        eventually(lambda: witness.answers[202] >= before + 3)


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (head("GET", HEALTH)[:-2], b"X: " + PIECE[:1000].replace(b"\0", b"x") + b"\r\n"),
        (head("GET", HEALTH)[:-2] + b"X: ", PIECE.replace(b"\0", b"x")),
        (head("GET", HEALTH)[:-2], b"X:\r\n" * 50_000),
        (b"GET /", PIECE.replace(b"\0", b"x")),
        (b"", b"\r\n" * 50_000),
    ],
    ids=["headers", "one header", "empty headers", "an address", "line ends"],
)
def test_endless_heads_are_not_taken(
    collector: CollectorProcess, start: bytes, piece: bytes
) -> None:
    with witnessed(collector, 64 * MB):
        assert flood(collector.port, start, piece, 256) < 32


def test_unfinished_bodies_are_bounded(collector: CollectorProcess) -> None:
    """120 times 4 MB, but for the last byte; the bound of all of them is 64 MB."""
    request = head("POST", batch(collector), f"Content-Length: {BODY}")
    with witnessed(collector, 192 * MB), connections(collector.port, 120, request) as held:
        waiting = iter(held)

        def fill() -> None:
            for one in waiting:
                send(one, bytes(BODY - 1))

        at_once(4, fill)


def test_what_needs_a_token_is_refused_without_its_body(collector: CollectorProcess) -> None:
    rules = "/v1/streams/wide/alerts/rules"
    routes = (
        ("POST", "/v1/streams/wide/devices"),
        ("POST", "/v1/streams/none/devices"),
        ("POST", rules),
        ("PUT", f"{rules}/1"),
        ("DELETE", f"{rules}/1"),
        ("POST", "/v1/admin/status"),
        ("POST", "/none"),
    )
    with witnessed(collector, 64 * MB):
        for method, path in routes:
            request = head(method, path, f"Content-Length: {BODY}")
            assert first_line(collector.port, request).split()[1] in (b"401", b"404", b"405"), path
            assert first_line(collector.port, request + bytes(BODY)).split()[1:2] != [b"200"]


def test_unsigned_batches_of_large_reports(collector: CollectorProcess) -> None:
    """400 MB; as much as waits for the disk is held, the rest is told to come again."""
    record = 16 + 16 + 1 + LABELS // 8
    body = bytes(BODY // record * record)
    request = head("POST", batch(collector), f"Content-Length: {len(body)}") + body
    answers: Counter[bytes] = Counter()
    turns = iter(range(100))

    def submit() -> None:
        for _ in turns:
            answers[b" ".join(first_line(collector.port, request).split()[1:2])] += 1

    with witnessed(collector, 256 * MB):
        at_once(20, submit)
    assert answers.keys() <= {b"200", b"429", b""}
    assert answers[b"200"] > 0


def test_answers_that_nobody_reads(collector: CollectorProcess) -> None:
    """40 feeds of releases of a megabyte each, and 12 readers of all of them."""
    history = head("GET", "/v1/streams/wide/releases?limit=10000&format=csv")
    with (
        witnessed(collector, 256 * MB),
        connections(collector.port, 40, head("GET", FEED), receives=4096),
        connections(collector.port, 12, history * 16, receives=4096) as readers,
    ):
        for one in readers:
            assert one.recv(9) == b"HTTP/1.1 "


def test_forwarded_addresses_of_strangers_are_not_believed(collector: CollectorProcess) -> None:
    body = json.dumps({"secret": "ab" * 32, "version": 2})

    def enrol(number: int) -> bytes:
        lines = (f"X-Forwarded-For: 192.0.2.{number}", f"Content-Length: {len(body)}")
        request = head("POST", "/v1/streams/small/devices", *lines) + body.encode()
        return first_line(collector.port, request).split()[1]

    with witnessed(collector, 64 * MB):
        assert [enrol(number) for number in range(12)] == [b"201"] * 10 + [b"429"] * 2


def test_bodies_in_crumbs(collector: CollectorProcess) -> None:
    """What costs the parser most for what it brings."""
    chunked = head("POST", batch(collector, "small"), "Transfer-Encoding: chunked")
    endless = (
        (chunked, b"1\r\nx\r\n" * 50_000),
        (chunked + b"5;x=", PIECE.replace(b"\0", b"x")),
        (chunked + b"0\r\nX: ", PIECE.replace(b"\0", b"x")),
        (chunked + b"0\r\n", b"X: y\r\n" * 50_000),
    )
    with witnessed(collector, 64 * MB):
        for start, piece in endless:
            taken: list[float] = []
            at_once(5, lambda s=start, p=piece, t=taken: t.append(flood(collector.port, s, p, 64)))  # type: ignore[misc]
            assert max(taken) < 32, (start[-20:], taken)


def test_requests_that_wait_take_no_body(collector: CollectorProcess) -> None:
    """A feed, or a long poll, would hold it for as long as it likes."""
    lines = ("Content-Length: 200000",)
    waits = (FEED, "/v1/streams/small/rounds?after=9000000&wait=20")
    with witnessed(collector, 128 * MB):
        for path in waits:
            request = head("GET", path, *lines) + bytes(200_000)
            with connections(collector.port, 100, request) as held:
                assert wait_for_ends(held, SLOWEST) == 0


def test_thousands_of_requests_sent_ahead(collector: CollectorProcess) -> None:
    request = b"GET / HTTP/1.1\r\n\r\n" * 14_000

    def hurry() -> None:
        for _ in range(5):
            ask(collector.port, request)

    with witnessed(collector, 64 * MB):
        at_once(4, hurry)


def test_who_leaves_in_the_middle_of_anything_leaves_nothing(collector: CollectorProcess) -> None:
    """By RST, or by closing one half; also behind a feed, where another request waits."""
    body = head("POST", batch(collector), f"Content-Length: {BODY}")
    feed, health = head("GET", FEED), head("GET", HEALTH)
    small = head("GET", "/v1/streams/small/feed")
    poll = head("GET", "/v1/streams/small/rounds?after=9000000&wait=3")
    sent = (
        b"",
        health[:20],
        health,
        body,
        body + PIECE,
        head("POST", batch(collector), "Transfer-Encoding: chunked") + b"ff\r\nx",
        *(first + second for first in (feed, small, poll) for second in (b"", health, health[:9])),
        health.replace(b"1.1", b"1.0"),
        head("GET", HEALTH, "Connection: close") + health,
    )

    def leave(one: socket.socket, turn: int) -> None:
        if turn % 3 == 0:
            reset(one)
        elif turn % 3 == 1:
            one.close()
        else:
            one.shutdown(socket.SHUT_WR)
            half_closed.append(one)

    half_closed: Sockets = []
    with witnessed(collector, 256 * MB):
        for turn in range(3 * 10 * len(sent)):
            one = connect(collector.port, receives=4096 if turn % 2 else 0)
            send(one, sent[turn // 3 % len(sent)])
            if turn % 5 == 0:
                one.settimeout(0.02)
                with suppress(OSError):  # nothing may have come yet, or no more will
                    one.recv(64)
            leave(one, turn)
        assert wait_for_ends(half_closed, UNFINISHED) == 0
        for one in half_closed:
            one.close()


def test_it_stops_in_good_order_among_strangers(tmp_path: Path) -> None:
    """Their connections do not hold up the end of the process."""
    text = HEAD + stream_table("small", datetime.now(UTC) - timedelta(hours=1), interval='"1h"')
    length = f"Content-Length: {BODY}"
    with ExitStack() as stack:
        own = stack.enter_context(CollectorProcess.of(tmp_path, text, SECRETS))
        feed = head("GET", "/v1/streams/small/feed")
        for data in (b"", b"GET", feed, feed + feed, head("POST", batch(own, "small"), length)):
            stack.enter_context(connections(own.port, 20, data))
        assert own.stop() == 0
    assert "Traceback" not in own.log.read_text()
