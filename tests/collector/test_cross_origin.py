"""Pages of other origins: what a browser is told, and that it tells nothing of private streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import parse
from ldpstream.collector.credentials.read_tokens import read_token
from ldpstream.collector.service.service import Service
from ldpstream.errors import Mistake
from tests.collector.api import ADMIN, ENROL
from tests.collector.helpers import SECRETS, START_MS, enrolment, stream_config

APP, OTHER = "https://app.example", "https://other.example"
STREAM = """
[[stream]]
name = "{name}"
labels = ["x", "y"]
epsilon = 1
window = 4
interval = "10s"
population = 40
public = {public}
allowed_origins = {origins}
"""
ROUTES = (
    "", "/status", "/releases", "/feed", "/devices", "/rounds", "/rounds/1-publication/reports",
    "/rounds/1-publication/batch",
)  # fmt: skip
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "ldp-mac"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    streams = [
        STREAM.format(name="named", public="true", origins=f'["{APP}"]'),
        STREAM.format(name="any", public="true", origins='"*"'),
        STREAM.format(name="none", public="true", origins="[]"),
        STREAM.format(name="ward", public="false", origins=f'["{APP}"]'),
        STREAM.format(name="cellar", public="false", origins="[]"),
    ]
    head = '[collector]\nlisten = "127.0.0.1:0"\nstore = "c.sqlite"\n'
    config = parse(head + "".join(streams), tmp_path / "collector.toml")
    service = Service(config, SECRETS, ManualClock(START_MS))
    with TestClient(build_app(service), raise_server_exceptions=False) as found:
        yield found


def allowed(answer: Any) -> str | None:
    assert "access-control-allow-credentials" not in answer.headers
    found: str | None = answer.headers.get("access-control-allow-origin")
    return found


def preflight(client: TestClient, path: str, origin: str) -> Any:
    return client.options(path, headers=PREFLIGHT | {"Origin": origin})


@pytest.mark.parametrize("end", ROUTES)
def test_a_preflight_allows_the_origins_of_the_stream(client: TestClient, end: str) -> None:
    answer = preflight(client, f"/v1/streams/named{end}", APP)
    assert (answer.status_code, allowed(answer)) == (204, APP)
    assert "DELETE" in answer.headers["access-control-allow-methods"]
    assert "Ldp-Mac" in answer.headers["access-control-allow-headers"]
    assert answer.headers["vary"] == "Origin"
    assert allowed(preflight(client, f"/v1/streams/named{end}", OTHER)) is None
    assert allowed(preflight(client, f"/v1/streams/any{end}", OTHER)) == "*"
    assert allowed(preflight(client, f"/v1/streams/none{end}", APP)) is None


def test_answers_and_refusals_can_be_read_by_the_pages_that_may_ask(client: TestClient) -> None:
    body = enrolment(1)
    for origin, told in ((APP, APP), (OTHER, None)):
        headers = {"Origin": origin}
        joined = client.post("/v1/streams/named/devices", json=body, headers=headers | ENROL)
        assert (joined.status_code, allowed(joined)) == (201, told)
        wrong = headers | {"Authorization": "Bearer wrong"}
        refused = client.post("/v1/streams/named/devices", json=body, headers=wrong)
        assert (refused.status_code, allowed(refused)) == (401, told)
        report = client.post("/v1/streams/named/rounds/9-publication/reports", headers=headers)
        assert (report.status_code, allowed(report)) == (400, told)
    exposed = client.get("/v1/streams/any", headers={"Origin": OTHER}).headers
    assert exposed["access-control-expose-headers"] == "Retry-After"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/admin/status",
        "/v1/streams/any/share",
        "/v1/streams/any/alerts",
        "/v1/streams/any/alerts/rules",
        "/v1/streams",
        "/metrics",
        "/",
    ],
)
def test_other_routes_are_for_no_other_origin(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Origin": APP} | ADMIN)
    assert (answer.status_code, allowed(answer)) == (200, None)
    refused = preflight(client, path, APP)
    assert (refused.status_code, allowed(refused)) == (405, None)


@pytest.mark.parametrize("origin", [APP, OTHER])
@pytest.mark.parametrize("end", ROUTES)
def test_a_private_stream_looks_like_an_unknown_name(
    client: TestClient, end: str, origin: str
) -> None:
    def told(name: str, method: str) -> tuple[object, ...]:
        headers = {"Origin": origin} | (PREFLIGHT if method == "OPTIONS" else {})
        answer = client.request(method, f"/v1/streams/{name}{end}", headers=headers)
        text = answer.text.replace(name, "NAME")
        return answer.status_code, sorted(answer.headers.items()), text

    for method in ("OPTIONS", "GET", "POST", "DELETE"):
        names = {name: told(name, method) for name in ("ward", "cellar", "attic8")}
        assert names["ward"][0::2] == names["cellar"][0::2] == names["attic8"][0::2]
        for one, other in (("ward", "attic8"), ("cellar", "attic8")):
            differing = set(names[one][1]) ^ set(names[other][1])  # type: ignore[call-overload]
            assert {header for header, _ in differing} <= {"content-length"}


def test_who_opens_a_private_stream_gets_what_it_allows(client: TestClient) -> None:
    for name, told in (("ward", APP), ("cellar", None)):
        token = {"Authorization": f"Bearer {read_token(SECRETS.admin, name)}", "Origin": APP}
        answer = client.get(f"/v1/streams/{name}", headers=token)
        assert (answer.status_code, allowed(answer)) == (200, told)


@pytest.mark.parametrize(
    "bad",
    ["https://app.example/", "app.example", "HTTPS://app.example", "https://*.example", "", "null"],
)
def test_what_is_no_origin_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(Mistake, match="allowed_origins"):
        stream_config(tmp_path, allowed_origins=[bad])


def test_origins_of_extensions_and_addresses_are_taken(tmp_path: Path) -> None:
    good = ["chrome-extension://abcdefghijklmnop", "http://127.0.0.1:8000", "http://[::1]:80"]
    assert stream_config(tmp_path, allowed_origins=good).allowed_origins == frozenset(good)
