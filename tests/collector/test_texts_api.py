"""A stream of texts through the API, with devices of the SDK."""

from __future__ import annotations

import csv
import io
import json
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from ldpstream.collector.api.texts import LONGEST, MOST_TEXTS
from ldpstream.collector.config.alert_rules import read_request
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.protocol.slots import group_of, is_turn
from ldpstream.vocabulary import Vocabulary
from tests.collector.api import ADMIN, STREAM, Api, assert_problem, running
from tests.collector.helpers import device_of, source_of
from tests.collector.texts import NASTY, TEXTS
from tests.waiting import eventually

FEW = TEXTS | {"prefixes": [], "population": 60, "epsilon": 8, "candidates": ["rome", "osl"]}
HELD = (NASTY, "rome")


def running_texts(folder: Path, **stream: object) -> AbstractContextManager[Api]:
    return running(folder, limits="", **(FEW | stream))


def report(api: Api, number: int, group: int | None = None) -> bytes:
    """Return what a device reports; in another group than its own if that is given."""
    asking = api.asking()
    words = asking.terms.values
    assert isinstance(words, Vocabulary)
    tag = group_of(api.signer(number).keys.of(device_of(number)), len(words.groups))
    tag = tag if group is None else (tag + group) % len(words.groups)
    inner = asking.terms.oracle.device(len(words), asking.terms.epsilon)
    tagged = Tagged(inner, len(words.groups), tag)
    bucket = words.bucket(HELD[number % 2], words.groups[tag])
    return tagged.encode(tagged.perturb(bucket, source_of(f"{asking.name} {number}")))


def due(api: Api, number: int) -> bool:
    asking = api.asking()
    key = api.signer(number).keys.of(device_of(number))
    return is_turn(key, asking.terms.window, asking.stored.t)


def go_on(api: Api, timestamps: int) -> None:
    """Let everybody report who is due, and wait for the releases."""
    hub = api.service.streams["a"].hub
    for _ in range(timestamps):
        asking = api.asking()
        for number in filter(lambda one: due(api, one), range(1, 121)):
            assert api.post(asking, number, report(api, number)).status_code == 202
        t = asking.stored.t
        terms = asking.terms
        api.clock.advance_to(terms.start_of(t + 1))
        api.service.scheduler.wake()
        eventually(lambda t=t: hub.last_t >= t)  # type: ignore[misc]


def test_releases_texts_and_metrics_have_what_devices_hold(tmp_path: Path) -> None:
    with running_texts(tmp_path, candidates=[r"a,\"b\"\n\\ é", "rome"]) as api:
        go_on(api, 12)
        described = api.client.get(STREAM).json()
        assert described["terms"]["query"] == "vocabulary"
        assert described["versions"][0]["labels"] == []
        told = api.client.get(f"{STREAM}/releases").json()
        assert told["labels"] == []
        last = told["releases"][-1]
        assert sorted(last["labels"]) == sorted(HELD)
        assert last["rest"].keys() == {"value", "low", "high"}
        text = api.client.get(f"{STREAM}/releases?format=csv").text
        row = [*csv.DictReader(io.StringIO(text, newline=""))][-1]
        assert float(row[NASTY]) == last["values"][last["labels"].index(NASTY)]
        metrics = api.client.get("/metrics").text
        assert r'label="a,\"b\"\n\\ é"' in metrics
        assert (
            len([one for one in metrics.splitlines() if one.startswith("ldpstream_frequency{")])
            == 2
        )
        asked = api.client.get(f"{STREAM}/texts", params={"text": ["rome", "nobody", NASTY]}).json()
        assert asked["t"] == 12
        rome, nobody, nasty = asked["texts"]
        assert all(one["low"] <= one["value"] <= one["high"] for one in asked["texts"])
        assert min(rome["value"], nasty["value"]) > nobody["value"]
        summary = api.client.get(f"{STREAM}/summaries").json()
        assert summary["summaries"] == []
        assert api.client.get(f"{STREAM}/changes").json()["changes"] == []
        assert (
            api.client.get(f"{STREAM}/releases?revised=true").json()["releases"][-1]["revised"]
            is None
        )
        assert api.client.get("/v1/ready").status_code == 200
        told = api.client.get("/privacy/a", headers={"Accept": "application/json"}).json()
        assert "any text of at most 256 bytes" in told["question"]


def test_a_fake_cannot_choose_its_group(tmp_path: Path) -> None:
    with running_texts(tmp_path) as api:
        number = next(n for n in range(1, 100) if due(api, n))
        asking = api.asking()
        refused = api.post(asking, number, report(api, number, group=1))
        assert_problem(refused, 403, "report-not-asked")
        assert api.post(asking, number, report(api, number)).status_code == 202
        assert api.refused() == {"report-not-asked": 1}
        other = next(n for n in range(1, 100) if not due(api, n))
        assert_problem(api.post(asking, other, report(api, other)), 403, "report-not-asked")


def test_questions_about_texts_are_limited(tmp_path: Path) -> None:
    with running_texts(tmp_path) as api:
        ask = f"{STREAM}/texts"
        assert_problem(api.client.get(ask), 400, "parameter")
        many = {"text": ["x"] * (MOST_TEXTS + 1)}
        assert_problem(api.client.get(ask, params=many), 400, "parameter")
        assert_problem(api.client.get(ask, params={"text": "x" * (LONGEST + 1)}), 400, "parameter")
        assert_problem(api.client.get("/v1/streams/nowhere/texts?text=x"), 404, "stream-unknown")
        young = api.client.get(ask, params={"text": "x"}).json()["texts"]
        assert young == [{"text": "x", "value": 0.0, "low": 0.0, "high": 1.0}]
    with running(tmp_path / "labels") as api:
        assert_problem(api.client.get(ask, params={"text": "x"}), 400, "parameter")


def test_an_alert_may_be_about_any_text(tmp_path: Path) -> None:
    rule = {"label": "rome", "above": 0.2}
    with running_texts(tmp_path, alert=[rule, {"label": "nobody has it", "below": 0.9}]) as api:
        go_on(api, 8)
        eventually(lambda: api.service.evaluators["a"].last_t >= 8)
        states = {
            one["label"]: one["state"]
            for one in api.client.get(f"{STREAM}/alerts").json()["alerts"]
        }
        assert states == {"rome": "firing", "nobody has it": "inactive"}


def test_a_rule_of_the_api_may_be_about_any_text() -> None:
    rule = read_request({"label": NASTY, "above": 0.1}, "a", None)
    assert rule.label == NASTY


@pytest.mark.parametrize(
    ("given", "listed"), [("Zu\u0308rich", "Zürich"), ("x" * 300, "x" * 256), ("\u2126", "\u03a9")]
)
def test_a_rule_is_about_the_text_as_releases_write_it(given: str, listed: str) -> None:
    rule = read_request({"label": given, "above": 0.1}, "a", None)
    assert rule.label == listed


def test_a_rule_about_a_long_text_that_has_no_name_of_its_own_outlives_a_restart(
    tmp_path: Path,
) -> None:
    rules = f"{STREAM}/alerts/rules"
    with running_texts(tmp_path) as api:
        given = {"label": "x" * 300, "above": 0.1}
        assert api.client.post(rules, json=given, headers=ADMIN).status_code == 201
        listed = api.client.get(rules, headers=ADMIN).json()
        assert [one["rule"]["name"] for one in listed["rules"]] == [f"{'x' * 256} above 0.1"]
    with running_texts(tmp_path) as api:
        assert api.client.get(rules, headers=ADMIN).json() == listed


def test_candidates_change_by_a_reload_while_it_runs(tmp_path: Path) -> None:
    with running_texts(tmp_path) as api:
        service = api.service
        go_on(api, 8)
        listed = api.client.get(f"{STREAM}/releases?since=8").json()["releases"][0]["labels"]
        assert listed == ["rome"]
        file = tmp_path / "collector.toml"
        lines = [
            f"{key} = {json.dumps(value)}"
            for key, value in (FEW | {"candidates": [NASTY, "rome"], "top": 1}).items()
            if value is not None
        ]
        file.write_text(
            "\n".join(
                [
                    *("[collector]", 'listen = "127.0.0.1:0"', 'store = "c.sqlite"'),
                    *("[[stream]]", 'name = "a"', 'interval = "10s"', *lines),
                ]
            )
        )
        done = service.reload("a test")
        assert done.refused == ()
        assert {line.partition(" =")[0] for line in done.changes} == {"a: candidates", "a: top"}
        go_on(api, 1)
        (last,) = api.client.get(f"{STREAM}/releases?since=9").json()["releases"]
        assert len(last["labels"]) == 1
        assert last["labels"][0] in HELD


@pytest.mark.parametrize("kind", ["json", "ndjson", "csv", "arrow", "parquet"])
def test_a_stream_that_has_released_nothing_can_be_read(kind: str, tmp_path: Path) -> None:
    with running_texts(tmp_path) as api:
        assert api.client.get(f"{STREAM}/releases?format={kind}").status_code == 200
