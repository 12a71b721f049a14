"""Metrics and log lines: what they contain, and what they never contain."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ldpstream.collector.api import metrics
from ldpstream.collector.credentials.read_tokens import read_token
from ldpstream.collector.json_logging import set_up
from ldpstream.errors import Mistake, Problem
from tests.collector.api import ADMIN, Api, running
from tests.collector.helpers import SECRETS, device_of, enrolment, report_of
from tests.waiting import eventually

BOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "ldpstream.json"
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(autouse=True)
def _made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer is made anew; that it is kept for a second has a test of its own."""
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 0.0)


def test_an_answer_is_given_again_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To make one keeps everything else waiting, and anyone may ask for one."""
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 3600.0)
    with running(tmp_path) as api:
        before = scrape(api)
        one_timestamp(api)
        assert scrape(api) == before


def scrape(api: Api, **headers: str) -> Series:
    answer = api.client.get("/metrics", headers=headers or ADMIN)
    assert answer.status_code == 200, answer.text
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in text_string_to_metric_families(answer.text)
        for one in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float | None:
    return series.get((f"ldpstream_{name}", frozenset({"stream": "a", **labels}.items())))


def one_timestamp(api: Api) -> None:
    """Two reports, one of them twice, one refused; then a release."""
    asking = api.asking()
    for number in (1, 2, 2):
        assert api.post(asking, number, report_of(asking, number)).status_code == 202
    assert api.post(asking, 3, report_of(asking, 3), **{"Ldp-Mac": "0" * 32}).status_code == 401
    assert api.client.post("/v1/admin/streams/a/pause").status_code == 401
    assert api.client.post("/v1/streams/a/devices", json={}).status_code == 401
    api.pass_time(9_000)
    eventually(lambda: api.service.streams["a"].hub.last_t == 1)


def test_a_timestamp_is_counted(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        one_timestamp(api)
        api.clock.advance(500)
        seen = scrape(api)
        api_releases = api.service.store.releases("a", 1, 9)
    assert value(seen, "releases_total", kind="fresh") == 1
    for state in ("open", "closed", "tallied"):
        assert value(seen, "rounds_total", purpose="publication", state=state) == 1
    assert value(seen, "reports_total", outcome="accepted", reason="") == 2
    assert value(seen, "reports_total", outcome="repeated", reason="") == 1
    assert value(seen, "reports_total", outcome="refused", reason="report-mac") == 1
    assert value(seen, "reports_total", outcome="refused", reason="token") is None
    assert value(seen, "requests_refused_total", reason="token") == 2
    assert value(seen, "ingest_seconds_count") == 4
    assert value(seen, "store_commit_seconds_count", operation="accept") == 3
    assert value(seen, "seconds_since_release") == 0.5
    assert (value(seen, "epsilon"), value(seen, "window")) == (1, 4)
    assert value(seen, "failing") == 0
    assert value(seen, "long_polls_waiting") == 0
    (latest,) = api_releases
    for place, label in enumerate("xyz"):
        assert value(seen, "frequency", label=label) == latest.content["values"][place]
        assert value(seen, "frequency_low", label=label) == latest.content["low"][place]
        assert value(seen, "frequency_high", label=label) == latest.content["high"][place]


def test_missed_timestamps_and_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        one_timestamp(api)
    with running(tmp_path) as api:
        assert value(scrape(api), "frequency", label="x") is not None  # known from the store
        api.pass_time(35_000)
        seen = scrape(api)
    assert value(seen, "releases_total", kind="missed") == 2


def test_labels_are_bounded(tmp_path: Path) -> None:
    labels = [f"l{number}" for number in range(50)]
    with running(tmp_path, limits="metric_labels = 7", labels=labels) as api:
        one_timestamp(api)
        seen = scrape(api)
    shown = {key for key in seen if key[0] == "ldpstream_frequency"}
    assert len(shown) == 7


def test_private_streams_need_a_token(tmp_path: Path) -> None:
    with running(tmp_path, public=False) as api:
        assert api.client.get("/metrics").status_code == 401
        reader = read_token(SECRETS.admin, "a")
        assert value(scrape(api, Authorization=f"Bearer {reader}"), "epsilon") == 1
        other = read_token(SECRETS.admin, "b")
        wrong = {"Authorization": f"Bearer {other}"}
        assert api.client.get("/metrics", headers=wrong).status_code == 401


def test_public_streams_need_none(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        assert "ldpstream_epsilon" in api.client.get("/metrics").text


def test_openmetrics_is_spoken_to_those_who_ask_for_it(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        one_timestamp(api)
        answer = api.client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_no_device_is_named(tmp_path: Path) -> None:
    with running(tmp_path, selection="roster") as api:
        api.client.post(
            "/v1/streams/a/devices",
            json=enrolment(0xABCDEF),
            headers={"Authorization": f"Bearer {SECRETS.enrolment.decode()}"},
        )
        text = api.client.get("/metrics", headers=ADMIN).text
    assert not re.search("[0-9a-f]{32}", text)
    assert "abcdef" not in text
    assert device_of(0xABCDEF).hex() not in text


# The dashboard


def test_the_dashboard_uses_metrics_that_exist(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        text = api.client.get("/metrics").text
    exist = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        exist |= {name} if kind != "histogram" else {f"{name}_{x}" for x in ("bucket", "count")}
    board = json.loads(BOARD.read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries.append(board["templating"]["list"][1]["definition"])
    used = {name for query in queries for name in re.findall(r"ldpstream_\w+", query)}
    assert len(used) > 12
    assert used <= exist
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


# Logs


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers = []
    text = io.StringIO()
    set_up("debug", text)
    yield text
    root.handlers = before
    root.setLevel(level)


def test_log_lines_are_json_without_devices_values_or_tokens(
    tmp_path: Path, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as api:
        one_timestamp(api)
        api.pass_time(1_000)
        asking = api.asking()
        report = report_of(asking, 0xABCDEF)

        def fail(self: object, *given: object) -> None:
            raise ValueError(device_of(0xABCDEF).hex(), report.hex(), SECRETS.admin)

        monkeypatch.setattr(type(api.service.store), "accept", fail)
        assert api.post(asking, 0xABCDEF, report).status_code == 503
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    ours = [line for line in lines if line["logger"].startswith("ldpstream")]
    (released,) = (line for line in ours if line["message"] == "released")
    assert (released["stream"], released["t"], released["kind"]) == ("a", 1, "fresh")
    (failed,) = (line for line in ours if line["level"] == "error")
    assert failed["error"]["kind"] == "ValueError"
    assert any("_take_in" in place for place in failed["error"]["at"])
    text = "\n".join(json.dumps(line) for line in ours)
    for secret in (SECRETS.master, SECRETS.enrolment, SECRETS.admin, b"abcdef"):
        assert secret.decode() not in text
    assert not re.search("[0-9a-f]{32}", text)


def test_an_error_of_ours_is_told_by_its_code(log: io.StringIO) -> None:
    try:
        raise Mistake(Problem.DEVICE_NUMBER, given="12" * 16)
    except Mistake:
        logging.getLogger("x").exception("refused with Bearer %s", "short-token")
    (line,) = map(json.loads, log.getvalue().splitlines())
    assert line["error"]["code"] == "device-number"
    assert "12" * 8 not in log.getvalue()
    assert "short-token" not in log.getvalue()
