"""Collectors for tests: in memory, with a transcript of everything that ever left the device."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ldpstream.device import Device, LedgerUnusable, SystemSource, Witness
from ldpstream.device.exchange import Connect, Request, Response, Stop, unreachable
from ldpstream.device.file_transaction import FileTransaction
from ldpstream.device.memory import LedgerEntry
from ldpstream.errors import LdpStreamError, Problem
from ldpstream.privacy.randomness import Source
from ldpstream.protocol.terms import Terms

URL = "https://collector.invalid"
MASTER = b"master secret of the tests"
TOKEN = "let me in"
NANO = 10**9
START_MS = 1_700_000_000_000
INTERVAL_MS = 60_000
ABSENT = object()
"""In place of a key that is not there."""
NUMBERS: dict[str, Any] = {
    "labels": ABSENT,
    "query": "mean",
    "low": "-20",
    "high": "60",
    "steps": 800,
    "oracle": "hybrid",
}
"""What is different in the terms of a stream of numbers."""
BINNED = NUMBERS | {"query": "distribution", "steps": 255, "bins": 32, "oracle": "square_wave"}
"""What is different in the terms of a stream whose distribution is released."""
TEXTS: dict[str, Any] = {
    "labels": ABSENT,
    "query": "vocabulary",
    "salt": "0" * 16,
    "bits": 16,
    "prefixes": [2],
    "oracle": "hadamard",
    "selection": "slots",
    "deadline_ms": 54_000,
}
"""What is different in the terms of a stream of texts."""


def make_terms(**changes: Any) -> Terms:
    sent = {
        "version": 2,
        "stream": "regions",
        "query": "histogram",
        "labels": ["north", "east", "south", "west"],
        "epsilon_nano": NANO,
        "window": 4,
        "interval_ms": INTERVAL_MS,
        "start_ms": START_MS,
        "oracle": "grr",
        "selection": "open",
    }
    changed = {**sent, **changes}
    return Terms.read({key: value for key, value in changed.items() if value is not ABSENT})


@dataclass
class HandClock:
    """Two clocks that move by hand, together or apart."""

    wall: int = START_MS
    steady: int = 5_000_000
    booted: str | None = "first boot"

    def wall_ms(self) -> int:
        return self.wall

    def steady_ms(self) -> int:
        return self.steady

    def boot(self) -> str | None:
        return self.booted

    def reboot(self, boot: str | None, steady_ms: int = 0) -> None:
        """The machine starts again; its steady clock has counted so far since."""
        self.booted, self.steady = boot, steady_ms

    def pass_ms(self, ms: int) -> None:
        """Time passes."""
        self.wall += ms
        self.steady += ms

    def pass_timestamps(self, timestamps: int) -> None:
        self.pass_ms(timestamps * INTERVAL_MS)


class ScriptedWitness:
    """A witness who says what it is told to."""

    def __init__(self) -> None:
        self.trusts = True
        self._stamps = 0

    def stamp(self, file: object) -> str:
        self._stamps += 1
        return str(self._stamps)

    def committed(self, stamp: str) -> None: ...

    def vouches(self, found: object, stamp: str) -> bool:
        return self.trusts


def a_round(t: int, name: str | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "round": name or f"{t}-publication",
        "t": t,
        "epsilon_nano": NANO,
        "purpose": "publication",
        "deadline_ms": START_MS + (t + 1) * INTERVAL_MS,
        "rate": [1, 1],
        **changes,
    }


@dataclass(frozen=True)
class Sent:
    """A report as it left the device."""

    t: int
    round: str
    nano: int
    report: bytes
    on_disk_first: bool


@dataclass
class MemoryCollector:
    """A transport that is its own collector: it asks whatever it is told to ask."""

    terms: Terms = field(default_factory=make_terms)
    rounds: list[Any] = field(default_factory=list)
    pin: str | None = None
    serial: int = 0
    loses: Callable[[Request], bool] = lambda request: False
    """Whether an exchange is lost: on the way here or on the way back, a device cannot tell."""
    private: bool = False
    """Whether the stream is unknown to whoever does not sign."""
    status: int = 202
    headers: dict[str, str] = field(default_factory=dict)
    enrolment: dict[str, Any] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    path: Path | None = None
    """Of the device's file: when given, each report is looked up in it as it arrives."""
    halt: str | None = None
    """What the notices say of a pause, or of the stream's end."""
    now_ms: Callable[[], int] | None = None
    """What the collector says that the time is, in announcements; None: it does not say."""

    def send(self, url: str, request: Request) -> Response:
        self.requests.append(request)
        response = self._respond(request)  # what leaves a device is in the transcript, lost or not
        if self.loses(request):
            raise unreachable(url, "the exchange was lost")
        return response

    def connect(self, url: str, step: Connect) -> None:
        if self.loses(Request("GET", "")):
            raise unreachable(url, "there is no network")

    def close(self) -> None: ...

    def _respond(self, request: Request) -> Response:
        if request.path.endswith("/devices"):
            return self._admit(request)
        if request.method == "GET":
            if self.private and "Ldp-Mac" not in request.headers:
                return _json(404, {"type": "urn:ldpstream:problem:stream-unknown"})
            self.serial += 1
            pin = self.terms.pin if self.pin is None else self.pin
            told = {"serial": self.serial, "pin": pin, "rounds": self.rounds}
            told |= {"now_ms": self.now_ms()} if self.now_ms else {}
            return _json(200, told | self._notice)
        return self._take(request)

    def _admit(self, request: Request) -> Response:
        """Enrol a device, or let it leave."""
        if request.method == "DELETE":
            key = device_key(self.terms.stream, request.headers["Ldp-Device"])
            mac = hmac.digest(key, f"ldpstream leave 2\n{request.path}\n".encode(), "sha256")
            assert request.headers["Ldp-Mac"] == mac[:16].hex()
            return _json(200, {"status": "left"})
        sent = json.loads(request.body)
        assert sent.keys() - {"level"} == {"secret", "version", "terms"}
        assert sent["version"] == 2
        device = number_shown(sent["secret"])
        answer = {
            "terms": json.loads(self.terms.canonical),
            "pin": self.terms.pin,
            "device": device,
            "key": device_key(self.terms.stream, device).hex(),
        }
        return _json(201, answer | self.enrolment)

    def _take(self, request: Request) -> Response:
        name = request.path.split("/")[-2]
        asked = next((one for one in self.rounds if one["round"] == name), None)
        if asked is None:  # with slots nobody asks
            asked = {"t": int(name.split("-")[0]), "epsilon_nano": self.terms.epsilon_nano}
        key = device_key(self.terms.stream, request.headers["Ldp-Device"])
        head = f"ldpstream report 2\n{self.terms.stream}\n{self.terms.pin}\n{name}\n\n\n\n"
        message = head.encode() + request.body
        mac = hmac.digest(key, message, hashlib.sha256)[:16].hex()
        assert request.headers["Ldp-Mac"] == mac
        on_disk = self.path is None or on_disk_now(self.path, asked["t"], name) == request.body
        self.sent.append(Sent(asked["t"], name, asked["epsilon_nano"], request.body, on_disk))
        problem = {"type": "https://ldpstream.invalid/problems/round-closed", "detail": "late"}
        status = self.status if self.halt is None else 410
        return Response(status, self.headers, json.dumps(problem | self._notice).encode())

    @property
    def _notice(self) -> dict[str, str]:
        return {} if self.halt is None else {"halt": self.halt}


def _json(status: int, answer: object) -> Response:
    return Response(status, {}, json.dumps(answer).encode())


def number_shown(secret: str) -> str:
    """The number of the device that shows this secret."""
    return hashlib.sha256(b"ldpstream number 2\n" + bytes.fromhex(secret)).hexdigest()[:32]


def device_key(stream: str, device: str) -> bytes:
    message = f"ldpstream device key 2\n{stream}\n{device}".encode()
    return hmac.digest(MASTER, message, hashlib.sha256)


def on_disk_now(path: Path, t: int, name: str) -> bytes | None:
    """Return what another process sees in the file."""
    connection = sqlite3.connect(path)
    try:
        found = connection.execute(
            "SELECT report FROM ledger WHERE t = ? AND round = ?", (t, name)
        ).fetchone()
    except (sqlite3.DatabaseError, ValueError):  # damaged: nothing can be seen in it
        return None
    finally:
        connection.close()
    return found[0] if found else None


@dataclass
class Bench:
    """A device on a table: its file, clock and witness, and a collector on the other side."""

    path: Path
    clock: HandClock = field(default_factory=HandClock)
    witness: Witness = field(default_factory=ScriptedWitness)
    collector: MemoryCollector = field(default_factory=MemoryCollector)
    source: Source = field(default_factory=SystemSource)
    slept: list[float] = field(default_factory=list)
    warnings: list[LdpStreamError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.collector.path = self.path
        if self.collector.now_ms is None:
            self.collector.now_ms = lambda: self.clock.wall

    @property
    def parts(self) -> dict[str, Any]:
        return {
            "clock": self.clock,
            "witness": self.witness,
            "source": self.source,
            "transport": self.collector,
            "sleep": self.sleep,
            "jitter": lambda most: most,
            "warn": self.warnings.append,
        }

    def create(self, first_install: bool = True) -> Device:
        return Device.create(self.path, first_install=first_install, **self.parts)

    def open(self) -> Device:
        return Device.open(self.path, **self.parts)

    def sleep(self, seconds: float, stop: Stop) -> None:
        self.slept.append(seconds)
        self.clock.pass_ms(math.ceil(1000 * seconds))

    def enrolled(self, *, first_install: bool = True, **options: Any) -> Device:
        device = self.create(first_install) if not self.path.exists() else self.open()
        device.enrol(URL, "regions", TOKEN, **options)
        device.observe("south")
        return device

    @property
    def t(self) -> int:
        return self.collector.terms.timestamp_at(self.clock.wall)

    def ask(self, device: Device, *rounds: dict[str, Any]) -> list[Sent]:
        """Announce these rounds; what the device sends for them."""
        before = len(self.collector.sent)
        self.collector.rounds = list(rounds)
        device.poll(wait=INTERVAL_MS // 1000)
        return self.collector.sent[before:]


@contextmanager
def failing_once(what: Callable[[LedgerEntry], bool] = lambda entry: True) -> Iterator[None]:
    """The next commit of such an entry fails, as on a disk that is full for a moment."""
    enter = FileTransaction.enter

    def fail(change: FileTransaction, entry: LedgerEntry) -> None:
        if not what(entry):
            return enter(change, entry)
        fault.stop()
        raise LedgerUnusable(Problem.LEDGER_FILE, file="device.ldp", what="disk full")

    fault = patch.object(FileTransaction, "enter", fail)
    fault.start()
    yield
    assert FileTransaction.enter is enter, "no such entry was made"
