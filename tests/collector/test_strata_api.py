"""The API of a stream with several strata: notices, terms by pin, levels, and what has ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.service.service import Service
from ldpstream.protocol.authentication import key_prefix, message_mac, terms_message
from ldpstream.protocol.slots import is_turn
from ldpstream.protocol.terms import Terms
from tests.collector.api import ADMIN, ENROL, STREAM, Api, assert_problem
from tests.collector.helpers import (
    SECRETS,
    START_MS,
    Signer,
    config,
    device_of,
    enrolment,
    report_of,
)
from tests.collector.strata import CAREFUL
from tests.waiting import eventually

GIVEN: dict[str, Any] = {"selection": "slots", "level": [CAREFUL], "epsilon": 1}
CHANGED = GIVEN | {
    "labels": ["x", "why", "new"],
    "successor": {"version": 2, "rename": {"y": "why", "z": "x"}, "overlap": "20s"},
}
PLAIN = GIVEN | {"level": None}
PLAIN_CHANGED = CHANGED | {"level": None}
FROM_T, UNTIL_T = 5, 6


@contextmanager
def changing(
    folder: Path, first: dict[str, Any] = GIVEN, then: dict[str, Any] = CHANGED
) -> Iterator[Api]:
    """A collector that was started with one file, and again with another."""
    clock = ManualClock(START_MS)
    with TestClient(build_app(Service(config(folder, **first), SECRETS, clock))):
        pass
    service = Service(config(folder, **then), SECRETS, clock)
    with TestClient(build_app(service), raise_server_exceptions=False) as client:
        yield Api(service, client, clock)


def opened(api: Api, t: int) -> dict[str, OpenRound]:
    """The rounds of a timestamp, by name, once they are open."""
    hub = api.service.streams["a"].hub
    api.clock.advance_to(START_MS + (t - 1) * 10_000)
    api.service.scheduler.wake()
    eventually(lambda: any(one.stored.t == t for one in hub.open.values()))
    return dict(hub.open)


def signer(number: int, level: str = "") -> Signer:
    return Signer(number, DeviceKeys(SECRETS.master, "a", key_prefix("a", level)))


def due(asking: OpenRound) -> Signer:
    """A device whose turn it is, at the level of the round."""
    for number in range(1, 1000):
        found = signer(number, asking.terms.level)
        if is_turn(found.keys.of(device_of(number)), asking.terms.window, asking.stored.t):
            return found
    raise AssertionError


def post(api: Api, asking: OpenRound, who: Signer, name: str = "") -> Any:
    report = report_of(asking, who.number)
    path = f"{STREAM}/rounds/{name or asking.name}/reports"
    return api.client.post(path, content=report, headers=who.headers(asking, report))


def test_every_answer_to_a_report_names_the_successor(tmp_path: Path) -> None:
    with changing(tmp_path) as api:
        first, second = api.service.streams["a"].history.versions
        asking = opened(api, 1)["1-publication"]
        who = due(asking)
        for answer in (post(api, asking, who), post(api, asking, who)):
            assert answer.status_code == 202
            assert answer.json()["successor"] == second.pin
        refused = api.post(asking, 1, b"\1\1", **{"Ldp-Mac": "00" * 16})
        assert_problem(refused, 401, "report-mac")
        assert refused.json()["successor"] == second.pin
        records = who.record(asking, report_of(asking, who.number))
        assert api.post_batch(asking, records).json()["successor"] == second.pin
        enrolled = api.client.post(f"{STREAM}/devices", json=enrolled_body(1), headers=ENROL)
        assert enrolled.json()["pin"] == first.pin
        assert enrolled.json()["successor"] == second.pin
        listed = api.client.get(f"{STREAM}/rounds").json()
        assert (listed["pin"], listed["successor"]) == (first.pin, second.pin)
        listed = api.client.get(f"{STREAM}/rounds?version=2").json()
        assert listed["pin"] == second.pin
        assert "successor" not in listed
        assert_problem(api.client.get(f"{STREAM}/rounds?version=3"), 400, "parameter")
        asking = opened(api, FROM_T)[f"{FROM_T}-publication-v2"]
        answer = post(api, asking, due(asking))
        assert answer.status_code == 202
        assert "successor" not in answer.json()


def test_a_token_for_one_device_gives_a_key_at_one_level(tmp_path: Path) -> None:
    with changing(tmp_path) as api:
        wanted = {"name": "field", "most_uses": 1}
        token = api.client.post("/v1/admin/tokens", json=wanted, headers=ADMIN).json()["token"]
        headers = {"Authorization": f"Bearer {token}"}
        for level, status in (("careful", 201), ("", 403), ("careful", 201)):
            body = enrolled_body(1, level=level)
            answer = api.client.post(f"{STREAM}/devices", json=body, headers=headers)
            assert answer.status_code == status, answer.text


@pytest.mark.parametrize("level", ["\ud800", "A", 7, None, ["careful"], "unknown"])
@pytest.mark.parametrize("stream", ["a", "unknown"])
def test_a_renewal_at_no_level_is_not_signed(tmp_path: Path, stream: str, level: object) -> None:
    with changing(tmp_path) as api:
        body = json.dumps(enrolled_body(1, level=level))
        headers = {"Ldp-Device": device_of(1).hex(), "Ldp-Mac": "00" * 16}
        answer = api.client.post(f"/v1/streams/{stream}/devices", content=body, headers=headers)
        assert answer.status_code in (401, 404), answer.text


@pytest.mark.parametrize(("before", "after"), [(0.9, 0.3), (0.3, 0.9)])
def test_rounds_close_when_all_terms_have_had_their_moment(
    before: float, after: float, tmp_path: Path
) -> None:
    first, then = (
        one | {"deadlines": {"dissimilarity": 0.1, "publication": share}}
        for one, share in ((PLAIN, before), (PLAIN_CHANGED, after))
    )
    with changing(tmp_path, first, then) as api:
        for t, share in ((FROM_T - 1, before), (FROM_T, 0.9), (UNTIL_T + 1, after)):
            rounds = opened(api, t)
            closing = START_MS + (t - 1) * 10_000 + int(10_000 * share)
            assert {one.stored.deadline_ms for one in rounds.values()} == {closing}
            api.clock.advance_to(closing - 1)
            for asking in rounds.values():
                assert post(api, asking, due(asking)).status_code == 202


def enrolled_body(number: int, **more: object) -> dict[str, object]:
    return enrolment(number) | {"terms": 3} | more


def test_terms_are_read_by_their_pin(tmp_path: Path) -> None:
    with changing(tmp_path) as api:
        for terms in api.service.streams["a"].history.versions:
            answer = api.client.get(f"{STREAM}/terms/{terms.pin}")
            assert answer.status_code == 200
            assert Terms.read(answer.json()["terms"]) == terms
        assert_problem(api.client.get(f"{STREAM}/terms/{'0' * 64}"), 404, "terms-unknown")


@pytest.mark.parametrize("level", ["", "careful"])
def test_terms_of_a_private_stream_are_for_its_devices(level: str, tmp_path: Path) -> None:
    private = {"public": False}
    with changing(tmp_path, GIVEN | private, CHANGED | private) as api:
        pin = api.service.streams["a"].history.latest.pin
        path = f"{STREAM}/terms/{pin}"
        who = signer(1, level)
        mac = message_mac(who.keys.of(device_of(1)), terms_message("a", pin)).hex()
        proof = {"Ldp-Device": device_of(1).hex(), "Ldp-Mac": mac}
        assert api.client.get(path, headers=proof).json()["pin"] == pin
        assert api.client.get(path, headers=ADMIN).json()["pin"] == pin
        assert_problem(api.client.get(path), 404, "stream-unknown")
        wrong = proof | {"Ldp-Mac": "00" * 16}
        forbidden = api.client.get(path, headers=wrong)
        unknown = api.client.get(f"{STREAM}/terms/{'0' * 64}", headers=wrong)
        missing = api.client.get(f"/v1/streams/b/terms/{pin}", headers=wrong)
        assert forbidden.content == unknown.content == missing.content.replace(b"'b'", b"'a'")


def test_a_report_counts_at_its_own_level_only(tmp_path: Path) -> None:
    with changing(tmp_path, GIVEN, GIVEN) as api:
        rounds = opened(api, 1)
        assert set(rounds) == {"1-publication", "1-publication-careful"}
        careful = rounds["1-publication-careful"]
        who = due(careful)
        assert post(api, careful, who).status_code == 202
        same_number = signer(who.number)  # the key of the stream's own level
        assert_problem(post(api, careful, same_number), 401, "report-mac")
        # One who has the key of a level signs for that level: another round is another message.
        assert_problem(post(api, careful, who, "1-publication"), 401, "report-mac")
        not_due = next(
            number
            for number in range(1, 100)
            if not is_turn(signer(number, "careful").keys.of(device_of(number)), 8, 1)
        )
        assert_problem(post(api, careful, signer(not_due, "careful")), 403, "report-not-asked")


def test_a_device_enrols_at_a_level(tmp_path: Path) -> None:
    with changing(tmp_path, GIVEN, GIVEN) as api:
        keys = {}
        for level in ("", "careful"):
            body = enrolled_body(1, level=level)
            answer = api.client.post(f"{STREAM}/devices", json=body, headers=ENROL)
            assert answer.status_code == 201
            keys[level] = answer.json()["key"]
            assert keys[level] == signer(1, level).keys.of(device_of(1)).hex()
        assert len(set(keys.values())) == 2
        for wrong in ("bold", "v2", ""):
            body = enrolled_body(1, level=wrong or 5)
            refused = api.client.post(f"{STREAM}/devices", json=body, headers=ENROL)
            assert_problem(refused, 400, "level-unknown" if wrong else "parameter")


def test_a_device_that_cannot_read_the_terms_is_refused_in_one_line(tmp_path: Path) -> None:
    """Devices of 0.2.0 do not say which format of terms they read; plain terms they do."""
    with changing(tmp_path, GIVEN, GIVEN) as api:
        refused = api.client.post(f"{STREAM}/devices", json=enrolment(1), headers=ENROL)
        assert_problem(refused, 403, "terms-format")
    with changing(tmp_path / "plain", PLAIN, PLAIN_CHANGED) as api:
        path = f"{STREAM}/devices"
        assert api.client.post(path, json=enrolment(1), headers=ENROL).status_code == 201
        opened(api, FROM_T)
        assert_problem(api.client.post(path, json=enrolment(1), headers=ENROL), 403, "terms-format")
        body = enrolled_body(1)
        assert api.client.post(path, json=body, headers=ENROL).json()["terms"]["version"] == 3


def test_terms_that_have_ended_are_refused_by_their_name(tmp_path: Path) -> None:
    with changing(tmp_path) as api:
        asking = opened(api, UNTIL_T)[f"{UNTIL_T}-publication"]
        assert post(api, asking, due(asking)).status_code == 202
        opened(api, UNTIL_T + 1)
        name = f"{UNTIL_T + 1}-publication"
        old = OpenRound(
            asking.terms,
            type(asking.stored)(**vars(asking.stored) | {"name": name}),
            asking.collector,
            None,
        )
        refused = post(api, old, due(asking))
        assert_problem(refused, 410, "terms-ended")
        assert "version 1" in refused.json()["detail"]
        assert refused.json()["successor"] == api.service.streams["a"].history.latest.pin
        assert_problem(api.post_batch(old, b"\0" * 34), 410, "terms-ended")


def test_the_stream_describes_its_versions_and_levels(tmp_path: Path) -> None:
    with changing(tmp_path) as api:
        told = api.client.get(STREAM).json()
        first, second = told["versions"]
        assert (first["version"], first["from_t"], first["until_t"]) == (1, 1, UNTIL_T)
        assert (second["version"], second["from_t"], second["until_t"]) == (2, FROM_T, None)
        assert [one["name"] for one in second["levels"]] == ["standard", "careful"]
        assert [one["window"] for one in second["levels"]] == [4, 8]
        assert told["pin"] == first["pin"]
        assert api.client.get(f"{STREAM}/status").json()["terms_version"] == 1
        asking = opened(api, FROM_T)[f"{FROM_T}-publication-v2-careful"]
        assert api.client.get(STREAM).json()["pin"] == second["pin"]
        assert post(api, asking, due(asking)).status_code == 202
        opened(api, FROM_T + 1)
        hub = api.service.streams["a"].hub
        eventually(lambda: hub.last_t >= FROM_T)
        text = api.client.get("/metrics").text
        sample = 'ldpstream_counted_reports_total{level="careful",stream="a",version="2"} 1.0'
        assert sample in text
