"""Collectors in memory, with versions of terms, levels and masters, behind one transport."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldpstream.device import Device
from ldpstream.device.exchange import Connect, Request, Response, Stop, unreachable
from ldpstream.protocol.authentication import (
    device_key,
    leave_message,
    message_mac,
    renew_message,
    report_mac,
    report_prefix,
    terms_message,
)
from ldpstream.protocol.identity import number_of
from ldpstream.protocol.messages import (
    Enrol,
    FetchTerms,
    Leave,
    ListRounds,
    RenewKey,
    SubmitReport,
)
from ldpstream.protocol.terms import Terms
from tests.device.collectors import HandClock, ScriptedWitness, make_terms

FIRST, SECOND = b"first master", b"second master"
SLOTS: dict[str, Any] = {"selection": "slots", "deadline_ms": 54_000}


@dataclass(frozen=True)
class Arrived:
    """A report, as its collector got it."""

    url: str
    stream: str
    round: str
    t: int
    nano: int
    level: str
    version: int
    report: bytes
    at_ms: int
    """By the steady clock of the device, which is right."""


@dataclass
class Place:
    """A collector with one stream."""

    clock: HandClock
    terms: Terms
    url: str = "https://one.invalid"
    versions: dict[str, Terms] = field(default_factory=dict)
    masters: list[bytes] = field(default_factory=lambda: [FIRST])
    """The current one last; an earlier one is still valid."""
    notice: dict[str, Any] = field(default_factory=dict)
    """What it says besides what is true."""
    rounds: list[dict[str, Any]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    arrived: list[Arrived] = field(default_factory=list)
    loses: Callable[[Request], bool] = lambda request: False
    takes_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.versions[self.terms.pin] = self.terms

    def succeed(self, **changes: Any) -> Terms:
        """Put a successor in force, and return it."""
        old = self.terms
        labels = changes.get("labels", json.loads(old.canonical)["labels"])
        mapped = changes.pop("mapped", [one if one in labels else labels[0] for one in old.names])
        from_t = changes.pop("from_t", old.timestamp_at(self.clock.wall) + 1)
        succeeds = {
            "pin": old.pin,
            "version": old.version + 1,
            "from_t": from_t,
            "until_t": from_t + 100,
            "labels": mapped,
        }
        sent = json.loads(old.canonical) | changes | {"version": 3, "succeeds": succeeds}
        self.terms = Terms.read(sent)
        self.versions[self.terms.pin] = self.terms
        return self.terms

    def respond(self, request: Request) -> Response:
        self.requests.append(request)
        match request.message:
            case Enrol(_, _, secret, level):
                return self._admit(number_of(secret), level)
            case RenewKey(stream, secret, level, proof):
                old = device_key(self.masters[0], stream, proof.number, level)
                assert proof.number == number_of(secret)
                assert proof.mac == message_mac(old, renew_message(stream))
                return self._admit(proof.number, level)
            case FetchTerms(stream, pin, proof):
                keys = self._keys(proof.number)
                assert proof.mac in [message_mac(key, terms_message(stream, pin)) for key in keys]
                if pin not in self.versions:
                    return _json(404, {"type": "urn:ldpstream:problem:terms-unknown"})
                return _json(200, {"terms": json.loads(self.versions[pin].canonical), "pin": pin})
            case Leave(stream, proof):
                keys = self._keys(proof.number)
                assert proof.mac in [message_mac(key, leave_message(stream)) for key in keys]
                return _json(200, {"status": "left"})
            case ListRounds(terms_version=version):
                terms = next(one for one in self.versions.values() if one.version == version)
                told = {"serial": len(self.requests), "pin": terms.pin, "rounds": self.rounds}
                return _json(200, told | self._told(terms))
            case SubmitReport() as message:
                return self._take(message)
        raise AssertionError(request)

    def _told(self, terms: Terms) -> dict[str, Any]:
        following = [
            pin
            for pin, one in self.versions.items()
            if one.succeeds is not None and one.succeeds.pin == terms.pin
        ]
        told: dict[str, Any] = {"now_ms": self.clock.wall}
        return told | ({"successor": following[0]} if following else {}) | self.notice

    def _keys(self, number: bytes) -> list[bytes]:
        levels = {one.level for terms in self.versions.values() for one in terms.strata}
        return [
            device_key(master, self.terms.stream, number, level)
            for master in self.masters
            for level in levels
        ]

    def _admit(self, number: bytes, level: str) -> Response:
        stream = self.terms.stream
        key = device_key(self.masters[-1], stream, number, level)
        slot_key = device_key(FIRST, stream, number, level)
        answer = {
            "terms": json.loads(self.terms.canonical),
            "pin": self.terms.pin,
            "device": number.hex(),
            "key": key.hex(),
            "now_ms": self.clock.wall,
        }
        return _json(201, answer | ({} if key == slot_key else {"slot_key": slot_key.hex()}))

    def _take(self, message: SubmitReport) -> Response:
        found = [
            (master, stratum)
            for master in self.masters
            for terms in self.versions.values()
            for stratum in terms.strata
            if message.mac == self._mac(message, master, stratum)
        ]
        if not found:
            return _json(401, {"type": "urn:ldpstream:problem:report-mac"} | self._told(self.terms))
        ((master, stratum),) = found
        asked = next((one for one in self.rounds if one["round"] == message.round), {})
        self.arrived.append(
            Arrived(
                self.url,
                message.stream,
                message.round,
                asked.get("t", int(message.round.split("-")[0])),
                asked.get("epsilon_nano", stratum.epsilon_nano),
                stratum.level,
                stratum.version,
                message.report,
                self.clock.steady,
            )
        )
        renew = {"renew": True} if master != self.masters[-1] else {}
        return _json(202, {"status": "accepted"} | renew | self._told(stratum))

    def _mac(self, message: SubmitReport, master: bytes, stratum: Terms) -> bytes:
        key = device_key(master, message.stream, message.number, stratum.level)
        prefix = report_prefix(message.stream, stratum.pin, message.round, stratum.level)
        return report_mac(key, prefix, message.report)


@dataclass
class Town:
    """A device's file, its clock, and the collectors that it talks to."""

    path: Path
    places: dict[str, Place] = field(default_factory=dict)
    clock: HandClock = field(default_factory=HandClock)
    witness: ScriptedWitness = field(default_factory=ScriptedWitness)

    def build(self, name: str, url: str = "https://one.invalid", **changes: Any) -> Place:
        """Build a collector with a stream of this name."""
        place = Place(self.clock, make_terms(stream=name, **changes), url)
        self.places[url] = place
        return place

    def send(self, url: str, request: Request) -> Response:
        place = self.places[url]
        if place.takes_seconds:
            self.clock.pass_ms(round(1000 * min(place.takes_seconds, request.patience)))
        response = place.respond(request)
        if place.loses(request):
            raise unreachable(url, "the exchange was lost")
        return response

    def connect(self, url: str, step: Connect) -> None:
        assert url in self.places

    def close(self) -> None: ...

    def sleep(self, seconds: float, stop: Stop) -> None:
        self.clock.pass_ms(round(1000 * seconds))

    @property
    def parts(self) -> dict[str, Any]:
        return {
            "clock": self.clock,
            "witness": self.witness,
            "transport": self,
            "sleep": self.sleep,
            "jitter": lambda most: most,
            "warn": lambda problem: None,
        }

    def create(self, **options: Any) -> Device:
        return Device.create(self.path, first_install=True, **self.parts, **options)

    def open(self, **options: Any) -> Device:
        return Device.open(self.path, **self.parts, **options)

    def live(self, device: Device, timestamps: int) -> None:
        """Run the device, whose pauses move the clock, for so many timestamps."""
        end = self.clock.wall + timestamps * 60_000
        device.run(stop=lambda: self.clock.wall >= end)

    @property
    def arrived(self) -> list[Arrived]:
        """All reports that any collector got, each once, by the time of the first."""
        seen: dict[tuple[str, str, bytes], Arrived] = {}
        for place in self.places.values():
            for one in place.arrived:
                seen.setdefault((one.url, one.round, one.report), one)
        return sorted(seen.values(), key=lambda one: one.at_ms)

    def most_in(self, span_ms: int) -> int:
        """The most nano-epsilon that any span of this length holds, over all collectors."""
        sent = self.arrived
        return max(
            sum(one.nano for one in sent if first.at_ms <= one.at_ms < first.at_ms + span_ms)
            for first in sent
        )


def _json(status: int, answer: object) -> Response:
    return Response(status, {}, json.dumps(answer).encode())
