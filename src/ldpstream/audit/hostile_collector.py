"""A hostile collector, which asks whatever a scenario says and may lie about the time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldpstream.audit.judge import Draw, Key, ProcessObserver
from ldpstream.audit.machine import START_MS, TrueTime
from ldpstream.device.exchange import Connect, Pause, Request, Response, unreachable
from ldpstream.protocol.answers import Round, announced
from ldpstream.protocol.identity import number_of
from ldpstream.protocol.messages import Enrol, FetchTerms, Leave, ListRounds, RenewKey
from ldpstream.protocol.notice import Notice
from ldpstream.protocol.terms import Terms
from ldpstream.sqlite_files import reading

NANO = 10**9
URL = "https://collector.invalid"
KEY = bytes(32)
"""The key of every device."""


def make_terms(window: int = 1, interval_ms: int = 60_000, **changes: Any) -> Terms:
    """Return the terms of a stream with two labels; a change to None leaves a key out."""
    given = {
        "version": 2,
        "stream": "hostile",
        "query": "histogram",
        "labels": ["no", "yes"],
        "epsilon_nano": NANO,
        "window": window,
        "interval_ms": interval_ms,
        "start_ms": START_MS,
        "oracle": "grr",
        "selection": "open",
        **changes,
    }
    return Terms.read({key: value for key, value in given.items() if value is not None})


@dataclass
class HostileCollector:
    """The state of the hostile collector; each process has a `RecordingTransport` to it."""

    true: TrueTime
    terms: Terms
    rounds: list[dict[str, Any]] = field(default_factory=list)
    now_ms: Callable[[], int | None] | None = None
    """The time that it claims: None for the true time, or a lie."""
    pin: str | None = None
    versions: dict[str, Terms] = field(default_factory=dict)
    """Terms by their pin; they follow each other."""
    level: str = ""
    """The level of privacy at which the person has enrolled."""
    serial: int = 0
    named: int = 0
    loses: Callable[[Request], bool] = lambda request: False
    """Whether an exchange is lost; a device cannot tell in which direction."""
    on_wire: list[tuple[Key, bytes]] = field(default_factory=list)
    departed: list[Draw] = field(default_factory=list)
    seen: list[tuple[int, Request | Pause]] = field(default_factory=list)
    """All that an observer sees of devices, each step with its true time in microseconds."""

    def __post_init__(self) -> None:
        self.versions[self.terms.pin] = self.terms

    def succeed(self, **changes: Any) -> Terms:
        """Put successor terms in force from the next timestamp on."""
        before = self.terms
        succeeds = {
            "pin": before.pin,
            "version": before.version + 1,
            "from_t": self.t + 1,
            "until_t": self.t + 10**6,
            "labels": list(before.names),
        }
        sent = json.loads(before.canonical) | {"version": 3, "succeeds": succeeds} | changes
        self.terms = Terms.read(sent)
        self.versions[self.terms.pin] = self.terms
        return self.terms

    def notice(self) -> Notice:
        """Return what every answer says: the time that it claims, and the newest terms."""
        return Notice(self.says_ms(), self.terms.pin if self.terms.succeeds else None)

    @property
    def t(self) -> int:
        """The current timestamp, by true time."""
        return self.terms.timestamp_at(self.true.now_ms())

    def make_round(
        self, t: int | None = None, name: str | None = None, **changes: Any
    ) -> dict[str, Any]:
        """Return a round of t, with a new name unless one is given."""
        t = self.t if t is None else t
        self.named += 1
        deadline_ms = self.terms.end_of(max(t, 1)) + self.terms.interval_ms
        asked = Round(name or f"{max(t, 0)}-{self.named}", t, NANO, deadline_ms, (1, 1))
        return asked.to_json("publication") | changes

    def says_ms(self) -> int | None:
        return self.true.now_ms() if self.now_ms is None else self.now_ms()


class RecordingTransport:
    """The transport of one process, which records everything that is sent."""

    def __init__(
        self, collectors: Mapping[str, HostileCollector], watch: ProcessObserver, path: Path
    ) -> None:
        self._collectors, self._watch, self._path = collectors, watch, path

    def send(self, url: str, request: Request) -> Response:
        collector = self._collectors[url]
        collector.seen.append((collector.true.us, request))
        response = self._respond(collector, request)
        if collector.loses(request):
            raise unreachable(url, "the exchange was lost")
        return response

    def connect(self, url: str, step: Connect) -> None:
        """Do nothing: there is no connection to open."""

    def close(self) -> None: ...

    def _respond(self, collector: HostileCollector, request: Request) -> Response:
        if isinstance(request.message, FetchTerms):
            terms = collector.versions[request.message.pin]
            return _json({"terms": json.loads(terms.canonical)})
        if isinstance(request.message, Enrol | RenewKey):
            number = number_of(request.message.secret).hex()
            told = {"terms": json.loads(collector.terms.canonical), "pin": collector.terms.pin}
            return _json(
                told | {"device": number, "key": KEY.hex(), "now_ms": collector.says_ms()},
            )
        if isinstance(request.message, Leave):
            return _json({"status": "left"})
        if isinstance(request.message, ListRounds):
            collector.serial += 1
            version = request.message.terms_version
            known = next(one for one in collector.versions.values() if one.version == version)
            pin = known.pin if collector.pin is None else collector.pin
            return _json(
                announced(collector.notice(), collector.serial, pin, collector.t, collector.rounds)
            )
        collector.on_wire.append((self._watch.key, request.body))
        draw = self._watch.departs(request.body, self._is_on_disk)
        if draw is not None:
            collector.departed.append(draw)
        return _json({"status": "accepted"} | collector.notice().to_json(), 202)

    def _is_on_disk(self, key: Key, report: bytes) -> bool:
        """Read the file as another process would."""
        return is_on_disk(self._path, key, report)


def is_on_disk(path: Path, key: Key, report: bytes) -> bool:
    """Return whether the file holds this report of this round, in any stream."""
    try:
        with reading(path) as connection:
            found = connection.execute(
                "SELECT report FROM ledger WHERE t = ? AND round = ?",
                (key[0], key[1].rpartition(" ")[2]),
            ).fetchall()
    except (sqlite3.Error, OSError, ValueError):  # damaged or gone
        return False
    return (report,) in found


def _json(answer: object, status: int = 200) -> Response:
    return Response(status, {}, json.dumps(answer).encode())
