"""Enrolment tokens and the deny list, by the API; and the log of who made them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.collector.api import ADMIN, ENROL, STREAM, Api, assert_problem, running
from tests.collector.helpers import device_of, enrolment, report_of

TOKENS, DENIED, LOG = "/v1/admin/tokens", "/v1/admin/denied/a", "/v1/admin/log"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with running(tmp_path, selection="roster") as found:
        yield found


def create(api: Api, **wanted: object) -> Any:
    return api.client.post(TOKENS, json={"name": "field"} | wanted, headers=ADMIN)


def bearer(created: Any) -> dict[str, str]:
    assert created.status_code == 201, created.text
    return {"Authorization": f"Bearer {created.json()['token']}"}


def enrol(api: Api, number: int, headers: dict[str, str]) -> Any:
    return api.client.post(f"{STREAM}/devices", json=enrolment(number), headers=headers)


def listed(api: Api) -> dict[str, Any]:
    (token,) = api.client.get(TOKENS, headers=ADMIN).json()["tokens"]
    assert "token" not in token
    assert "digest" not in token
    return dict(token)


def test_devices_enrol_with_a_token_until_it_is_used_up(api: Api) -> None:
    token = bearer(create(api, most_uses=2))
    first = enrol(api, 1, token)
    assert first.status_code == 201
    assert enrol(api, 1, token).json() == first.json() == enrol(api, 1, ENROL).json()
    assert enrol(api, 2, token).status_code == 201
    assert_problem(enrol(api, 3, token), 403, "token-ended")
    assert enrol(api, 2, token).status_code == 201
    assert (listed(api)["uses"], api.service.store.enrolled("a")) == (2, 2)
    assert enrol(api, 3, ENROL).status_code == 201, "the token of the file stays good"


def test_a_token_expires(api: Api) -> None:
    token = bearer(create(api, expires_in="1h"))
    assert enrol(api, 1, token).status_code == 201
    api.clock.advance(3_600_000)
    refused = enrol(api, 1, token)
    assert_problem(refused, 403, "token-ended")
    assert "'field' has expired" in refused.json()["detail"]


def test_a_token_is_revoked_at_once(api: Api) -> None:
    token = bearer(create(api))
    assert enrol(api, 1, token).status_code == 201
    assert api.client.delete(f"{TOKENS}/field", headers=ADMIN).status_code == 204
    assert_problem(enrol(api, 1, token), 403, "token-ended")
    assert_problem(api.client.delete(f"{TOKENS}/field", headers=ADMIN), 404, "token-unknown")
    assert_problem(create(api), 409, "token-exists")


def test_a_token_of_one_stream_opens_no_other(api: Api) -> None:
    token = bearer(create(api, stream="a"))
    assert enrol(api, 1, token).status_code == 201
    answers = [
        api.client.post("/v1/streams/b/devices", json=enrolment(1), headers=headers)
        for headers in (token, {"Authorization": "Bearer a guess"})
    ]
    assert_problem(answers[0], 401, "token")
    assert answers[0].text == answers[1].text
    assert_problem(create(api, name="other", stream="b"), 404, "stream-unknown")


@pytest.mark.parametrize(
    "wanted",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": 7},
        {"expires_in": "soon"},
        {"expires_in": 7},
        {"expires_in": "0s"},
        {"expires_in": "9999999999999d"},
        {"most_uses": 0},
        {"most_uses": True},
        {"most_uses": 1.5},
    ],
)
def test_a_token_that_cannot_be_is_refused(api: Api, wanted: dict[str, object]) -> None:
    assert_problem(create(api, **wanted), 400, "parameter")


def test_a_denied_device_is_refused_everywhere(api: Api) -> None:
    token = bearer(create(api, most_uses=3))
    for number in (1, 2):
        assert enrol(api, number, token).status_code == 201
    api.pass_time(10_000)
    asking, denied = api.asking(), device_of(1).hex()
    told = api.client.post(DENIED, json={"devices": [denied]}, headers=ADMIN)
    assert told.json() == {"stream": "a", "devices": [denied]}
    assert_problem(enrol(api, 1, token), 403, "device-denied")
    report = report_of(asking, 1)
    assert_problem(api.post(asking, 1, report), 403, "device-denied")
    assert api.post(asking, 2, report_of(asking, 2)).status_code == 202
    assert_problem(api.post(asking, 1, report, **{"Ldp-Mac": "00" * 16}), 401, "report-mac")
    records = b"".join(api.signer(n).record(asking, report_of(asking, n)) for n in range(1, 30))
    summary = api.post_batch(asking, records).json()
    assert summary["refused"]["device-denied"] == 1
    assert api.refused()["device-denied"] == 2
    assert api.refused_requests() == {"device-denied": 1}
    assert listed(api)["uses"] == 2
    allowed = api.client.delete(f"{DENIED}/{denied}", headers=ADMIN)
    assert allowed.json()["devices"] == []
    assert api.post(asking, 1, report).status_code == 202


@pytest.mark.parametrize("devices", [None, [], ["00"], [7], "00" * 16, ["00" * 16] * 401])
def test_only_device_numbers_are_denied(api: Api, devices: object) -> None:
    refused = api.client.post(DENIED, json={"devices": devices}, headers=ADMIN)
    assert refused.status_code == 400


def test_every_action_is_logged_without_secrets(api: Api) -> None:
    token = create(api, stream="a").json()["token"]
    api.client.delete(f"{TOKENS}/field", headers=ADMIN)
    api.client.post(
        DENIED,
        json={"devices": [device_of(1).hex()]},
        headers=ADMIN | {"User-Agent": "ldpstream-cli"},
    )
    answer = api.client.get(LOG, headers=ADMIN)
    entries = answer.json()["entries"]
    assert [(one["number"], one["action"], one["who"]) for one in entries] == [
        (1, "create-token", "admin token, API"),
        (2, "revoke-token", "admin token, API"),
        (3, "deny", "admin token, command line"),
    ]
    assert entries[0]["details"]["name"] == "field"
    assert entries[2]["details"] == {"stream": "a", "devices": [device_of(1).hex()]}
    assert token not in answer.text
    later = api.client.get(f"{LOG}?after=1&limit=1", headers=ADMIN).json()["entries"]
    assert later == entries[1:2]
    assert_problem(api.client.get(f"{LOG}?limit=1001", headers=ADMIN), 400, "parameter")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/admin/keys"),
        ("POST", "/v1/admin/keys/rotate"),
        ("POST", "/v1/admin/keys/prepare"),
        ("POST", "/v1/admin/keys/drop"),
        ("GET", TOKENS),
        ("POST", TOKENS),
        ("DELETE", f"{TOKENS}/field"),
        ("GET", DENIED),
        ("POST", DENIED),
        ("DELETE", f"{DENIED}/{'00' * 16}"),
        ("GET", LOG),
    ],
)
def test_all_of_it_needs_the_admin_token(api: Api, method: str, path: str) -> None:
    for headers in ({}, ENROL):
        assert_problem(api.client.request(method, path, headers=headers), 401, "token")
    assert api.service.administration.log(0, 10) == []
