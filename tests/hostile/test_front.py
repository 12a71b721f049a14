"""A real Caddy with the project's Caddyfile in front of a real collector.

What it refuses by itself never reaches the collector; what it lets through, the collector judges by
the address of whoever sent it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ldpstream.device import Device
from tests.hostile.strangers import (
    HEALTH,
    PIECE,
    Place,
    Witness,
    connect,
    connections,
    first_line,
    flood,
    head,
    send,
    wait_for_ends,
)
from tests.programs import free_port, program, wait_for_port
from tests.serving import HEAD, CollectorProcess, stream_table
from tests.waiting import eventually

CADDYFILE = Path(__file__).parents[2] / "deploy" / "Caddyfile"
SITE = "{$LDPSTREAM_SITE::80} {"
TOKEN = "a token for the fleet"
MASTER = "master secret behind a proxy"
SECRETS = {"LDPSTREAM_MASTER_SECRET": MASTER, "LDPSTREAM_ENROLMENT_TOKEN": TOKEN}
SLOWEST = 5.0
DEADLINE = 40.0
"""Seconds; what strangers may take is 10 s, of the proxy and of the collector."""
MB = 1 << 20
BATCH = "/v1/streams/open/rounds/3-publication/batch"


@contextmanager
def caddy(folder: Path, collector: int) -> Iterator[int]:
    """Run it in front of a port, on loopback only; give its own port."""
    port = free_port()
    file = folder / "Caddyfile"
    file.write_text(CADDYFILE.read_text().replace(SITE, f"{SITE}\n\tbind 127.0.0.1"))
    settings = {
        "LDPSTREAM_SITE": f":{port}",
        "LDPSTREAM_READ_BODY": "10s",  # as long as the other deadlines
        "LDPSTREAM_COLLECTOR": "localhost",
        "LDPSTREAM_PORT": str(collector),
    }
    command = [program("caddy"), "run", "--config", str(file)]
    with subprocess.Popen(
        command, env={**os.environ, **settings}, stderr=subprocess.DEVNULL
    ) as running:
        try:
            wait_for_port(port)
            yield port
        finally:
            running.terminate()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    """A stream that anyone may join, and one that goes on every second."""
    now = datetime.now(UTC)
    streams = (
        stream_table("open", now - timedelta(hours=2), interval='"1h"', public="true"),
        stream_table("quick", now, interval='"1s"', mechanism='"lbu"', population=1),
    )
    text = HEAD + "\n".join(streams)
    environment = {**SECRETS, "FORWARDED_ALLOW_IPS": "127.0.0.1"}
    folder = tmp_path_factory.mktemp("collector")
    with CollectorProcess.of(folder, text, environment) as running:
        yield running
        assert running.complaints == []


@pytest.fixture(scope="module")
def front(collector: CollectorProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with caddy(tmp_path_factory.mktemp("caddy"), collector.port) as port:
        yield port


@pytest.fixture
def witness(collector: CollectorProcess, front: int) -> Iterator[Witness]:
    """An honest client through the proxy, who must not notice anything."""
    place = Place(collector.process.pid)
    before = place.resident
    with Witness(front, place, "open", MASTER.encode()) as watching:
        yield watching
    assert set(watching.answers) == {200, 202}, watching.answers
    assert max(watching.seconds) < SLOWEST
    assert watching.largest - before < 64 * MB


def test_a_device_takes_part(front: int, tmp_path: Path) -> None:
    with Device.create(tmp_path / "one.ldp", first_install=True) as device:
        device.enrol(f"http://127.0.0.1:{front}", "quick", TOKEN)
        device.observe("1")
        eventually(lambda: device.poll(wait=2).delivered, "a report is delivered")


def test_a_feed_goes_through_as_it_comes(front: int) -> None:
    with closing(connect(front)) as reader:
        send(reader, head("GET", "/v1/streams/quick/feed"))
        heard = b""
        while heard.count(b"event: release") < 2:
            part = reader.recv(1 << 16)
            assert part
            heard += part


def test_the_limit_of_an_address_is_that_of_the_visitor(front: int) -> None:
    """What visitors say of their own address is not believed."""
    body = json.dumps({"secret": "ab" * 32, "version": 2}).encode()

    def enrol(source: str, said: int) -> bytes:
        lines = (f"Content-Length: {len(body)}", f"X-Forwarded-For: 192.0.2.{said}")
        with closing(connect(front, source=source)) as visitor:
            send(visitor, head("POST", "/v1/streams/open/devices", *lines) + body)
            return visitor.recv(1 << 16).split()[1]

    assert [enrol("127.0.0.2", turn) for turn in range(11)] == [b"201"] * 10 + [b"429"]
    assert enrol("127.0.0.3", 0) == b"201"


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (head("GET", HEALTH)[:-2] + b"X: ", PIECE.replace(b"\0", b"x")),
        (head("GET", HEALTH)[:-2], b"X: y\r\n" * 50_000),
        (head("POST", "/v1/none", "Content-Length: 400000000"), PIECE),
        (head("POST", "/v1/none", "Transfer-Encoding: chunked"), b"1\r\nx\r\n" * 50_000),
        (head("POST", "/v1/none", "Transfer-Encoding: chunked") + b"1;", b"x" * 100_000),
    ],
    ids=["one header", "headers", "a body", "crumbs", "an extension"],
)
def test_endless_requests_are_not_taken(
    front: int, witness: Witness, start: bytes, piece: bytes
) -> None:
    assert flood(front, start, piece, 256) < 32


def test_bodies_are_limited_by_route(front: int, witness: Witness) -> None:
    """A batch may have 4 MiB, anything else 16 KiB."""
    for path, size in ((BATCH, 5 * MB), ("/v1/streams/open/devices", 17 << 10)):
        request = head("POST", path, f"Content-Length: {size}") + bytes(size)
        # Caddy 2.6 says 502 of a body that it stops reading, if the collector is not faster.
        assert first_line(front, request).split()[1] in (b"413", b"401", b"502")
    batch = head("POST", BATCH, "Content-Length: 340000") + bytes(340_000)
    assert first_line(front, batch).split()[1] == b"200"


def test_who_only_holds_on_is_ended(front: int, witness: Witness) -> None:
    with (
        connections(front, 500) as silent,
        connections(front, 50, head("GET", HEALTH)[:-2]) as slow,
        connections(front, 20, head("POST", BATCH, "Content-Length: 1000") + b"x") as unfinished,
    ):
        assert wait_for_ends([*silent, *slow, *unfinished], DEADLINE) == 0
