"""What strangers can send to a port, and an honest client that measures what it does to others.

Used against a collector, against the proxy in front of one, and in the soak.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Self

from ldpstream.oracles.device_half import WIRE_VERSION
from ldpstream.protocol.authentication import device_key, report_mac, report_prefix
from ldpstream.protocol.messages import ListRounds, SubmitReport

HEALTH = "/v1/health"
PIECE = bytes(1 << 20)
PATIENCE = 30.0
"""Seconds after which an honest client gives up."""


def head(method: str, path: str, *lines: str) -> bytes:
    """Return the head of a request, with these lines beside Host."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", *lines, "", ""]).encode()


def connect(port: int, source: str = "", receives: int = 0) -> socket.socket:
    """Open a connection, perhaps from another address, or one that takes little unread."""
    one = socket.socket()
    if receives:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    if source:
        one.bind((source, 0))
    one.settimeout(PATIENCE)
    one.connect(("127.0.0.1", port))
    return one


@contextlib.contextmanager
def connections(port: int, number: int, sent: bytes = b"", receives: int = 0) -> Iterator[Sockets]:
    """Open so many connections, each of which sends this; all are closed at the end."""
    opened: Sockets = []
    try:
        for _ in range(number):
            opened.append(connect(port, receives=receives))
            if sent:
                send(opened[-1], sent)
        yield opened
    finally:
        for one in opened:
            one.close()


Sockets = list[socket.socket]


def send(to: socket.socket, data: bytes) -> bool:
    """Send all of it; return whether the other side took it."""
    try:
        to.sendall(data)
    except OSError:
        return False
    return True


def flood(port: int, start: bytes, piece: bytes, megabytes: int) -> float:
    """Send a start and then pieces; return how many megabytes were taken before the end."""
    with contextlib.closing(connect(port)) as one:
        if not send(one, start):
            return 0
        for number in range((megabytes << 20) // len(piece)):
            if not send(one, piece):
                return number * len(piece) / (1 << 20)
    return megabytes


def reset(one: socket.socket) -> None:
    """Close a connection by RST, without a farewell."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    one.close()


def wait_for_ends(sockets: Iterable[socket.socket], seconds: float) -> int:
    """Wait until the other side has ended all of these; return how many it has not in time."""
    end = time.monotonic() + seconds
    with DefaultSelector() as waiting:
        for one in sockets:
            waiting.register(one, EVENT_READ)
        while waiting.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in waiting.select(left):
                assert isinstance(key.fileobj, socket.socket)
                if _ended(key.fileobj):
                    waiting.unregister(key.fileobj)
        return len(waiting.get_map())


def _ended(one: socket.socket) -> bool:
    try:
        return not one.recv(1 << 16)
    except OSError:
        return True


def ask(port: int, request: bytes) -> bytes:
    """Send bytes and return all that comes back until the other side ends the connection."""
    with contextlib.closing(connect(port)) as one:
        send(one, request)
        heard = b""
        with contextlib.suppress(OSError):
            while part := one.recv(1 << 16):
                heard += part
        return heard


def first_line(port: int, request: bytes) -> bytes:
    """Send bytes and return the beginning of what comes back."""
    with contextlib.closing(connect(port)) as one:
        send(one, request)
        try:
            return one.recv(1 << 16).split(b"\r\n")[0]
        except ConnectionError:
            return b""


@dataclass(frozen=True)
class Place:
    """A process, seen from outside."""

    pid: int

    @property
    def resident(self) -> int:
        """The bytes of memory that it holds."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return 1024 * int(line.split()[1])

    @property
    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


@dataclass
class Witness:
    """An honest client beside an attack: it asks for health and sends signed reports, all the time.

    Every turn is a new connection, as a newcomer's would be.
    """

    port: int
    place: Place | None
    stream: str
    master: bytes
    seconds: list[float] = field(default_factory=list)
    """What each answer took."""
    answers: Counter[object] = field(default_factory=Counter)
    """Statuses, and kinds of errors."""
    largest: int = 0
    """The most bytes that the process held."""
    _number: int = field(default_factory=lambda: int.from_bytes(os.urandom(12), "big"))
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._timed(self.health)
            self._timed(self.report)
            if self.place is not None:
                with contextlib.suppress(FileNotFoundError, StopIteration):  # it was killed
                    self.largest = max(self.largest, self.place.resident)
            if self._ended.wait(0.02):
                return

    def _timed(self, work: Callable[[], int]) -> None:
        began = time.monotonic()
        try:
            self.answers[work()] += 1
        except (OSError, HTTPException) as error:
            self.answers[type(error).__name__] += 1
        self.seconds.append(time.monotonic() - began)

    def health(self) -> int:
        return self._ask("GET", HEALTH)[0]

    def report(self) -> int:
        """Send a report of a device that never reported before, to a round that is open."""
        asked = ListRounds(self.stream, after=0, wait=20).http
        _, body = self._ask(asked.method, asked.path)
        told = json.loads(body)
        name = told["rounds"][0]["round"]
        self._number += 1
        number = self._number.to_bytes(16, "big")
        report = bytes([WIRE_VERSION, 0])
        key = device_key(self.master, self.stream, number)
        mac = report_mac(key, report_prefix(self.stream, told["pin"], name), report)
        form = SubmitReport(self.stream, name, number, mac, report).http
        return self._ask(form.method, form.path, form.body, dict(form.headers))[0]

    def _ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body or None, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
