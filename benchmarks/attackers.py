"""Attackers of a collector, and a visitor who measures beside them, for `soak.py --under-attack`.

Each side is a process of its own: what one of them takes must not make the figures of the other.
All of them go on when the collector is killed, and come back with it. Every kind of attacker has
an address of its own on loopback; the devices have another.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from itertools import count
from multiprocessing.queues import Queue
from pathlib import Path
from statistics import quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hostile.strangers import HEALTH, connect, head, send

SILENT = 400
SLOW = 100
UNFINISHED = 60
FEEDS = 60
JUNK_BYTES = 306_000
"""A batch of 9,000 records that nobody signed."""
PIECE = 256 << 10
AWAY_SECONDS = 0.3
"""After this an attacker tries again to reach a collector that is down."""
ENDING_SECONDS = 60
"""In which both sides must have told what they did."""
KINDS = f"""{SILENT} connections that say nothing, {SLOW} heads and {UNFINISHED} bodies of 4 MB
that go on slowly, {FEEDS} feeds of all releases that nobody reads, all of them opened again as soon
as the collector ends them, and batches of 9,000 unsigned records without a pause"""


@dataclass(frozen=True)
class Question:
    """One question for the collector's health, and what came of it."""

    began_ms: int
    seconds: float
    answered: bool


@dataclass
class Seen:
    """What was measured beside the attackers."""

    questions: list[Question] = field(default_factory=list)
    largest_bytes: int = 0
    attacks: int = 0
    """Connections and batches that attackers got through to the port."""

    def row(self, lives: list[tuple[int, int]]) -> dict[str, Any]:
        """Return the figures; questions count while the collector was up, from begin to end."""
        asked = [
            one
            for one in self.questions
            if any(
                begin <= one.began_ms and one.began_ms + 1000 * one.seconds < end
                for begin, end in lives
            )
        ]
        seconds = [one.seconds for one in asked if one.answered]
        return {
            "attacks": self.attacks,
            "health_questions": len(asked),
            "health_unanswered": sum(not one.answered for one in asked),
            "health_p50_ms": round(1000 * quantiles(seconds, n=100)[49], 1),
            "health_p99_ms": round(1000 * quantiles(seconds, n=100)[98], 1),
            "health_worst_ms": round(1000 * max(seconds), 1),
            "largest_rss_mb": round(self.largest_bytes / 1e6),
        }


@contextmanager
def attacked(port: int, stream: str) -> Iterator[Seen]:
    """Attack a port inside, and measure; the figures are there at the end."""
    context = multiprocessing.get_context("spawn")
    ending, told = context.Event(), context.Queue()
    sides = [
        context.Process(target=side, args=(port, stream, ending, told))
        for side in (_attack, _measure)
    ]
    for one in sides:
        one.start()
    seen = Seen()
    try:
        yield seen
    finally:
        ending.set()
        for _ in sides:
            part = told.get(timeout=ENDING_SECONDS)
            if isinstance(part, int):
                seen.attacks = part
            else:
                seen.questions = part
        for one in sides:
            one.join()


def _measure(port: int, stream: str, ending: Any, told: Queue[list[Question]]) -> None:
    """Ask for health as a newcomer, and again 0.1 s after each answer."""
    asked = []
    while not ending.wait(0.1):
        began_ms, began = time.time_ns() // 1_000_000, time.monotonic()
        connection = HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            connection.request("GET", HEALTH)
            answered = connection.getresponse().status == 200
        except (OSError, HTTPException):
            answered = False
        finally:
            connection.close()
        asked.append(Question(began_ms, time.monotonic() - began, answered))
    told.put(asked)


def _attack(port: int, stream: str, ending: Any, told: Queue[int]) -> None:
    attackers = Attackers(port, stream, ending)
    kinds: list[Callable[[], None]] = [
        lambda: attackers.hold("127.0.0.2", SILENT, lambda: b"", b""),
        lambda: attackers.hold("127.0.0.3", SLOW, lambda: head("GET", HEALTH)[:-2], b"X"),
        lambda: attackers.hold("127.0.0.4", UNFINISHED, attackers.body, bytes(PIECE)),
        lambda: attackers.hold("127.0.0.5", FEEDS, attackers.feed, b""),
        attackers.junk,
        attackers.junk,
    ]
    threads = [threading.Thread(target=kind) for kind in kinds]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    told.put(next(attackers.done))


class Attackers:
    """Everything that holds on to a collector, or floods it."""

    def __init__(self, port: int, stream: str, ending: Any) -> None:
        self._port = port
        self._stream = stream
        self._ending = ending
        self.done = count()

    def hold(self, source: str, number: int, start: Callable[[], bytes], piece: bytes) -> None:
        """Keep so many connections, each with a start and from then on a piece a second."""
        held: list[socket.socket] = []
        while not self._ending.wait(AWAY_SECONDS if len(held) < number else 1):
            held = [one for one in held if self._goes_on(one, piece)]
            with contextlib.suppress(OSError, HTTPException, LookupError, ValueError):
                sent = start()
                while len(held) < number and not self._ending.is_set():
                    one = connect(self._port, source, receives=4096)
                    held.append(one)
                    send(one, sent)
                    one.setblocking(False)
                    next(self.done)
        for one in held:
            one.close()

    def _goes_on(self, one: socket.socket, piece: bytes) -> bool:
        """Send a piece, as far as there is room for it; look whether the other side has ended."""
        try:
            if piece:
                one.send(piece)
            if one.recv(1, socket.MSG_PEEK):
                return True  # an answer, which nobody reads
        except BlockingIOError:
            return True
        except OSError:
            pass
        one.close()
        return False

    def junk(self) -> None:
        """Send unsigned batches, one after the other."""
        while not self._ending.is_set():
            try:
                path = self._batch()
                with contextlib.closing(connect(self._port, "127.0.0.6")) as one:
                    send(one, head("POST", path, f"Content-Length: {JUNK_BYTES}"))
                    send(one, bytes(JUNK_BYTES))
                    one.recv(1 << 16)
                next(self.done)
            except (OSError, HTTPException, LookupError, ValueError):
                time.sleep(AWAY_SECONDS)

    def body(self) -> bytes:
        return head("POST", self._batch(), f"Content-Length: {4 << 20}") + b"x"

    def feed(self) -> bytes:
        return head("GET", f"/v1/streams/{self._stream}/feed?since=1")

    def _batch(self) -> str:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=20)
        with contextlib.closing(connection):
            connection.request("GET", f"/v1/streams/{self._stream}/rounds?after=0&wait=1")
            name = json.loads(connection.getresponse().read())["rounds"][0]["round"]
            return f"/v1/streams/{self._stream}/rounds/{name}/batch"
