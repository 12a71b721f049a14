"""A collector's API in process, by a clock that the tests move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.service.service import Service
from tests.collector.helpers import (
    SECRETS,
    START_MS,
    Signer,
    config,
    device_of,
)
from tests.waiting import eventually

ENROL = {"Authorization": f"Bearer {SECRETS.enrolment.decode()}"}
ADMIN = {"Authorization": f"Bearer {SECRETS.admin.decode()}"}
STREAM = "/v1/streams/a"
BLANKS = ("00 " * 11)[:32]
"""A text as long as a device's number in hex; a parser that skips blanks reads 11 bytes."""


@dataclass
class Api:
    """A running service, its client, and its clock."""

    service: Service
    client: TestClient
    clock: ManualClock

    def asking(self) -> OpenRound:
        """The round that is open, as soon as one is."""
        hub, serial = self.service.streams["a"].hub, 0
        while not (opened := list(hub.open.values())):  # not every announcement is of an open one
            path = f"{STREAM}/rounds?after={serial}&wait=20"
            told = self.client.get(path, headers=self.signer(1).question("a", serial)).json()
            assert told["serial"] > serial
            serial = told["serial"]
        (asking,) = opened
        return asking

    def pass_time(self, milliseconds: int) -> dict[str, Any]:
        """Move the clock, and wait until the announcement has changed."""
        serial = self.service.streams["a"].hub.announcement.serial
        self.clock.advance(milliseconds)
        self.service.scheduler.wake()
        path = f"{STREAM}/rounds?after={serial}&wait=20"
        question = self.signer(1).question("a", serial)
        told: dict[str, Any] = self.client.get(path, headers=question).json()
        assert told["serial"] > serial
        hub = self.service.streams["a"].hub
        eventually(lambda: bool(hub.open) or hub.last_t >= told["t"])  # counted and released
        return told

    def signer(self, number: int) -> Signer:
        return Signer(number, DeviceKeys(SECRETS.master, "a"))

    def post(self, asking: OpenRound, number: int, report: bytes, **headers: str) -> Any:
        signed = self.signer(number).headers(asking, report) | headers
        path = f"{STREAM}/rounds/{asking.name}/reports"
        return self.client.post(path, content=report, headers=signed)

    def post_batch(self, asking: OpenRound, body: bytes) -> Any:
        return self.client.post(f"{STREAM}/rounds/{asking.name}/batch", content=body)

    def refused(self) -> dict[str, int]:
        status = self.client.get(f"{STREAM}/status", headers=ADMIN).json()
        refused: dict[str, int] = status["refused"]
        return refused

    def refused_requests(self) -> dict[str, int]:
        status = self.client.get(f"{STREAM}/status", headers=ADMIN).json()
        refused: dict[str, int] = status["refused_requests"]
        return refused


@contextmanager
def running(folder: Path, *, limits: str = "", **stream: object) -> Iterator[Api]:
    clock = ManualClock(START_MS)
    stream = {"mechanism": "lbu"} | stream
    service = Service(config(folder, limits=limits, **stream), SECRETS, clock)
    with TestClient(build_app(service), raise_server_exceptions=False) as client:
        yield Api(service, client, clock)


def device_header(number: int) -> dict[str, str]:
    return {"Ldp-Device": device_of(number).hex()}


def assert_problem(answer: Any, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["type"].endswith(f":{code}")
    assert body["status"] == status
    assert body["detail"]
