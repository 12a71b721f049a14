"""Rules through the API: the same as in the file, kept in the store, for admins only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ldpstream.collector.api.app import build_app
from ldpstream.collector.api.limits import ReaderPool
from ldpstream.collector.api.releases import AlertEvents, _events
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.service.service import Service
from tests.collector.api import ADMIN, Api, assert_problem
from tests.collector.helpers import SECRETS, START_MS, report_of
from tests.collector.test_alerts import Hook, configured
from tests.collector.test_metrics import scrape, value
from tests.waiting import eventually

RULES = "/v1/streams/a/alerts/rules"
ALERTS = "/v1/streams/a/alerts"
FIXED = '[[stream.alert]]\nname = "fixed"\nlabel = "x"\nbelow = -99\n'
ALWAYS = {"label": "y", "above": -99.0, "name": "always"}


@contextmanager
def running(folder: Path, webhook: str = "http://127.0.0.1:1/") -> Iterator[Api]:
    """The service of a file with one rule; the same store every time."""
    service = Service(configured(folder, FIXED, webhook), SECRETS, clock := ManualClock(START_MS))
    with TestClient(build_app(service), raise_server_exceptions=False) as client:
        api = Api(service, client, clock)
        clock.advance(10_000 * service.streams["a"].hub.last_t)
        yield api


def test_whoever_asks_for_alerts_too_often_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReaderPool, "is_full", lambda self, reader: True)
    with running(tmp_path) as api:
        assert_problem(api.client.get(ALERTS), 429, "rate-limited")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with running(tmp_path) as api:
        yield api


def add(api: Api, rule: dict[str, Any]) -> Any:
    headers = ADMIN | {"Content-Type": "application/json"}
    return api.client.post(RULES, content=json.dumps(rule), headers=headers)


def names(api: Api) -> list[tuple[str, str]]:
    listed = api.client.get(RULES, headers=ADMIN).json()["rules"]
    return [(one["rule"]["name"], one["source"]) for one in listed]


def states(api: Api) -> dict[str, str]:
    return {one["name"]: one["state"] for one in api.client.get(ALERTS).json()["alerts"]}


def pass_timestamp(api: Api) -> None:
    """Let everyone report, and wait until the timestamp is released and its alerts evaluated."""
    asking, evaluator = api.asking(), api.service.evaluators["a"]
    for number in range(40):
        assert api.post(asking, number, report_of(asking, number)).status_code == 202
    api.pass_time(9000)
    eventually(lambda: evaluator.last_t == asking.stored.t)
    api.clock.advance(1000)
    api.service.scheduler.wake()


def test_a_rule_is_added_replaced_and_removed(api: Api) -> None:
    added = add(api, ALWAYS | {"for": "30s"})
    assert added.status_code == 201
    body = added.json()
    assert added.headers["location"] == f"{RULES}/{body['id']}"
    assert body["rule"] == ALWAYS | {"on": "estimate", "for": "30000ms", "keep_firing_for": "0ms"}
    assert names(api) == [("fixed", "file"), ("always", "api")]
    changed = {"label": "y", "below": 0.25, "on": "interval", "probability": 0.9, "name": "low"}
    put = api.client.put(added.headers["location"], json=changed, headers=ADMIN)
    assert put.status_code == 200
    assert put.json()["id"] != body["id"]
    assert put.json()["rule"] | changed == put.json()["rule"]
    assert names(api) == [("fixed", "file"), ("low", "api")]
    gone = api.client.delete(f"{RULES}/{put.json()['id']}", headers=ADMIN)
    assert (gone.status_code, gone.content) == (204, b"")
    assert names(api) == [("fixed", "file")]


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ({"above": 0.1}, "label is missing"),
        ({"label": "q", "above": 0.1}, "'q' is not a label"),
        ({"label": "x"}, "either above or below"),
        ({"label": "x", "above": True}, "above is true"),
        ({"label": "x", "above": "0.1"}, "above is '0.1'"),
        ({"label": "x", "above": 0.1, "until": 3}, "no key 'until'"),
        ({"label": "x", "above": 0.1, "for": "soon"}, "for is 'soon'"),
        ({"label": "x", "above": 0.1, "probability": 0.9}, "no probability"),
        ({"label": "x", "above": 0.1, "name": "n" * 201}, "201 characters"),
        ({"label": "x", "above": 0.1, "name": "\ud800"}, r"name is '\ud800'"),
        ({"label": "x", "above": 10**400}, "1329 bits"),
    ],
)
def test_what_the_file_may_not_say_the_api_may_not_either(
    api: Api, rule: dict[str, Any], word: str
) -> None:
    answer = add(api, rule)
    assert_problem(answer, 400, "alert-rule")
    assert word in answer.json()["detail"]
    assert names(api) == [("fixed", "file")]


def test_refusals_name_their_reason(api: Api) -> None:
    fixed = api.client.get(RULES, headers=ADMIN).json()["rules"][0]["id"]
    known = add(api, ALWAYS).json()["id"]
    assert_problem(add(api, ALWAYS), 409, "alert-rule-exists")
    assert_problem(add(api, {"label": "x", "above": 1, "name": "fixed"}), 409, "alert-rule-exists")
    for change in ("put", "delete"):
        body = ALWAYS if change == "put" else None
        for rule_id, status, code in (
            (fixed, 409, "alert-rule-fixed"),
            ("0" * 16, 404, "alert-rule-unknown"),
        ):
            path = f"{RULES}/{rule_id}"
            answer = api.client.request(change, path, headers=ADMIN, json=body)
            assert_problem(answer, status, code)
    twin = add(api, ALWAYS | {"name": "twin"}).json()["id"]
    put = api.client.put(f"{RULES}/{twin}", json=ALWAYS, headers=ADMIN)
    assert_problem(put, 409, "alert-rule-exists")
    for answer in (
        api.client.get(RULES),
        api.client.post(RULES, json=ALWAYS),
        api.client.put(f"{RULES}/{known}", json=ALWAYS),
        api.client.delete(f"{RULES}/{known}"),
    ):
        assert_problem(answer, 401, "token")
    for content in (b"[]", b"{", b'"x"'):
        answer = api.client.post(
            RULES, content=content, headers=ADMIN | {"Content-Type": "application/json"}
        )
        assert_problem(answer, 400, "parameter")
    assert_problem(
        api.client.get("/v1/streams/none/alerts/rules", headers=ADMIN), 404, "stream-unknown"
    )


def test_rules_and_states_survive_a_restart_and_a_rule_that_goes_is_resolved(
    tmp_path: Path,
) -> None:
    hook = Hook()
    with hook.served() as url:
        with running(tmp_path, url) as api:
            pass_timestamp(api)
            rule_id = add(api, ALWAYS).json()["id"]
            assert states(api) == {"fixed": "inactive", "always": "inactive"}, "not in the past"
            pass_timestamp(api)
            assert states(api) == {"fixed": "inactive", "always": "firing"}
            eventually(lambda: len(hook.heard) == 1)
        with running(tmp_path, url) as api:
            shown = api.client.get(ALERTS).json()
            (alert,) = (one for one in shown["alerts"] if one["name"] == "always")
            assert (alert["state"], alert["id"]) == ("firing", rule_id)
            assert alert["since_ms"] == alert["fired_ms"] == shown["changes"][0]["at_ms"]
            assert alert["low"] < alert["high"]
            assert alert["value"] > -99
            assert alert["probability"] == pytest.approx(1)
            assert api.client.delete(f"{RULES}/{rule_id}", headers=ADMIN).status_code == 204
            eventually(lambda: len(hook.heard) == 2)
        with running(tmp_path, url) as api:
            assert states(api) == {"fixed": "inactive"}
            changes = api.client.get(ALERTS).json()["changes"]
            assert [(one["t"], one["state"]) for one in changes] == [(2, "firing"), (2, "resolved")]
    assert [heard["status"] for heard in hook.heard] == ["firing", "resolved"]


def test_the_feed_tells_of_alerts(api: Api) -> None:
    stream = api.service.streams["a"]

    async def read(number: int) -> list[bytes]:
        events = _events(api.service, stream, stream.hub.last_t, AlertEvents(), ReaderPool(), "")
        found = [await anext(events) for _ in range(number)]
        await events.aclose()
        return found

    add(api, ALWAYS)
    pass_timestamp(api)
    _, told = asyncio.run(read(2))
    kind, data, *_ = told.decode().splitlines()
    assert kind == "event: alerts"
    assert json.loads(data.removeprefix("data: ")) == api.client.get(ALERTS).json()


def test_the_api_describes_its_rules(api: Api) -> None:
    paths = api.client.get("/openapi.json").json()["paths"]
    assert set(paths["/v1/streams/{stream}/alerts/rules"]) == {"get", "post"}
    one = paths["/v1/streams/{stream}/alerts/rules/{rule_id}"]
    assert set(one) == {"put", "delete"}
    schema = one["put"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]) >= {"label", "above", "below", "on", "probability", "for"}
    assert "application/problem+json" in one["delete"]["responses"]["409"]["content"]


# Silences


SILENCES = "/v1/admin/silences/a"


def silence(api: Api, rule: str, length: str) -> Any:
    return api.client.post(SILENCES, json={"rule": rule, "for": length}, headers=ADMIN)


def silenced(api: Api) -> dict[str, int | None]:
    alerts = api.client.get(ALERTS).json()["alerts"]
    return {one["name"]: one["silenced_until_ms"] for one in alerts}


def test_a_rule_is_silenced_over_restarts_and_logged(tmp_path: Path) -> None:
    hook = Hook()
    with hook.served() as url:
        with running(tmp_path, url) as api:
            rule = add(api, ALWAYS).json()["id"]
            before = api.service.streams["a"].hub.alerts_serial
            assert silence(api, rule, "1m").status_code == 200
            assert api.service.streams["a"].hub.alerts_serial > before, "the page hears of it"
            pass_timestamp(api)
            assert states(api)["always"] == "firing"
            until = silenced(api)
            assert until == {"fixed": None, "always": START_MS + 60_000}
            assert value(scrape(api), "alerts_silenced") == 1
            assert value(scrape(api), "alerts_firing", kind="threshold") == 1
        with running(tmp_path, url) as api:
            assert silenced(api) == until
            assert hook.heard == []
            ended = api.client.delete(f"{SILENCES}/{rule}", headers=ADMIN)
            assert [one["silenced_until_ms"] for one in ended.json()["rules"]] == [None, None]
            pass_timestamp(api)
            eventually(lambda: len(hook.heard) == 1)
            assert hook.heard[0]["alerts"][0]["labels"]["alertname"] == "always"
            log = api.client.get("/v1/admin/log", headers=ADMIN).json()["entries"]
    assert [(one["action"], one["details"]["rule"]) for one in log] == [
        ("silence", "always"),
        ("end-silence", "always"),
    ]


def test_who_silences_needs_the_token_a_rule_and_a_length(api: Api) -> None:
    fixed = api.client.get(SILENCES, headers=ADMIN).json()["rules"][0]["id"]
    assert_problem(api.client.get(SILENCES), 401, "token")
    assert_problem(api.client.post(SILENCES, json={"rule": fixed, "for": "1h"}), 401, "token")
    assert_problem(silence(api, "0" * 16, "1h"), 404, "alert-rule-unknown")
    assert_problem(silence(api, fixed, "soon"), 400, "parameter")
    assert_problem(api.client.post(SILENCES, json={"rule": fixed}, headers=ADMIN), 400, "parameter")
    assert_problem(api.client.delete(f"{SILENCES}/none", headers=ADMIN), 404, "alert-rule-unknown")
    assert silenced(api) == {"fixed": None}


# Annotations


def test_alerts_are_annotations_for_grafana(api: Api) -> None:
    rule = add(api, ALWAYS | {"name": "gone"}).json()["id"]
    add(api, {"reports_below": 1.0, "name": "few"})
    pass_timestamp(api)
    pass_timestamp(api)
    api.client.delete(f"{RULES}/{rule}", headers=ADMIN)
    marks = api.client.get("/v1/streams/a/annotations").json()
    assert [(one["title"], one["tags"]) for one in marks] == [("gone (y)", "ldpstream,alert")]
    assert marks[0]["timeEnd"] > marks[0]["time"] > START_MS
    for begin, found in ((marks[0]["time"] + 1, marks), (marks[0]["timeEnd"] + 1, [])):
        assert api.client.get(f"/v1/streams/a/annotations?from={begin}").json() == found
    assert_problem(api.client.get("/v1/streams/a/annotations?from=-1"), 400, "parameter")
    assert_problem(api.client.get("/v1/streams/b/annotations"), 404, "stream-unknown")
