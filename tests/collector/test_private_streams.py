"""A private stream is there for who proves a right to it; to all others it is an unknown name.

Every route that takes a stream's name is called twice, with the name of a private stream and with
one that nobody has: the answers must be the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from starlette.testclient import TestClient

from ldpstream.collector.api import lookup
from ldpstream.collector.api.app import build_app
from ldpstream.collector.api.limits import read_body
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import parse
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.credentials.read_tokens import read_token
from ldpstream.collector.service.service import Service
from ldpstream.domain import MOST_LABELS
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.limits import LARGEST_REPORT
from tests.collector.api import ADMIN, ENROL, assert_problem
from tests.collector.helpers import SECRETS, START_MS, Signer, device_of, enrolment, report_of
from tests.waiting import eventually

HIDDEN, MISSING, OTHER = "ward", "none", "cell"
"""A private stream, a name of the same length that no stream has, and another private stream."""
CONFIG = """
[collector]
listen = "127.0.0.1:0"
store = "c.sqlite"
[collector.limits]
body_bytes = 40000
"""
STREAM_TABLE = """
[[stream]]
name = "{name}"
labels = ["x", "y", "z"]
epsilon = 1
window = 4
interval = "10s"
mechanism = "lbu"
oracle = "grr"
population = 40
public = {public}
"""
ROUND = "1-publication"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
QUERIES = ("", "after=x&wait=99&since=-1&limit=0&format=xls", "after=3&wait=0&since=1&format=xls")
JSON, REPORT = "application/json", "application/octet-stream"
BODIES: tuple[tuple[str, bytes], ...] = (
    (REPORT, b""),
    (REPORT, b"\1\0"),
    (REPORT, b"\1\0\0"),
    ("text/plain", bytes(34)),
    (REPORT, bytes(LARGEST_REPORT + 1)),
    (REPORT, bytes(40_001)),
    (JSON, b"{"),
    (JSON, b'{"secret": "%s", "version": 2}' % (b"0" * 64)),
    (JSON, b'{"secret": 5}'),
    (JSON, b'{"label": "x", "above": 0.5}'),
)
ROUTES = [
    "/v1/streams/{stream}" + end
    for end in (
        "", "/devices", "/rounds", "/rounds/{round}/reports", "/rounds/{round}/batch", "/releases",
        "/changes", "/feed", "/status", "/alerts", "/alerts/rules", "/alerts/rules/{rule_id}",
        "/share", "/summaries", "/terms/{pin}", "/annotations", "/texts",
    )
] + [
    "/v1/admin" + end
    for end in (
        "/denied/{stream}", "/denied/{stream}/{device}", "/streams/{stream}/pause",
        "/streams/{stream}/resume", "/silences/{stream}", "/silences/{stream}/{rule_id}",
    )
] + ["/privacy/{stream}"]  # fmt: skip


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def signer(stream: str, number: int = 1) -> Signer:
    return Signer(number, DeviceKeys(SECRETS.master, stream))


STRANGERS: dict[str, dict[str, str]] = {
    "nobody": {},
    "a wrong token": bearer("wrong"),
    "the read token of another stream": bearer(read_token(SECRETS.admin, OTHER)),
    "a device of another stream": signer(OTHER).question(OTHER),
    "a device of another stream, with this name": signer(OTHER).question(HIDDEN),
    "no device": {"Ldp-Device": "no hex", "Ldp-Mac": "neither"},
    "a device without its MAC": {"Ldp-Device": device_of(1).hex()},
    "the token that lets devices enrol": ENROL,
}


@dataclass(frozen=True)
class World:
    """A collector with a public stream and two private ones, and its client."""

    service: Service
    client: TestClient
    described: dict[str, Any]
    """The operations on each path, as the collector describes them."""

    def answer(self, method: str, path: str, name: str, **request: Any) -> tuple[Any, ...]:
        """Return all that a caller sees, with the name of the stream taken out."""
        at = path.format(
            stream=name,
            round=ROUND,
            rule_id="0" * 16,
            pin=self.service.streams[HIDDEN].terms.pin,
            device="00" * 16,
        )
        seen = self.client.request(method, at, follow_redirects=False, **request)
        headers = [(key, value.replace(name, "*")) for key, value in seen.headers.multi_items()]
        return seen.status_code, headers, seen.content.replace(name.encode(), b"*")

    def requests(self, method: str, path: str) -> list[tuple[tuple[str, bytes], str]]:
        """Return each body and each query, where the method is taken at all."""
        if method.lower() not in self.described[path]:
            return [(BODIES[0], QUERIES[0])]
        bodies = BODIES if method in ("POST", "PUT") else BODIES[:1]
        return [(one, QUERIES[0]) for one in bodies] + [(BODIES[0], one) for one in QUERIES[1:]]

    def differences(self, method: str, path: str) -> list[str]:
        """Return which strangers can tell the private stream from an unknown one, and how."""
        found = []
        for (who, headers), ((kind, body), query) in product(
            STRANGERS.items(), self.requests(method, path)
        ):
            if headers is ENROL and path.endswith("/devices"):
                continue  # whoever has this token may take part in any stream
            request = {
                "content": body,
                "headers": headers | {"Content-Type": kind},
                "params": query,
            }
            private = self.answer(method, path, HIDDEN, **request)
            unknown = self.answer(method, path, MISSING, **request)
            if private != unknown:
                found.append(f"{who}, {query}, {kind} {len(body)}: {private} but {unknown}")
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("private")
    streams = [("open", "true"), (HIDDEN, "false"), (OTHER, "false")]
    tables = [STREAM_TABLE.format(name=name, public=public) for name, public in streams]
    config = parse(CONFIG + "".join(tables), folder / "collector.toml")
    service = Service(config, SECRETS, ManualClock(START_MS))
    with TestClient(build_app(service), raise_server_exceptions=False) as client:
        eventually(lambda: ROUND in service.streams[HIDDEN].hub.open)
        yield World(service, client, client.get("/openapi.json").json()["paths"])


def test_these_are_all_routes_that_take_a_name(world: World) -> None:
    assert {path for path in world.described if "{stream}" in path} == set(ROUTES)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", ROUTES)
def test_a_stranger_cannot_tell_a_private_stream_from_none(
    world: World, path: str, method: str
) -> None:
    assert world.differences(method, path) == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/status"),
        ("GET", "/alerts"),
        ("GET", "/releases"),
        ("GET", "/rounds"),
        ("POST", "/rounds/{round}/reports"),
        ("POST", "/rounds/{round}/batch"),
    ],
)
def test_without_the_check_the_comparison_fails(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    """Planted: whoever asks is let in."""
    there = lookup._private
    monkeypatch.setattr(lookup, "_private", lambda request, name, _: there(request, name, True))
    assert world.differences(method, "/v1/streams/{stream}" + path)


def test_what_is_said_before_the_mac_is_checked_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the length of a body is told to whoever knows the name."""

    async def length_first(request: Any, receive: Any, name: str, _: str) -> Any:
        found = world.service.streams.get(name)
        if found is not None:
            await read_body(receive, 2)
        raise lookup._unknown(world.service, name)

    monkeypatch.setattr("ldpstream.collector.api.ingest.reported_stream", length_first)
    assert world.differences("POST", "/v1/streams/{stream}/rounds/{round}/reports")


def test_the_refusal_names_public_streams_only_and_says_what_may_help(world: World) -> None:
    told = world.client.get(f"/v1/streams/{HIDDEN}/rounds").json()["detail"]
    assert told == (
        "stream 'ward' is unknown, or private and needs a token; "
        "send its read token, or use one of: open"
    )


def test_nothing_else_names_a_private_stream(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not in the scheduler, which would try again, and succeed, at any moment.
    monkeypatch.setattr(Service, "failures", {HIDDEN: "the disk is full"})
    for path in ("/v1/streams", "/metrics", "/openapi.json", "/v1/ready", "/v1/health"):
        shown = world.client.get(path).text
        assert HIDDEN not in shown, path
        assert OTHER not in shown, path
    assert world.client.get("/v1/ready").status_code == 503
    token = bearer(read_token(SECRETS.admin, HIDDEN))
    failures = world.client.get("/v1/ready", headers=token).json()["failures"]
    assert failures == {HIDDEN: "the disk is full"}


@pytest.mark.parametrize("path", ["rounds", "releases", "status", "alerts"])
@pytest.mark.parametrize("token", [read_token(SECRETS.admin, HIDDEN), SECRETS.admin.decode()])
def test_a_token_opens_it(world: World, path: str, token: str) -> None:
    answer = world.client.get(f"/v1/streams/{HIDDEN}/{path}", headers=bearer(token))
    assert answer.status_code == 200


def rounds(world: World, after: int, headers: dict[str, str]) -> Any:
    path = f"/v1/streams/{HIDDEN}/rounds?after={after}"
    return world.client.get(path, headers=headers)


def test_a_device_hears_of_rounds_by_its_key(world: World) -> None:
    told = rounds(world, 0, signer(HIDDEN).question(HIDDEN)).json()
    assert [one["round"] for one in told["rounds"]] == [ROUND]


def test_the_mac_is_of_the_serial_that_is_asked_for(world: World) -> None:
    asked = signer(HIDDEN).question(HIDDEN, after=5)
    assert rounds(world, 5, asked).status_code == 200
    assert_problem(rounds(world, 4, asked), 404, "stream-unknown")


def test_neither_mac_serves_for_the_other(world: World) -> None:
    asking = world.service.streams[HIDDEN].hub.open[ROUND]
    report = report_of(asking, 1)
    reported = signer(HIDDEN).headers(asking, report)
    assert_problem(rounds(world, 0, reported), 404, "stream-unknown")
    path = f"/v1/streams/{HIDDEN}/rounds/{ROUND}/reports"
    question = signer(HIDDEN).question(HIDDEN)
    assert_problem(world.client.post(path, content=report, headers=question), 404, "stream-unknown")
    message = b"0\n"  # the end of a question's message, as if it were a report
    assert_problem(
        world.client.post(path, content=message, headers=question), 404, "stream-unknown"
    )


def test_a_device_that_proves_its_key_is_told_what_is_wrong(world: World) -> None:
    asking = world.service.streams[HIDDEN].hub.open[ROUND]
    path = f"/v1/streams/{HIDDEN}/rounds"
    for report, status, code in (
        (b"\1\0\0", 400, "report-length"),
        (b"\7\0", 400, "report-version"),
    ):
        signed = signer(HIDDEN).headers(asking, report)
        answer = world.client.post(f"{path}/{ROUND}/reports", content=report, headers=signed)
        assert_problem(answer, status, code)
    question = signer(HIDDEN).question(HIDDEN)
    assert_problem(world.client.get(f"{path}?wait=99", headers=question), 400, "parameter")
    empty = world.client.post(f"{path}/{ROUND}/batch", content=b"", headers=question)
    assert_problem(empty, 400, "report-length")


def test_reports_of_its_devices_are_taken_one_by_one_and_in_batches(world: World) -> None:
    asking = world.service.streams[HIDDEN].hub.open[ROUND]
    path, report = f"/v1/streams/{HIDDEN}/rounds/{ROUND}", report_of(asking, 2)
    signed = signer(HIDDEN, 2).headers(asking, report)
    assert world.client.post(f"{path}/reports", content=report, headers=signed).status_code == 202
    tokens = bearer(read_token(SECRETS.admin, HIDDEN))
    for number, proof in ((3, tokens), (4, signer(HIDDEN, 9).question(HIDDEN))):
        record = signer(HIDDEN, number).record(asking, report_of(asking, number))
        taken = world.client.post(f"{path}/batch", content=record, headers=proof)
        assert (taken.json()["accepted"], taken.json()["refused"]) == (1, {})


def test_a_key_of_it_is_given_for_the_token_only(world: World) -> None:
    body = enrolment(1)
    path = f"/v1/streams/{HIDDEN}/devices"
    for headers in ({}, bearer("wrong"), ADMIN, bearer(read_token(SECRETS.admin, HIDDEN))):
        assert_problem(world.client.post(path, json=body, headers=headers), 401, "token")
    assert world.client.post(path, json=body, headers=ENROL).status_code == 201


def test_strangers_leave_no_trace_in_its_counters(world: World) -> None:
    admin = {"headers": ADMIN}
    before = world.client.get(f"/v1/streams/{HIDDEN}/status", **admin).json()["refused"]  # type: ignore[arg-type]
    for path in ("rounds", "releases", "status"):
        world.client.get(f"/v1/streams/{HIDDEN}/{path}")
    after = world.client.get(f"/v1/streams/{HIDDEN}/status", **admin).json()["refused"]  # type: ignore[arg-type]
    assert after == before


def test_a_public_stream_asks_for_no_proof(world: World) -> None:
    """Devices of earlier versions of this release send none."""
    for headers in ({}, {"Ldp-Device": "00", "Ldp-Mac": "00"}, signer(OTHER).question(OTHER)):
        assert world.client.get("/v1/streams/open/rounds", headers=headers).status_code == 200


@pytest.mark.parametrize("oracle", Oracle)
def test_the_longest_report_of_an_oracle_fits(oracle: Oracle) -> None:
    """Of a private stream no more is read before the MAC is checked."""
    assert oracle.device(MOST_LABELS, Epsilon(1)).report_bytes <= LARGEST_REPORT
