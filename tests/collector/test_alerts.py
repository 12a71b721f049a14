"""Alerts: the states against a transcription of Prometheus, the store, and the webhook."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.cli import run
from ldpstream.collector.alerts.conditions import Comparand, RequiredEvidence, Threshold
from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.alerts.evidence import AlertEvidence
from ldpstream.collector.alerts.outbox import MOST_UNSENT
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.runner import AlertRunner
from ldpstream.collector.alerts.state import RETENTION_MS, Alert, AlertState
from ldpstream.collector.alerts.webhook import Undelivered, WebhookResponse
from ldpstream.collector.api.alerts import shown
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import Config, parse
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.terms import Terms
from tests.collector.api import ADMIN, assert_problem, running
from tests.collector.helpers import SECRETS, START_MS, config
from tests.collector.test_export import release
from tests.collector.test_metrics import one_timestamp, scrape, value
from tests.waiting import eventually

# The states


@dataclass
class Model:
    """`AlertingRule.Eval` of Prometheus for one series, line by line; 0 is Go's zero time."""

    hold: int
    keep: int
    state: str | None = None  # None: no such alert
    active_at: int = 0
    fired_at: int = 0
    resolved_at: int = 0
    keep_firing_since: int = 0

    def eval(self, holds: bool, ts: int) -> str:
        if holds and self.state in (None, "inactive"):
            self.state, self.active_at = "pending", ts
            self.fired_at = self.resolved_at = self.keep_firing_since = 0
        if self.state is None:
            return "inactive"
        if not holds:
            keep_firing = False
            if self.state == "firing" and self.keep > 0:
                if self.keep_firing_since == 0:
                    self.keep_firing_since = ts
                if ts - self.keep_firing_since < self.keep:
                    keep_firing = True
            if self.state == "pending" or (
                self.resolved_at != 0 and ts - self.resolved_at > RETENTION_MS
            ):
                self.state = None
                return "inactive"
            if self.state != "inactive" and not keep_firing:
                self.state, self.resolved_at = "inactive", ts
            if not keep_firing:
                return "resolved"
        else:
            self.keep_firing_since = 0
        if self.state == "pending" and ts - self.active_at >= self.hold:
            self.state, self.fired_at = "firing", ts
        return self.state


durations = st.sampled_from([0, 1, 1000, 5000, 60_000])
steps = st.tuples(st.booleans(), st.sampled_from([0, 1, 999, 1000, 4000, RETENTION_MS + 1]))


@settings(max_examples=300, deadline=None)
@given(durations, durations, st.lists(steps, max_size=30))
def test_states_are_those_of_prometheus(
    hold: int, keep: int, story: list[tuple[bool, int]]
) -> None:
    alert, model, now = Alert(), Model(hold, keep), START_MS
    for holds, passed in story:
        now += passed
        alert = alert.after(holds, now, hold_ms=hold, keep_firing_ms=keep)
        alert = Alert.from_json(json.loads(json.dumps(alert.to_json())))  # as after a restart
        assert alert.state == model.eval(holds, now)
        if alert.state is not AlertState.INACTIVE:
            assert alert.active_ms == model.active_at
        if alert.state in (AlertState.FIRING, AlertState.RESOLVED):
            assert alert.fired_ms == model.fired_at
        if alert.state is AlertState.RESOLVED:
            assert alert.resolved_ms == model.resolved_at


# The rules


NAMES = ("x", "y", "z")
TERMS = {
    "version": 2,
    "stream": "a",
    "query": "histogram",
    "labels": [*NAMES],
    "epsilon_nano": 10**9,
    "window": 4,
    "interval_ms": 10_000,
    "start_ms": START_MS,
    "oracle": "grr",
    "selection": "open",
}
HIGH = Threshold("x", above=True, threshold=0.45)
RULE = Rule("high", "a", HIGH)
SURE = RequiredEvidence(Comparand.INTERVAL)


def alike() -> StoredRelease:
    """x is 0.5, from 0.4 to 0.6; the intervals of the others are as wide."""
    one = release(1)
    return replace(one, content=one.content | {"low": [0.4, 0.1, 0.1], "high": [0.6, 0.3, 0.3]})


def test_an_estimate_is_compared_by_itself_and_an_interval_by_its_end() -> None:
    one = AlertEvidence(alike(), NAMES)
    assert HIGH.verdict(one)
    assert not replace(HIGH, demand=SURE).verdict(one)
    assert replace(HIGH, demand=SURE, threshold=0.399).verdict(one)
    below = replace(HIGH, above=False, threshold=0.55)
    assert below.verdict(one)
    assert not replace(below, demand=SURE).verdict(one)
    assert replace(below, demand=SURE, threshold=0.601).verdict(one)


def test_the_probability_is_that_of_a_normal_distribution_within_moderated_errors() -> None:
    one = alike()
    sure = [
        replace(HIGH, threshold=at).sure(AlertEvidence(one, NAMES)) for at in (0.3, 0.4, 0.5, 0.6)
    ]
    assert sure[1:] == pytest.approx([0.95, 0.5, 0.05], abs=1e-9)
    assert 0.999 < sure[0] < 1
    assert replace(HIGH, above=False, threshold=0.4).sure(
        AlertEvidence(one, NAMES)
    ) == pytest.approx(0.05)
    # A label that seems surer than all others is believed by half: its variance is 0 here, theirs
    # is s^2, so it has (0 + 2/3 s^2) / 2 = s^2 / 3.
    narrow = replace(one, content=one.content | {"low": [0.5, 0.1, 0.1], "high": [0.5, 0.3, 0.3]})
    at = 0.5 - 0.1 / 3**0.5
    assert replace(HIGH, threshold=at).sure(AlertEvidence(narrow, NAMES)) == pytest.approx(0.95)


ALERT = """
[[stream.alert]]
label = "x"
above = 0.3
on = "interval"
probability = 0.99
for = "30s"
keep_firing_for = "1m"
"""


def configured(folder: Path, alert: str = ALERT, webhook: str = "http://127.0.0.1:1/") -> Config:
    text = f"""
[collector]
listen = "127.0.0.1:0"
store = "c.sqlite"
[collector.alerts]
webhook = "{webhook}"
[[stream]]
name = "a"
labels = ["x", "y", "z"]
epsilon = 1
window = 4
interval = "10s"
mechanism = "lbu"
oracle = "grr"
population = 40
{alert}"""
    return parse(text, folder / "collector.toml")


def test_rules_are_read_from_the_file(tmp_path: Path) -> None:
    (rule,) = configured(tmp_path).streams[0].alerts
    expected = Rule(
        "x above 0.3",
        "a",
        Threshold("x", True, 0.3, RequiredEvidence(Comparand.INTERVAL, 0.99)),
        30_000,
        60_000,
    )
    assert rule == expected
    assert configured(tmp_path).webhook == "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    ("alert", "word", "line"),
    [
        (ALERT.replace('"x"', '"q"'), "'q' is not a label", 18),
        (ALERT.replace("above = 0.3", ""), "either above or below", 17),
        (ALERT + "below = 0.1", "either above or below", 17),
        (ALERT.replace('"interval"', '"variance"'), "estimate, interval", 20),
        (ALERT.replace('"interval"', '"estimate"'), "no probability", 21),
        (ALERT.replace("0.99", "1"), "0.5 to less than 1", 21),
        (ALERT.replace('"30s"', '"soon"'), "for is 'soon'", 22),
        (ALERT.replace("0.3", "nan"), "give a finite number", 19),
        (ALERT + 'name = ""', "give 1 to 200", 24),
        (ALERT + "until = 3", "no key 'until'", 24),
        (ALERT + ALERT, "appears twice", 25),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, alert: str, word: str, line: int
) -> None:
    with pytest.raises(Mistake, match=word) as told:
        configured(tmp_path, alert)
    assert f"line {line}:" in str(told.value)


@pytest.mark.parametrize("url", ["ftp://a/", "alerts", "http://", "http://a:x/"])
def test_a_webhook_is_a_url(tmp_path: Path, url: str) -> None:
    with pytest.raises(Mistake, match="webhook"):
        configured(tmp_path, webhook=url)


# What is kept


@contextmanager
def stored(folder: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(folder / "c.sqlite", SECRETS.master)) as store:
        if store.stream("a") is None:
            store.create_stream("a", TERMS)
        yield store


def give(store: SqliteStore, t: int, x: float, **more: Any) -> None:
    one = release(t, **more)
    content = one.content | {"values": [x, 0.0, 0.0]}
    store.release("a", [replace(one, content=content)], {}, 0)


def evaluator_of(store: SqliteStore, *rules: Rule, sends: bool = True) -> AlertEvaluator:
    return AlertEvaluator("a", rules or (RULE,), store, sends=sends, external_url="http://here")


def test_a_restart_fires_nothing_again_and_loses_nothing(tmp_path: Path) -> None:
    with stored(tmp_path) as store:
        evaluator = evaluator_of(store)
        give(store, 1, 0.9)
        (change,) = evaluator.catch_up()
        assert change.alert.state is AlertState.FIRING
        fired = change.alert.fired_ms
    with stored(tmp_path) as store:
        evaluator = evaluator_of(store)
        assert evaluator.catch_up() == []
        assert evaluator.alerts[RULE.fingerprint].fired_ms == fired
        assert evaluator.first_unsent is not None  # it was never taken
        give(store, 2, 0.9)
        give(store, 3, 0.1)
    with stored(tmp_path) as store:  # released, but not evaluated before the crash
        (change,) = evaluator_of(store).catch_up()
        assert (change.alert.state, change.evidence.release.t) == (AlertState.RESOLVED, 3)
        assert change.alert.resolved_ms == 3000


def succeeded(store: SqliteStore, labels: list[str]) -> None:
    """New terms for the stream, from the next timestamp on."""
    old = Terms.read(store.versions("a")[-1])
    called = [name if name in labels else labels[0] for name in old.names]
    follows = {"pin": old.pin, "version": old.version + 1, "from_t": 2, "until_t": 9}
    succeeds = follows | {"labels": called}
    store.succeed("a", TERMS | {"version": 3, "labels": labels, "succeeds": succeeds})


def test_a_rule_follows_its_label_to_another_place(tmp_path: Path) -> None:
    with stored(tmp_path) as store:
        evaluator = evaluator_of(store)
        give(store, 1, 0.9)
        (change,) = evaluator.catch_up()
        succeeded(store, ["new", "x", "y"])
        one = release(2, version=2)
        store.release("a", [replace(one, content=one.content | {"values": [0, 0.8, 0.2]})], {}, 0)
        assert evaluator.catch_up() == []  # x is still high, in another place
        one = release(3, version=2)
        store.release("a", [replace(one, content=one.content | {"values": [0.8, 0, 0.2]})], {}, 0)
        (change,) = evaluator.catch_up()
    assert (change.alert.state, change.evidence.release.t) == (AlertState.RESOLVED, 3)


@pytest.mark.parametrize("on", Comparand)
@pytest.mark.parametrize("above", [True, False])
def test_a_rule_about_a_label_that_is_gone_fires_for_no_other(
    tmp_path: Path, on: Comparand, above: bool
) -> None:
    """Its alert is resolved, and the message says why."""
    rule = replace(
        RULE, condition=Threshold("x", above, 0.3 if above else 0.7, RequiredEvidence(on))
    )
    with stored(tmp_path) as store:
        evaluator = evaluator_of(store, rule)
        sure = {"low": [0.5] * 3, "high": [0.5] * 3}
        one = release(1)
        store.release("a", [replace(one, content=one.content | sure)], {}, 0)
        (change,) = evaluator.catch_up()
        assert change.alert.state is AlertState.FIRING
        succeeded(store, ["one", "two", "three"])
        for t in (2, 3, 4):
            one = release(t, version=2)
            content = one.content | sure | {"values": [0.5] * 3}
            store.release("a", [replace(one, content=content)], {}, 0)
        (change,) = evaluator.catch_up()
        assert (change.alert.state, change.evidence.release.t) == (AlertState.RESOLVED, 2)
        evaluator.settled(evaluator.first_unsent or {})
        told = evaluator.first_unsent
        assert told is not None
        description = told["alerts"][0]["annotations"]["description"]
        assert description == "x is no label of this stream any more, at t=2"
        assert shown(evaluator, 9)["alerts"][0]["value"] is None


def test_rules_on_an_old_stream_begin_now(tmp_path: Path) -> None:
    with stored(tmp_path) as store:
        give(store, 1, 0.9)
        assert evaluator_of(store).catch_up() == []


def test_missed_timestamps_change_nothing(tmp_path: Path) -> None:
    with stored(tmp_path) as store:
        evaluator = evaluator_of(store)
        give(store, 1, 0.9)
        evaluator.catch_up()
        give(store, 2, 0.0, missed=True)
        assert evaluator.catch_up() == []
        assert evaluator.last_t == 2


def test_a_clock_that_went_back_does_not_unmake_time(tmp_path: Path) -> None:
    with stored(tmp_path) as store:
        evaluator = evaluator_of(store, replace(RULE, hold_ms=1000))
        for t, at_ms in ((1, 5000), (2, 100), (3, 6000)):
            give(store, t, 0.9, at_ms=at_ms)
            changes = evaluator.catch_up()
        assert [change.evidence.release.t for change in changes] == [3]


def test_what_nobody_takes_is_bounded(tmp_path: Path) -> None:
    with stored(tmp_path) as store:
        evaluator = evaluator_of(store)
        rows = [release(t) for t in range(1, MOST_UNSENT + 12)]
        for one in rows:
            assert isinstance(one.content, dict)
            one.content["values"] = [float(one.t % 2), 0, 0]
        store.release("a", rows, {}, 0)
        assert len(evaluator.catch_up()) == MOST_UNSENT + 11
        assert evaluator.dropped == 11


# The webhook


@dataclass
class Hook:
    """A webhook that refuses as often as it is told to."""

    statuses: list[int] = field(default_factory=list)
    heard: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def served(self) -> Iterator[str]:
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = hook.statuses.pop(0) if hook.statuses else 200
                if status == 200:
                    hook.heard.append(json.loads(body))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(b"as you say")

            def log_message(self, *given: Any) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/hook?x=1"
            finally:
                server.shutdown()
                thread.join()


def delivered(
    evaluator: AlertEvaluator, url: str, until: Callable[[], bool], **given: Any
) -> list[tuple[str, str]]:
    outcomes: list[tuple[str, str]] = []
    runner = AlertRunner(
        [evaluator], url, lambda *outcome: outcomes.append(outcome), first_pause=0.01, **given
    )
    runner.start()
    eventually(until)
    runner.stop()
    return outcomes


def test_a_message_is_alertmanagers_and_is_sent_until_it_is_taken(tmp_path: Path) -> None:
    hook = Hook([503, 429])
    with hook.served() as url, stored(tmp_path) as store:
        evaluator = evaluator_of(store)
        give(store, 1, 0.9)
        evaluator.catch_up()
        give(store, 2, 0.1)
        outcomes = delivered(
            evaluator, url, lambda: len(hook.heard) == 2 and evaluator.first_unsent is None
        )
        assert [what for _, what in outcomes] == ["refused", "refused", "delivered", "delivered"]
        assert evaluator_of(store).first_unsent is None
    firing, resolved = hook.heard
    assert firing == {
        "version": "4",
        "groupKey": '{}:{stream="a"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "ldpstream",
        "groupLabels": {"stream": "a"},
        "commonLabels": RULE.labels,
        "commonAnnotations": firing["alerts"][0]["annotations"],
        "externalURL": "http://here",
        "alerts": [
            {
                "status": "firing",
                "labels": {"alertname": "high", "label": "x", "stream": "a"},
                "annotations": {
                    "summary": "x above 0.45 (estimate) in stream a",
                    "description": "x is 0.9, 0.4 to 0.6, at t=1",
                },
                "startsAt": "1970-01-01T00:00:01.000Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "http://here/#/streams/a",
                "fingerprint": RULE.fingerprint,
            }
        ],
    }
    assert resolved["status"] == "resolved"
    assert resolved["alerts"][0]["startsAt"] == firing["alerts"][0]["startsAt"]
    assert resolved["alerts"][0]["endsAt"] == "1970-01-01T00:00:02.000Z"


def test_what_is_refused_for_good_is_not_sent_again(tmp_path: Path) -> None:
    hook = Hook([400])
    with hook.served() as url, stored(tmp_path) as store:
        evaluator = evaluator_of(store)
        give(store, 1, 0.9)
        evaluator.catch_up()
        outcomes = delivered(evaluator, url, lambda: evaluator.first_unsent is None)
    assert outcomes == [("a", "refused")]
    assert hook.heard == []


def test_a_webhook_that_is_away_is_tried_again_ever_more_slowly(tmp_path: Path) -> None:
    calls = []

    def away(url: str, content: dict[str, Any]) -> WebhookResponse:
        calls.append(content)
        if len(calls) < 5:
            raise Undelivered(Problem.WEBHOOK, what="away")
        return WebhookResponse(200, "OK", "")

    with stored(tmp_path) as store:
        evaluator = evaluator_of(store)
        give(store, 1, 0.9)
        evaluator.catch_up()
        outcomes = delivered(
            evaluator, "http://x", lambda: evaluator.first_unsent is None, send=away
        )
    assert [what for _, what in outcomes] == ["unreachable"] * 4 + ["delivered"]


# All of it together


def test_a_service_tells_of_its_alerts(tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from ldpstream.collector.api.app import build_app
    from ldpstream.collector.service.service import Service
    from tests.collector.api import Api

    alert = '[[stream.alert]]\nname = "any"\nlabel = "x"\nabove = -99\n'
    hook = Hook()
    with hook.served() as url:
        for _ in range(2):  # the second is a restart
            service = Service(
                configured(tmp_path, alert, url), SECRETS, clock := ManualClock(START_MS)
            )
            with TestClient(build_app(service)) as client:
                api = Api(service, client, clock)
                if service.streams["a"].hub.last_t == 0:
                    one_timestamp(api)
                eventually(lambda: len(hook.heard) == 1)
                (shown,) = client.get("/v1/streams/a/alerts").json()["alerts"]
                assert (shown["name"], shown["state"], shown["rule"]["above"]) == (
                    "any",
                    "firing",
                    -99,
                )
                assert value(scrape(api), "alerts", state="firing") == 1
    assert len(hook.heard) == 1


def test_alerts_of_private_streams_need_a_token(tmp_path: Path) -> None:
    with running(tmp_path, public=False) as api:
        assert_problem(api.client.get("/v1/streams/a/alerts"), 404, "stream-unknown")
        shown = api.client.get("/v1/streams/a/alerts", headers=ADMIN).json()
    assert shown == {"stream": "a", "t": 0, "alerts": [], "changes": []}


# The command


@pytest.mark.parametrize("values", ['labels = ["x", "y"]', 'vocabulary = "open"'])
def test_the_test_alert_is_sent_and_the_answer_printed(
    values: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = Hook([200, 200, 500])
    file = tmp_path / "collector.toml"
    with hook.served() as url:
        configured(tmp_path, webhook=url)
        text = f'[collector.alerts]\nwebhook = "{url}"\n'
        stream = f'[[stream]]\nname = "a"\n{values}\nepsilon = 1\nwindow = 4\n'
        file.write_text(text + stream + 'interval = "10s"\npopulation = 40\n')
        assert run(["alerts", "test", str(file)]) == 0
        assert capsys.readouterr().out == "200 OK\nas you say\n"
        assert run(["alerts", "test", str(file), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told == {"status": 200, "reason": "OK", "body": "as you say"}
        assert run(["alerts", "test", str(file)]) == 1
    heard = hook.heard[0]
    assert heard["alerts"][0]["labels"]["alertname"] == "LdpstreamTest"
    assert run(["alerts", "test", str(file)]) == 1
    assert "the webhook did not accept the alert" in capsys.readouterr().err


def test_without_a_webhook_there_is_nothing_to_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert config(tmp_path).webhook is None
    file = tmp_path / "collector.toml"
    stream = '[[stream]]\nname = "a"\nlabels = ["x", "y"]\nepsilon = 1\nwindow = 4\n'
    file.write_text(stream + 'interval = "10s"\npopulation = 40\n')
    assert run(["alerts", "test", str(file)]) == 2
    assert "there is no webhook" in capsys.readouterr().err
