"""Enrolment, rounds and status: every route and every refusal."""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ldpstream.collector.api.problems import problem_response
from ldpstream.collector.clock import ClockFault
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.intake.queue import RETRY_SECONDS
from ldpstream.collector.store.sqlite.writer import Writer
from ldpstream.errors import Mistake, Problem
from tests.collector.api import (
    ADMIN,
    BLANKS,
    ENROL,
    STREAM,
    Api,
    assert_problem,
    device_header,
    running,
)
from tests.collector.helpers import (
    SECRETS,
    START_MS,
    device_of,
    enrolment,
    report_of,
    secret_of,
)
from tests.waiting import eventually

# Enrolment


def test_enrolment_gives_terms_pin_number_and_key(api: Api) -> None:
    device = hashlib.sha256(b"ldpstream number 2\n" + secret_of(7)).hexdigest()[:32]
    answer = api.client.post(f"{STREAM}/devices", json=enrolment(7), headers=ENROL)
    assert answer.status_code == 201
    given = answer.json()
    canonical = json.dumps(
        given["terms"], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    assert given["pin"] == hashlib.sha256(canonical.encode()).hexdigest()
    assert given["device"] == device
    message = f"ldpstream device key 2\na\n{device}".encode()
    assert given["key"] == hmac.digest(SECRETS.master, message, "sha256").hex()
    assert given["terms"]["labels"] == ["x", "y", "z"]
    again = api.client.post(f"{STREAM}/devices", json=enrolment(7), headers=ENROL)
    assert again.json() == given
    assert given.keys() == {"terms", "pin", "device", "key", "now_ms"}


def test_a_number_yields_no_key(api: Api) -> None:
    """Only who knows what a device shows can enrol as it."""
    known = {"device": device_of(7).hex(), "secret": device_of(7).hex() * 2, "version": 2}
    answer = api.client.post(f"{STREAM}/devices", json=known, headers=ENROL).json()
    assert answer["device"] != device_of(7).hex()
    assert answer["key"] != DeviceKeys(SECRETS.master, "a").of(device_of(7)).hex()


def test_a_token_is_a_bearer_token(api: Api) -> None:
    bare = {"Authorization": ADMIN["Authorization"].removeprefix("Bearer ")}
    assert_problem(api.client.get(f"{STREAM}/alerts/rules", headers=bare), 401, "token")
    assert api.client.get(f"{STREAM}/alerts/rules", headers=ADMIN).status_code == 200


def test_no_answer_repeats_the_host_that_a_client_names(api: Api) -> None:
    answer = api.client.get("/v1/health/", headers={"Host": "x.example"}, follow_redirects=False)
    assert_problem(answer, 404, "not-found")
    assert "location" not in answer.headers


def test_open_selection_stores_no_device(api: Api) -> None:
    api.client.post(f"{STREAM}/devices", json=enrolment(7), headers=ENROL)
    assert api.service.store.roster("a") == b""


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({}, {"secret": "00" * 32, "version": 2}, 401, "token"),
        ({"Authorization": "Bearer wrong"}, {"secret": "00" * 32, "version": 2}, 401, "token"),
        (ADMIN, {"secret": "00" * 32, "version": 2}, 401, "token"),
        *(
            (ENROL, {"secret": bad, "version": 2}, 400, "device-secret")
            for bad in ("00" * 31, "zz" * 32, BLANKS * 2, None, 7, ["00" * 32])
        ),
        (ENROL, {"device": "00" * 16, "version": 2}, 400, "device-secret"),
        (ENROL, {"version": 2}, 400, "device-secret"),
        (ENROL, {"secret": "00" * 32}, 403, "device-version"),
        *(
            (ENROL, {"secret": "00" * 32, "version": other}, 403, "device-version")
            for other in (None, 1, 3, "2", 2.0, True, [2], {"version": 2})
        ),
    ],
)
def test_enrolment_refusals(
    api: Api, headers: dict[str, str], body: dict[str, object], status: int, code: str
) -> None:
    answer = api.client.post(f"{STREAM}/devices", json=body, headers=headers)
    assert_problem(answer, status, code)
    assert str(body.get("secret")) not in answer.text, "a secret is not repeated"


def test_a_device_of_release_0_1_0_is_told_what_to_do_and_not_enrolled(tmp_path: Path) -> None:
    with running(tmp_path, selection="roster") as api:
        body = {"device": device_of(7).hex()}
        answer = api.client.post(f"{STREAM}/devices", json=body, headers=ENROL)
        assert_problem(answer, 403, "device-version")
        assert answer.json()["detail"] == (
            "the device does not speak protocol 2; update the program on the device: devices of"
            " release 0.1.0 can be made to give away more than epsilon"
        )
        assert api.service.store.roster("a") == b""
        assert (api.refused(), api.refused_requests()) == ({}, {"device-version": 1})


@pytest.mark.parametrize("body", [b'\xff\xfe{"device"', b"[" * 10_000, b'{"device"', b"9" * 5000])
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
        refused = api.client.post(f"{STREAM}/devices", json=enrolment(7), headers=ENROL)
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
            return api.client.post(f"{STREAM}/devices", json=enrolment(1), headers=ENROL)

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


@pytest.mark.parametrize("query", ["wait=31", "wait=-1", "after=x", "after=1.5", f"after={2**53}"])
def test_parameters_of_a_long_poll_are_checked(api: Api, query: str) -> None:
    assert_problem(api.client.get(f"{STREAM}/rounds?{query}"), 400, "parameter")


def test_the_largest_serial_is_taken(api: Api) -> None:
    api.asking()
    assert api.client.get(f"{STREAM}/rounds?after={2**53 - 1}").json()["serial"] == 1


def test_a_roster_round_lists_only_those_asked(tmp_path: Path) -> None:
    with running(tmp_path, selection="roster", mechanism="lpu") as api:
        for number in range(1, 41):
            api.client.post(f"{STREAM}/devices", json=enrolment(number), headers=ENROL)
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
        serial = api.service.streams["a"].hub.announcement.serial
        for number in listed:
            assert api.post(asking, number, report_of(asking, number)).status_code == 202
        told = api.client.get(
            f"{STREAM}/rounds?after={serial}&wait=20", headers=device_header(1)
        ).json()
        assert told["rounds"] == []  # closed at once: everyone has answered


def test_asking_waits_for_a_round_and_not_for_any_announcement(api: Api) -> None:
    api.asking()
    api.pass_time(9000)  # closed
    hub = api.service.streams["a"].hub
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(api.asking)
        eventually(lambda: hub.waiting == 1 or waiting.done())
        api.pass_time(1000)
        assert waiting.result(timeout=60).name == "2-publication"


def test_whoever_meets_a_collector_that_lost_its_lease_is_told_to_try_again() -> None:
    answer = problem_response(Mistake(Problem.LEASE_LOST, stream="a"))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, str(RETRY_SECONDS))
    assert b"; try again: " in bytes(answer.body)


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
        api.service.scheduler.wake()
        eventually(lambda: api.client.get("/v1/ready").status_code == 503)
        assert "a" in api.client.get("/v1/ready").json()["failures"]
    api.pass_time(1000)
    eventually(lambda: api.client.get("/v1/ready").status_code == 200)
    assert api.client.get(f"{STREAM}/releases").json()["releases"][0]["t"] == 1


def test_a_clock_that_is_not_believed_is_told(api: Api) -> None:
    api.asking()
    api.clock.doubt = ClockFault(90_000, "the clock is wrong; set it")
    told = api.client.get("/v1/ready")
    assert (told.status_code, told.json()["clock"]) == (503, "the clock is wrong; set it")
    status = api.client.get(f"{STREAM}/status").json()
    assert status["clock_ahead_ms"] == 90_000
    assert status["doing"].endswith("closes in 9.0 s; but the clock is wrong; set it")
    assert 'ldpstream_clock_ahead_seconds{stream="a"} 90.0' in api.client.get("/metrics").text
    api.clock.doubt = None
    assert api.client.get("/v1/ready").json()["clock"] is None
    assert api.client.get(f"{STREAM}/status").json()["clock_ahead_ms"] == 0


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
            assert_problem(api.client.get(path), 404, "stream-unknown")
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
    assert "/openapi.json" in api.client.get("/v1/nothing").text
    assert_problem(api.client.get("/demo/truth"), 404, "not-found")  # of demonstrations only
    assert api.client.get("/openapi.json").status_code == 200
    assert_problem(api.client.delete("/v1/health"), 405, "method")
    assert_problem(api.client.get(f"{STREAM}/rounds/1-publication/reports"), 405, "method")


def test_the_api_describes_all_of_its_routes(api: Api) -> None:
    paths = api.client.get("/openapi.json").json()["paths"]
    for path in ("/devices", "/rounds", "/rounds/{round}/reports", "/rounds/{round}/batch"):
        assert f"/v1/streams/{{stream}}{path}" in paths
    for path in ("/releases", "/feed", "/status", ""):
        assert f"/v1/streams/{{stream}}{path}" in paths
    assert {"/v1/health", "/v1/ready", "/v1/streams", "/v1/admin/status"} <= set(paths)
