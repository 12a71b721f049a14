"""Helpers of the collector's tests: small streams, and devices that sign their reports."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from ldpstream.collector.config import Config, StreamConfig, parse
from ldpstream.collector.credentials.device_keys import DeviceKeys, StreamKeys
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.reports.records import Records
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.store.contract import NewRound
from ldpstream.protocol.authentication import message_mac, report_mac, rounds_message
from ldpstream.protocol.identity import number_of

SECRETS = Secrets(b"master secret of the tests", b"enrolment token!", b"admin token here")
START_MS = 1_700_000_000_000


def config(folder: Path, /, *, limits: str = "", **stream: object) -> Config:
    """Parse a file with a stream `a` of three labels; keys can be given, or left out with None."""
    given: dict[str, object] = {
        "name": "a",
        "labels": ["x", "y", "z"],
        "epsilon": 1,
        "window": 4,
        "interval": "10s",
        "mechanism": "lpu",
        "oracle": "grr",
        "selection": "open",
        "population": 40,
    } | stream
    lines = [f"{key} = {_toml(value)}" for key, value in given.items() if value is not None]
    head = ["[collector]", 'listen = "127.0.0.1:0"', 'store = "c.sqlite"', "[collector.limits]"]
    text = "\n".join([*head, limits, "[[stream]]", *lines])
    return parse(text, folder / "collector.toml")


def stream_config(folder: Path, **stream: object) -> StreamConfig:
    return config(folder, limits="", **stream).streams[0]


def _toml(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return str(value).lower()


def secret_of(number: int) -> bytes:
    """Return what a device shows to enrol."""
    return number.to_bytes(32, "big")


def device_of(number: int) -> bytes:
    return number_of(secret_of(number))


def enrolment(number: int) -> dict[str, object]:
    """The body of an enrolment."""
    return {"secret": secret_of(number).hex(), "version": 2}


def new_round(t: int = 1, purpose: str = "publication", **given: object) -> NewRound:
    usual: dict[str, object] = {
        "t": t,
        "name": f"{t}-{purpose}",
        "purpose": purpose,
        "epsilon_nano": 10**9,
        "users": 10,
        "rate": (10, 40),
        "report_bytes": 2,
        "opened_ms": START_MS,
        "deadline_ms": START_MS + 9000,
        "roster_size": 0,
        "asked": None,
    }
    return NewRound(**usual | given)  # type: ignore[arg-type]


def unsigned(*records: tuple[int, bytes], mac: bytes | None = None) -> Records:
    """Records for the store, which uses MACs only to tell reports apart."""
    packed = b"".join(
        device_of(number) + (mac or report * 8)[:16] + report for number, report in records
    )
    return Records.of(packed, len(records[0][1]))


@dataclass(frozen=True)
class Signer:
    """A device as far as the collector sees it: a number and a key."""

    number: int
    keys: DeviceKeys | StreamKeys

    def headers(self, asking: OpenRound, report: bytes) -> dict[str, str]:
        device = device_of(self.number)
        mac = report_mac(self.keys.of(device), asking.prefix, report)
        return {"Ldp-Device": device.hex(), "Ldp-Mac": mac.hex()}

    def question(self, stream: str, after: int = 0) -> dict[str, str]:
        """The headers with which the device asks for rounds."""
        device = device_of(self.number)
        mac = message_mac(self.keys.of(device), rounds_message(stream, after))
        return {"Ldp-Device": device.hex(), "Ldp-Mac": mac.hex()}

    def record(self, asking: OpenRound, report: bytes) -> bytes:
        headers = self.headers(asking, report)
        return bytes.fromhex(headers["Ldp-Device"] + headers["Ldp-Mac"]) + report


def report_of(asking: OpenRound, number: int) -> bytes:
    """Return what a device reports in a round: random, but the same at each call."""
    device = asking.collector.device
    source = source_of(f"{asking.name} {number}")
    return device.encode(device.perturb(number % device.labels, source))


def source_of(seed: str) -> _Source:
    """Randomness that is the same for the same seed."""
    return _Source(random.Random(seed))


class _Source:
    def __init__(self, source: random.Random) -> None:
        self._source = source

    def coin(self, favour: int, total: int) -> bool:
        return self._source.randrange(total) < favour

    def below(self, bound: int) -> int:
        return self._source.randrange(bound)
