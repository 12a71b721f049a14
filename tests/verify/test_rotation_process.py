"""The master secret rotated under running devices: no report of a valid device is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from ldpstream.cli.admin_client import AdminClient
from ldpstream.oracles import Oracle
from ldpstream.privacy.randomness import SystemSource
from ldpstream.protocol.authentication import message_mac, renew_message, report_mac, report_prefix
from ldpstream.protocol.identity import number_of
from ldpstream.protocol.messages import DeviceProof, Enrol, Message, RenewKey, SubmitReport
from ldpstream.protocol.notice import Notice
from ldpstream.protocol.slots import is_turn
from ldpstream.protocol.strata import round_name
from ldpstream.protocol.terms import Terms
from tests.collector.helpers import secret_of
from tests.serving import ENROLMENT, HEAD, TOKEN, CollectorProcess, drop_earlier

DEVICES = 60
WINDOW = 2
STREAM = f"""
[[stream]]
name = "a"
labels = ["x", "y"]
epsilon = 1
window = {WINDOW}
interval = "4s"
population = {DEVICES}
"""


class Line:
    """A connection to the collector."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def close(self) -> None:
        self._connection.close()

    def send(self, message: Message) -> tuple[int, dict[str, Any]]:
        form = message.http
        return self.call(form.method, form.path, form.body, form.headers)

    def call(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        self._connection.request(method, path, body, dict(headers or {}))
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())


class Reporter:
    """A device made of the protocol's messages: it reports in its turns, and renews its key."""

    def __init__(self, line: Line, number: int) -> None:
        self._line = line
        self._secret = secret_of(number)
        self._number = number_of(self._secret)
        self._keep(line.send(Enrol("a", TOKEN, self._secret)))
        self.renewals = 0

    def _keep(self, answer: tuple[int, dict[str, Any]]) -> None:
        status, told = answer
        assert status == 201, told
        self.terms, self._key = Terms.read(told["terms"]), bytes.fromhex(told["key"])
        self._slot_key = bytes.fromhex(told.get("slot_key", told["key"]))

    def is_due(self, t: int) -> bool:
        return is_turn(self._slot_key, WINDOW, t)

    def report(self, t: int) -> None:
        terms, name = self.terms, round_name(t)
        half = Oracle(terms.oracle).device(2, terms.epsilon)
        report = half.encode(half.perturb(0, SystemSource()))
        mac = report_mac(self._key, report_prefix("a", terms.pin, name), report)
        status, told = self._line.send(SubmitReport("a", name, self._number, mac, report))
        assert (status, told["status"]) == (202, "accepted"), told
        if Notice.read(told).renew:
            proof = DeviceProof(self._number, message_mac(self._key, renew_message("a")))
            self._keep(self._line.send(RenewKey("a", self._secret, "", proof)))
            self.renewals += 1


def test_no_report_is_lost_while_the_master_secret_changes(tmp_path: Path) -> None:
    """Every report is accepted, in the turns of before; all are released; then the old one goes."""
    with (
        CollectorProcess.of(tmp_path, HEAD + STREAM, ENROLMENT) as collector,
        closing(Line(collector.port)) as line,
    ):
        admin = AdminClient.of(collector.file, collector.url)
        fleet = [Reporter(line, number) for number in range(DEVICES)]
        terms, dropped_at = fleet[0].terms, 0
        sent: dict[int, int] = {}
        t = first = terms.timestamp_at(_now_ms()) + 1
        while not dropped_at or t <= dropped_at + WINDOW:
            _wait_until(terms.start_of(t))
            due = [one for one in fleet if one.is_due(t)]
            for one in due:
                one.report(t)
            sent[t] = len(due)
            if t == first + 1:
                admin.post("keys/rotate")
            elif t > first + 1 and not dropped_at:
                dropped_at = t if drop_earlier(admin) else 0
            t = terms.timestamp_at(_now_ms()) + 1
            assert t < first + 40
        assert {one.renewals for one in fleet} == {1}
        assert sum(sent.values()) >= DEVICES * 3
        assert {t: number for t, number in _received(line, t).items() if t in sent} == sent


def _received(line: Line, t: int) -> dict[int, int]:
    """Wait for the release before t; return how many reports each release is made of."""
    found: dict[int, int] = {}
    while max(found, default=0) < t - 1:
        _, told = line.call("GET", "/v1/streams/a/releases")
        found = {one["t"]: one["received"] for one in told["releases"]}
    return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _wait_until(moment_ms: int) -> None:
    """Wait for the clock, as a device does that sleeps until its turn."""
    while (left := moment_ms - _now_ms()) > 0:
        time.sleep(left / 1000)
