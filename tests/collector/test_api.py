"""Every route and every refusal, in process, by a clock that the tests move."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ldpstream.collector.announcement import OpenRound
from ldpstream.collector.api.app import build_app
from ldpstream.collector.api.limits import limited, read_body
from ldpstream.collector.api.releases import _events
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.keys import DeviceKeys
from ldpstream.collector.service import Service
from ldpstream.collector.store.sqlite.writer import Writer
from ldpstream.errors import MalformedReport, Mistake
from tests.collector.helpers import (
    SECRETS,
    START_MS,
    Signer,
    config,
    device_of,
    report_of,
)

ENROL = {"Authorization": f"Bearer {SECRETS.enrolment.decode()}"}
ADMIN = {"Authorization": f"Bearer {SECRETS.admin.decode()}"}
STREAM = "/v1/streams/a"
BLANKS = ("00 " * 11)[:32]
"""As long as a device's number, and 11 bytes to whoever skips the blanks."""


@dataclass
class Api:
    """A running service, its client, and its clock."""

    service: Service
    client: TestClient
    clock: ManualClock

    def asking(self) -> OpenRound:
        """The round that is open, as soon as one is."""
        told = self.client.get(f"{STREAM}/rounds?wait=20", headers=device_header(1)).json()
        assert told["serial"] > 0
        (asking,) = self.service.streams["a"].board.open.values()
        return asking

    def pass_time(self, milliseconds: int) -> dict[str, Any]:
        """Move the clock, and wait until the announcement has changed."""
        serial = self.service.streams["a"].board.announcement.serial
        self.clock.advance(milliseconds)
        self.service.conductor.nudge()
        path = f"{STREAM}/rounds?after={serial}&wait=20"
        told: dict[str, Any] = self.client.get(path, headers=device_header(1)).json()
        assert told["serial"] > serial
        board = self.service.streams["a"].board
        eventually(lambda: bool(board.open) or board.last_t >= told["t"])  # counted and released
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


@contextmanager
def running(folder: Path, *, limits: str = "", **stream: object) -> Iterator[Api]:
    clock = ManualClock(START_MS)
    stream = {"mechanism": "lbu"} | stream
    service = Service(config(folder, limits=limits, **stream), SECRETS, clock)
    with TestClient(build_app(service), raise_server_exceptions=False) as client:
        yield Api(service, client, clock)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with running(tmp_path) as api:
        yield api


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for another thread, but not for ever."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end


def device_header(number: int) -> dict[str, str]:
    return {"Ldp-Device": device_of(number).hex()}


def assert_problem(answer: Any, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["type"].endswith(f":{code}")
    assert body["status"] == status
    assert body["detail"]


# Enrolment


def test_enrolment_gives_terms_pin_and_key(api: Api) -> None:
    device = device_of(7).hex()
    answer = api.client.post(f"{STREAM}/devices", json={"device": device}, headers=ENROL)
    assert answer.status_code == 201
    given = answer.json()
    canonical = json.dumps(
        given["terms"], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    assert given["pin"] == hashlib.sha256(canonical.encode()).hexdigest()
    message = f"ldpstream device key 1\na\n{device}".encode()
    assert given["key"] == hmac.digest(SECRETS.master, message, "sha256").hex()
    assert given["terms"]["labels"] == ["x", "y", "z"]
    again = api.client.post(f"{STREAM}/devices", json={"device": device}, headers=ENROL)
    assert again.json() == given


def test_open_selection_stores_no_device(api: Api) -> None:
    api.client.post(f"{STREAM}/devices", json={"device": device_of(7).hex()}, headers=ENROL)
    assert api.service.store.roster("a") == b""


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({}, {"device": "00" * 16}, 401, "token"),
        ({"Authorization": "Bearer wrong"}, {"device": "00" * 16}, 401, "token"),
        (ADMIN, {"device": "00" * 16}, 401, "token"),
        (ENROL, {"device": "00" * 15}, 400, "device-number"),
        (ENROL, {"device": "zz" * 16}, 400, "device-number"),
        (ENROL, {"device": BLANKS}, 400, "device-number"),
        (ENROL, {"gadget": 1}, 400, "parameter"),
    ],
)
def test_enrolment_refusals(
    api: Api, headers: dict[str, str], body: dict[str, object], status: int, code: str
) -> None:
    answer = api.client.post(f"{STREAM}/devices", json=body, headers=headers)
    assert_problem(answer, status, code)


@pytest.mark.parametrize("body", [b'\xff\xfe{"device"', b"[" * 100_000, b'{"device"', b"9" * 5000])
def test_what_is_no_json_is_refused_as_such(api: Api, body: bytes) -> None:
    kind = {"Content-Type": "application/json"}
    answer = api.client.post(f"{STREAM}/devices", content=body, headers=ENROL | kind)
    assert_problem(answer, 400, "parameter")
    assert answer.json()["detail"].startswith(("the body is", "device is"))


def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with running(tmp_path, selection="roster") as api:
        monkeypatch.setattr(Writer, "do", full)
        device = {"device": device_of(7).hex()}
        refused = api.client.post(f"{STREAM}/devices", json=device, headers=ENROL)
        assert_problem(refused, 503, "unavailable")
        assert refused.headers["Retry-After"] == "1"
        rule = {"label": "x", "above": 0.5}
        refused = api.client.post(f"{STREAM}/alerts/rules", json=rule, headers=ADMIN)
        assert_problem(refused, 503, "unavailable")
        assert api.client.get(f"{STREAM}/alerts/rules", headers=ADMIN).json()["rules"] == []
        monkeypatch.undo()


def test_a_defect_is_told_as_a_problem_too(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(api.service.store), "releases", None)
    answer = api.client.get(f"{STREAM}/releases")
    assert_problem(answer, 500, "internal")
    assert "NoneType" not in answer.text


def test_enrolment_has_a_speed_limit(tmp_path: Path) -> None:
    with running(tmp_path, limits="enrolments_per_second = 2") as api:

        def enrol() -> Any:
            body = {"device": device_of(1).hex()}
            return api.client.post(f"{STREAM}/devices", json=body, headers=ENROL)

        assert [enrol().status_code for _ in range(2)] == [201, 201]
        refused = enrol()
        assert_problem(refused, 429, "rate-limited")
        assert refused.headers["Retry-After"] == "1"
        api.clock.advance(500)
        assert enrol().status_code == 201


# Rounds


def test_the_current_rounds(api: Api) -> None:
    asking = api.asking()
    told = api.client.get(f"{STREAM}/rounds").json()
    terms = api.service.streams["a"].terms
    assert told == {
        "serial": 1,
        "pin": terms.pin,
        "now_ms": START_MS,
        "t": 1,
        "rounds": [
            {
                "round": "1-publication",
                "t": 1,
                "epsilon_nano": 250_000_000,
                "purpose": "publication",
                "deadline_ms": START_MS + 9000,
                "rate": [40, 40],
            }
        ],
    }
    assert asking.name == "1-publication"


def test_a_long_poll_waits_for_the_next_serial(api: Api) -> None:
    api.asking()
    assert api.client.get(f"{STREAM}/rounds?after=1&wait=0").json()["serial"] == 1
    told = api.pass_time(9000)
    assert told["serial"] == 2
    assert told["rounds"] == []
    told = api.pass_time(1000)
    assert [one["round"] for one in told["rounds"]] == ["2-publication"]


@pytest.mark.parametrize("query", ["wait=31", "wait=-1", "after=x", "after=1.5"])
def test_parameters_of_a_long_poll_are_checked(api: Api, query: str) -> None:
    assert_problem(api.client.get(f"{STREAM}/rounds?{query}"), 400, "parameter")


def test_a_roster_round_lists_only_those_asked(tmp_path: Path) -> None:
    with running(tmp_path, selection="roster", mechanism="lpu") as api:
        for number in range(1, 41):
            body = {"device": device_of(number).hex()}
            api.client.post(f"{STREAM}/devices", json=body, headers=ENROL)
        api.pass_time(10_000)  # nobody was enrolled at t = 1
        asking = api.asking()
        listed = [
            number
            for number in range(1, 45)
            if api.client.get(f"{STREAM}/rounds", headers=device_header(number)).json()["rounds"]
        ]
        assert len(listed) == 10
        others = next(number for number in range(1, 41) if number not in listed)
        for stranger in (others, 44):
            answer = api.post(asking, stranger, report_of(asking, stranger))
            assert_problem(answer, 403, "report-not-asked")
        for headers in ({}, {"Ldp-Device": BLANKS}):
            answer = api.client.get(f"{STREAM}/rounds", headers=headers)
            assert_problem(answer, 400, "device-number")
        serial = api.service.streams["a"].board.announcement.serial
        for number in listed:
            assert api.post(asking, number, report_of(asking, number)).status_code == 202
        told = api.client.get(
            f"{STREAM}/rounds?after={serial}&wait=20", headers=device_header(1)
        ).json()
        assert told["rounds"] == []  # closed at once: everyone has answered


# Reports


def test_a_report_is_accepted_and_counted_once(api: Api) -> None:
    asking = api.asking()
    for status in ("accepted", "repeated", "repeated"):
        answer = api.post(asking, 1, b"\1\0")
        assert (answer.status_code, answer.json()) == (202, {"status": status})
    assert_problem(api.post(asking, 1, b"\1\1"), 409, "report-conflict")
    api.pass_time(9000)
    released = api.client.get(f"{STREAM}/releases").json()["releases"]
    assert [release["received"] for release in released] == [1]
    assert api.refused() == {"report-conflict": 1}


def test_refusals_of_a_report(api: Api) -> None:
    asking = api.asking()
    assert_problem(api.post(asking, 1, b"\1\0", **{"Ldp-Mac": "00" * 16}), 401, "report-mac")
    assert_problem(api.post(asking, 1, b"\1\0", **{"Ldp-Mac": "no hex"}), 401, "report-mac")
    assert_problem(api.post(asking, 1, b"\1\0", **device_header(2)), 401, "report-mac")
    assert_problem(api.post(asking, 1, b"\1\0", **{"Ldp-Device": "00"}), 400, "device-number")
    assert_problem(api.post(asking, 1, b"\1"), 400, "report-length")
    assert_problem(api.post(asking, 1, b"\1\0\0"), 400, "report-length")
    assert_problem(api.post(asking, 1, b""), 400, "report-length")
    assert_problem(api.post(asking, 1, b"\2\0"), 400, "report-version")
    assert_problem(api.post(asking, 1, b"\1\3"), 400, "report-range")
    bare = api.client.post(f"{STREAM}/rounds/{asking.name}/reports", content=b"\1\0")
    assert_problem(bare, 400, "device-number")
    assert api.refused() == {
        "report-mac": 3,
        "device-number": 2,
        "report-length": 3,
        "report-version": 1,
        "report-range": 1,
    }
    assert api.service.store.received("a", asking.name) == 0


def test_a_number_with_blanks_in_it_is_refused_and_shifts_nobody(api: Api) -> None:
    asking = api.asking()
    assert_problem(api.post(asking, 1, b"\1\0", **{"Ldp-Device": BLANKS}), 400, "device-number")
    with pytest.raises(MalformedReport):
        api.service.intake.submit(asking, bytes(asking.record_bytes - 5), 1)
    assert api.service.intake.waiting == 0
    assert api.post(asking, 1, b"\1\0").status_code == 202


def test_a_code_holds_for_one_round_only(api: Api) -> None:
    first = api.asking()
    old = api.signer(1).headers(first, b"\1\0")
    api.pass_time(9000)
    api.pass_time(1000)
    path = f"{STREAM}/rounds/2-publication/reports"
    assert_problem(api.client.post(path, content=b"\1\0", headers=old), 401, "report-mac")


def test_unknown_and_closed_rounds_are_told_apart(api: Api) -> None:
    asking = api.asking()
    signed = api.signer(1).headers(asking, b"\1\0")
    unknown = api.client.post(f"{STREAM}/rounds/9-x/reports", content=b"\1\0", headers=signed)
    assert_problem(unknown, 404, "round-unknown")
    api.pass_time(9000)
    assert_problem(api.post(asking, 1, b"\1\0"), 410, "round-closed")
    assert_problem(api.post_batch(asking, b"x"), 410, "round-closed")


def test_a_round_that_closes_while_a_report_waits_refuses_it(api: Api) -> None:
    asking = api.asking()
    api.service.store.close_round("a", asking.name, START_MS)
    assert_problem(api.post(asking, 1, b"\1\0"), 410, "round-closed")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "rounds/{round}/reports"),
        ("POST", "rounds/{round}/batch"),
        ("POST", "devices"),
        ("POST", "alerts/rules"),
        ("PUT", "alerts/rules/0"),
    ],
)
def test_bodies_have_a_limit_on_every_route(tmp_path: Path, method: str, path: str) -> None:
    """Told in advance or not, and before anyone is asked for a token."""
    with running(tmp_path, limits="body_bytes = 100") as api:
        path = f"{STREAM}/{path.format(round=api.asking().name)}"
        kind = {"Content-Type": "application/json"}
        for body in (bytes(101), (bytes(60) for _ in range(2))):
            answer = api.client.request(method, path, content=body, headers=kind)
            assert_problem(answer, 413, "too-large")
        assert api.refused() == {"too-large": 2}
        within = api.client.request(method, path, content=bytes(100), headers=kind)
        assert within.status_code in (400, 401)


def test_a_body_beyond_the_limit_is_not_read() -> None:
    async def read(length: str, parts: int) -> int:
        """How many parts of a body of 1 byte a part are taken in."""
        taken = 0

        async def receive() -> dict[str, Any]:
            nonlocal taken
            taken += 1
            return {"type": "http.request", "body": b"x", "more_body": taken < parts}

        with contextlib.suppress(Mistake):
            await read_body(limited(receive, 5, length))
        return taken

    assert asyncio.run(read("5", 5)) == 5
    assert asyncio.run(read("6", 6)) == 0
    assert asyncio.run(read("0", 1000)) == 6


def test_a_get_with_a_body_is_answered(tmp_path: Path) -> None:
    with running(tmp_path, limits="body_bytes = 100") as api:
        answer = api.client.request("GET", f"{STREAM}/releases", content=bytes(1000))
        assert answer.status_code == 200


@pytest.mark.parametrize("number", [3, 40])
def test_a_batch_is_judged_record_by_record(api: Api, number: int) -> None:
    """Few records are checked one by one, many side by side: the verdicts are the same."""
    asking = api.asking()
    good = [api.signer(n).record(asking, report_of(asking, n)) for n in range(1, number + 1)]
    forged = good[0][:31] + bytes([good[0][31] ^ 1]) + good[0][32:]
    swapped = good[0][:16] + good[1][16:32] + good[0][32:]
    bad = [
        forged,
        swapped,
        api.signer(90).record(asking, b"\2\0"),
        api.signer(91).record(asking, b"\1\7"),
        good[1],
    ]
    answer = api.post_batch(asking, b"".join(good + bad))
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "accepted": number,
            "repeated": 1,
            "refused": {"report-mac": 2, "report-version": 1, "report-range": 1},
        },
    )
    api.pass_time(9000)
    (released,) = api.client.get(f"{STREAM}/releases").json()["releases"]
    assert released["received"] == number


@pytest.mark.parametrize("body", [b"", b"x", bytes(35)])
def test_a_batch_that_is_no_whole_number_of_records(api: Api, body: bytes) -> None:
    assert_problem(api.post_batch(api.asking(), body), 400, "report-length")


def test_a_batch_has_a_limit(tmp_path: Path) -> None:
    with running(tmp_path, limits="batch = 2") as api:
        asking = api.asking()
        records = [api.signer(n).record(asking, b"\1\0") for n in range(3)]
        assert api.post_batch(asking, b"".join(records[:2])).json()["accepted"] == 2
        assert_problem(api.post_batch(asking, b"".join(records)), 413, "too-large")


def test_a_collector_that_is_behind_says_so(tmp_path: Path) -> None:
    with running(tmp_path, limits="waiting = 1") as api:
        asking = api.asking()
        records = [api.signer(n).record(asking, b"\1\0") for n in range(2)]
        refused = api.post_batch(asking, b"".join(records))
        assert_problem(refused, 429, "rate-limited")
        assert refused.headers["Retry-After"] == "1"
        assert api.post_batch(asking, records[0]).json()["accepted"] == 1
        assert api.service.intake.waiting == 0


def test_reports_that_cannot_be_stored_are_not_accepted(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = api.asking()
    with monkeypatch.context() as patch:
        patch.setattr(type(api.service.store), "accept", None)
        refused = api.post(asking, 1, b"\1\0")
        assert_problem(refused, 503, "unavailable")
        assert refused.headers["Retry-After"] == "1"
    assert api.post(asking, 1, b"\1\0").json() == {"status": "accepted"}


# Releases


def released(api: Api, timestamps: int) -> None:
    api.asking()
    for _ in range(timestamps):
        api.pass_time(9000)
        api.pass_time(1000)


def test_releases_as_json_csv_and_ndjson(api: Api) -> None:
    asking = api.asking()
    api.post(asking, 1, b"\1\0")
    released(api, 3)
    listing = api.client.get(f"{STREAM}/releases")
    assert listing.headers["content-type"] == "application/json"
    content = listing.json()
    assert (content["stream"], content["labels"]) == ("a", ["x", "y", "z"])
    rows = content["releases"]
    assert [row["t"] for row in rows] == [1, 2, 3]
    assert (rows[0]["fresh"], rows[0]["asked"], rows[0]["received"]) == (True, 40, 1)
    assert rows[0]["at_ms"] == START_MS + 9000
    lines = api.client.get(f"{STREAM}/releases?format=ndjson").text.splitlines()
    assert [json.loads(line) for line in lines] == rows
    table = api.client.get(f"{STREAM}/releases", headers={"Accept": "text/csv"})
    assert table.headers["content-type"].startswith("text/csv")
    head, first = table.text.splitlines()[:2]
    assert head.startswith("t,at_ms,fresh,missed,asked,received,x,y,z,variance:x")
    assert first.split(",")[6:9] == [str(value) for value in rows[0]["values"]]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json, text/csv;q=0", "application/json"),
        ("application/json, text/csv;q=0.1", "application/json"),
        ("application/json;q=0.5, Text/CSV", "text/csv"),
        ("text/html, */*;q=0.8", "application/json"),
        ("text/csv;q=, ;, q=\xb2", "application/json"),
    ],
)
def test_the_format_that_is_welcome_most(api: Api, accept: str, kind: str) -> None:
    answer = api.client.get(f"{STREAM}/releases", headers={b"Accept": accept.encode("latin-1")})
    assert answer.headers["content-type"].startswith(kind)


def test_releases_since_and_limit(api: Api) -> None:
    released(api, 4)

    def ts(query: str) -> list[int]:
        answer = api.client.get(f"{STREAM}/releases?{query}")
        return [row["t"] for row in answer.json()["releases"]]

    assert ts("since=3") == [3, 4]
    assert ts("since=2&limit=2") == [2, 3]
    assert ts("since=99") == []
    assert_problem(api.client.get(f"{STREAM}/releases?format=xml"), 400, "parameter")
    assert_problem(api.client.get(f"{STREAM}/releases?since=-1"), 400, "parameter")
    assert_problem(api.client.get(f"{STREAM}/releases?limit=0"), 400, "parameter")


async def _read_feed(api: Api, last: int, number: int) -> list[bytes]:
    """The first events after `last`."""
    events = _events(api.service, api.service.streams["a"], last)
    found = [await anext(events) for _ in range(number + 1)]
    await events.aclose()  # type: ignore[attr-defined]
    return found[1:]


def test_the_feed_catches_up_and_goes_on(api: Api) -> None:
    released(api, 3)
    events = asyncio.run(_read_feed(api, last=1, number=2))
    assert [event.splitlines()[0] for event in events] == [b"id: 2", b"id: 3"]
    data = events[0].splitlines()[2].removeprefix(b"data: ")
    (row,) = api.client.get(f"{STREAM}/releases?since=2&limit=1").json()["releases"]
    assert json.loads(data) == row


def test_many_labels_make_short_pages(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many releases one asks for; the feed has them all the same."""
    released(api, 5)
    asked: list[int] = []
    found = api.service.store.releases

    def noted(stream: str, since: int, limit: int) -> Any:
        asked.append(limit)
        return found(stream, since, limit)

    monkeypatch.setattr(api.service.store, "releases", noted)
    monkeypatch.setattr("ldpstream.collector.paging.NUMBERS", 6)  # two releases of three labels
    for query, expected in (("", [1, 2]), ("?since=2&limit=9", [2, 3]), ("?limit=1", [1])):
        rows = api.client.get(f"{STREAM}/releases{query}").json()["releases"]
        assert [row["t"] for row in rows] == expected
    events = asyncio.run(_read_feed(api, last=0, number=5))
    assert [event.splitlines()[0] for event in events] == [b"id: %d" % t for t in range(1, 6)]
    assert max(asked) == 2
    monkeypatch.setattr("ldpstream.collector.paging.NUMBERS", 1)
    assert len(api.client.get(f"{STREAM}/releases").json()["releases"]) == 1


# Status


def test_status_says_what_a_stream_waits_for(api: Api) -> None:
    asking = api.asking()
    api.post(asking, 1, b"\1\0")
    status = api.client.get(f"{STREAM}/status").json()
    assert (status["t"], status["last_release"], status["accepted"]) == (1, 0, 1)
    assert status["rounds"][0]["received"] == 1
    assert "waiting for reports of round 1-publication: 1 of 40" in status["doing"]
    api.pass_time(9000)
    status = api.client.get(f"{STREAM}/status").json()
    assert status["last_release"] == 1
    assert status["doing"] == "waiting for timestamp 2, which begins in 1.0 s"


def test_descriptions_health_and_readiness(api: Api) -> None:
    api.asking()
    described = api.client.get(STREAM).json()
    assert described["pin"] == api.service.streams["a"].terms.pin
    assert api.client.get("/v1/streams").json() == {"streams": [described]}
    assert api.client.get("/v1/health").json() == {"status": "alive"}
    assert api.client.get("/v1/ready").json()["status"] == "ready"


def test_a_stream_that_cannot_go_on_is_not_ready_and_recovers(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.asking()
    with monkeypatch.context() as patch:
        patch.setattr(type(api.service.store), "close_round", None)
        api.clock.advance(9000)
        api.service.conductor.nudge()
        eventually(lambda: api.client.get("/v1/ready").status_code == 503)
        assert "a" in api.client.get("/v1/ready").json()["failures"]
    api.pass_time(1000)
    eventually(lambda: api.client.get("/v1/ready").status_code == 200)
    assert api.client.get(f"{STREAM}/releases").json()["releases"][0]["t"] == 1


def test_admin_calls_need_the_admin_token(api: Api) -> None:
    for headers in ({}, ENROL, {"Authorization": "Bearer"}):
        refused = api.client.get("/v1/admin/status", headers=headers)
        assert_problem(refused, 401, "token")
        assert refused.headers["WWW-Authenticate"] == "Bearer"
    status = api.client.get("/v1/admin/status", headers=ADMIN).json()
    assert (status["reports_waiting"], status["streams"]["a"]["roster"]) == (0, None)


def test_a_private_stream_is_read_with_the_admin_token_only(tmp_path: Path) -> None:
    with running(tmp_path, public=False) as api:
        for path in (STREAM, f"{STREAM}/status", f"{STREAM}/releases", f"{STREAM}/feed"):
            assert_problem(api.client.get(path), 401, "token")
        assert api.client.get(f"{STREAM}/releases", headers=ADMIN).status_code == 200
        assert api.client.get("/v1/streams").json() == {"streams": []}
        asking = api.asking()  # devices take part all the same
        assert api.post(asking, 1, b"\1\0").status_code == 202


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/status"),
        ("GET", "/releases"),
        ("GET", "/feed"),
        ("GET", "/rounds"),
        ("POST", "/rounds/1-publication/reports"),
        ("POST", "/rounds/1-publication/batch"),
    ],
)
def test_an_unknown_stream(api: Api, method: str, path: str) -> None:
    answer = api.client.request(method, f"/v1/streams/nowhere{path}", headers=device_header(1))
    assert_problem(answer, 404, "stream-unknown")


def test_unknown_paths_and_methods_are_problems_too(api: Api) -> None:
    assert_problem(api.client.get("/v1/nothing"), 404, "not-found")
    assert_problem(api.client.delete("/v1/health"), 405, "method")
    assert_problem(api.client.get(f"{STREAM}/rounds/1-publication/reports"), 405, "method")


def test_the_api_describes_all_of_its_routes(api: Api) -> None:
    paths = api.client.get("/openapi.json").json()["paths"]
    for path in ("/devices", "/rounds", "/rounds/{round}/reports", "/rounds/{round}/batch"):
        assert f"/v1/streams/{{stream}}{path}" in paths
    for path in ("/releases", "/feed", "/status", ""):
        assert f"/v1/streams/{{stream}}{path}" in paths
    assert {"/v1/health", "/v1/ready", "/v1/streams", "/v1/admin/status"} <= set(paths)
