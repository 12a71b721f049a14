"""Alerts rest on reports: what silence may do to them, and the rules that are about silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.collector.alerts.conditions import (
    AlertCondition,
    Comparand,
    FewReports,
    LevelChanged,
    NoReports,
    RequiredEvidence,
    Threshold,
    WideInterval,
)
from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.alerts.evidence import AlertEvidence, LevelChange
from ldpstream.collector.alerts.message import AlertChange
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.state import AlertState
from ldpstream.collector.config.alert_rules import read_request
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake
from ldpstream.mechanisms.mechanism import drive
from ldpstream.mechanisms.messages import Tally
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import Settings
from ldpstream.privacy.epsilon import Epsilon
from tests.collector.test_alerts import NAMES, stored
from tests.collector.test_export import release

INTERVAL_MS = 10_000
SURE = RequiredEvidence(Comparand.INTERVAL)
RISING = [float(share) for share in np.linspace(0.3, 0.7, 30)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with stored(tmp_path) as store:
        yield store


def evaluator_of(store: SqliteStore, *conditions: AlertCondition, **given: Any) -> AlertEvaluator:
    rules = tuple(Rule(one.title, "a", one) for one in conditions)
    return AlertEvaluator("a", rules, store, sends=True, **given)


def states(evaluator: AlertEvaluator) -> list[str]:
    return [alert.state.value for _, alert in evaluator.shown]


def give(store: SqliteStore, t: int, received: int, content: dict[str, Any] | None = None) -> None:
    one = release(t, at_ms=INTERVAL_MS * t, asked=10, received=received)
    content = {"fresh": received > 0} | (content or {})
    store.release("a", [replace(one, content=one.content | content)], {}, 0)


def passed(store: SqliteStore, evaluator: AlertEvaluator, story: list[int]) -> list[AlertChange]:
    """Release a timestamp for each number of reports, and evaluate it at once."""
    changes = []
    for received in story:
        give(store, evaluator.last_t + 1, received)
        changes += evaluator.catch_up()
    return changes


# What was seen: alerts that followed an extrapolation


def lpf_releases(shares: list[float], silent: int) -> Iterator[StoredRelease]:
    """What LPF releases while the first of three labels has these shares, and nobody after."""
    settings = Settings(labels=3, users=2000, epsilon=Epsilon.of(1), window=4)
    mechanism, rng = build("lpf", settings), np.random.default_rng(1)
    for t in range(1, len(shares) + silent + 1):
        reports = 500 if t <= len(shares) else 0

        def answer(_: object, t: int = t, reports: int = reports) -> Tally:
            if not reports:
                return Tally.empty(3)
            share = np.array([shares[t - 1], *[(1 - shares[t - 1]) / 2] * 2])
            return Tally(share + rng.normal(0, 0.02, 3), np.full(3, 4e-4), reports)

        content = drive(mechanism.step(t), answer).to_json()
        yield StoredRelease(t, INTERVAL_MS * t, content, asked=500, received=reports, missed=False)


@pytest.mark.parametrize("silent", [22, 40])
@pytest.mark.parametrize("demand", [RequiredEvidence(), SURE], ids=lambda one: str(one.on))
@pytest.mark.parametrize(
    ("above", "first"), [(True, AlertState.FIRING), (False, AlertState.INACTIVE)]
)
def test_silence_neither_fires_nor_resolves(
    store: SqliteStore, silent: int, demand: RequiredEvidence, above: bool, first: AlertState
) -> None:
    """A share that rises, and 22 to 40 timestamps without a single report."""
    evaluator = evaluator_of(store, Threshold("x", above, 0.55, demand))
    released = list(lpf_releases(RISING, silent))
    for one in released[:30]:
        store.release("a", [one], {}, 0)
        evaluator.catch_up()
    before = states(evaluator)
    if above or demand.on is Comparand.ESTIMATE:
        assert before == [first.value if above else AlertState.RESOLVED.value]
    for one in released[30:]:
        assert one.content["fresh"] is False
        store.release("a", [one], {}, 0)
        assert evaluator.catch_up() == []
        assert states(evaluator) == before


def test_an_interval_that_silence_widens_would_have_resolved_it(store: SqliteStore) -> None:
    """The test above can fail: without a report the same figures make nobody sure any more."""
    *_, last = lpf_releases(RISING, silent=22)
    rule = Threshold("x", True, 0.55, SURE)
    evidence = AlertEvidence(last, NAMES)
    assert rule.sure(evidence) < 0.95
    assert rule.verdict(evidence) is None
    assert rule.verdict(AlertEvidence(replace(last, received=5), NAMES)) is False


def test_reports_that_may_have_been_discarded_are_no_evidence() -> None:
    one = release(2, received=9)
    assert AlertEvidence(one, NAMES).is_heard  # carried over, and reports said that it still holds
    suspect = replace(one, content=one.content | {"suspect": ["2-publication"]})
    assert not AlertEvidence(suspect, NAMES).is_heard
    fresh = replace(suspect, content=suspect.content | {"fresh": True})
    assert AlertEvidence(fresh, NAMES).is_heard


# No reports


def test_nobody_reports_for_half_a_minute(store: SqliteStore) -> None:
    evaluator = evaluator_of(store, NoReports(30_000))
    changes = passed(store, evaluator, [5, 0, 0, 0, 0, 1])
    assert [(one.alert.state, one.evidence.release.t) for one in changes] == [
        (AlertState.FIRING, 4),
        (AlertState.RESOLVED, 6),
    ]
    told = evaluator.first_unsent
    assert told is not None
    alert = told["alerts"][0]
    assert alert["labels"] == {"alertname": "no reports for 30s", "stream": "a"}
    assert alert["annotations"]["description"] == "nobody has reported for 30s, at t=4"


def test_a_restart_does_not_begin_a_silence_anew(tmp_path: Path) -> None:
    with stored(tmp_path) as store:
        passed(store, evaluator_of(store, NoReports(30_000)), [5, 0, 0])
    with stored(tmp_path) as store:
        (change,) = passed(store, evaluator_of(store, NoReports(30_000)), [0])
        assert change.evidence.silent_ms == 30_000


def test_a_collector_that_was_away_cannot_say_that_nobody_reported(store: SqliteStore) -> None:
    evaluator = evaluator_of(store, NoReports(30_000), FewReports(0.5))
    passed(store, evaluator, [5])
    for t in range(2, 9):
        away = release(t, at_ms=INTERVAL_MS * 9, asked=0, received=0, missed=True)
        store.release("a", [away], {}, 0)
    assert evaluator.catch_up() == []
    give(store, 9, 0)
    evaluator.catch_up()
    assert states(evaluator) == ["inactive", "firing"]
    assert evaluator.latest is not None
    assert evaluator.latest.silent_ms == 0


def test_a_rule_that_comes_back_does_not_count_what_nobody_looked_at(store: SqliteStore) -> None:
    evaluator = evaluator_of(store, NoReports(30_000))
    passed(store, evaluator, [5])
    rules = evaluator.rules
    evaluator.use(())
    for t in range(2, 9):
        give(store, t, 5)
    evaluator.use(rules)
    assert passed(store, evaluator, [0, 0, 0]) == []
    assert len(passed(store, evaluator, [0])) == 1


def test_silence_is_nothing_where_nobody_was_asked() -> None:
    quiet = AlertEvidence(release(2, asked=0, received=0), NAMES, silent_ms=10**9)
    assert NoReports(1000).verdict(quiet) is None
    assert FewReports(0.5).verdict(quiet) is None


# Fewer reports than planned


def test_fewer_reports_than_planned(store: SqliteStore) -> None:
    evaluator = evaluator_of(store, FewReports(0.5))
    changes = passed(store, evaluator, [10, 5, 4, 0, 5])
    assert [one.evidence.release.t for one in changes] == [3, 5]
    told = evaluator.first_unsent
    assert told is not None
    description = told["alerts"][0]["annotations"]["description"]
    assert description == "4 of 10 planned reports came, at t=3"


def test_few_reports_must_be_too_few_for_chance_if_asked_to() -> None:
    def verdict(asked: int, received: int) -> bool | None:
        one = AlertEvidence(release(1, asked=asked, received=received), NAMES)
        return FewReports(0.5, SURE).verdict(one)

    assert verdict(10, 4) is False  # 5 expected: 4 happens
    assert verdict(1000, 400) is True
    assert verdict(10, 0) is True


# Intervals


def test_an_interval_is_wider_than_it_may_be(store: SqliteStore) -> None:
    evaluator = evaluator_of(store, WideInterval("x", 0.25))
    wide = {"low": [0.2, 0.2, 0.1], "high": [0.6, 0.3, 0.4]}
    for t, received, content in (
        (1, 9, {}),
        (2, 0, wide),  # silence widens: that is what the rule is about
        (3, 0, {}),  # and only reports narrow
        (4, 9, {}),
    ):
        give(store, t, received, content)
        changes = evaluator.catch_up()
        assert [one.alert.state.value for one in changes] == {2: ["firing"], 4: ["resolved"]}.get(
            t, []
        )


# Changes of level


def change(t: int, size: float, reach: float = 0.05, label: str = "x") -> LevelChange:
    return LevelChange(t, t - 1, t + 1, label, size, size - reach, size + reach)


def test_a_change_fires_while_it_is_recent(store: SqliteStore) -> None:
    known = [change(2, -0.3), change(3, 0.9, label="y"), change(4, 0.05)]
    asked: list[tuple[int, int]] = []

    def found(first_t: int, last_t: int) -> list[LevelChange]:
        asked.append((first_t, last_t))
        return [one for one in known if first_t <= one.t <= last_t]

    evaluator = evaluator_of(store, LevelChanged("x", 0.1, within=3), find_changes=found)
    changes = passed(store, evaluator, [9, 9, 9, 9, 9, 9])
    assert [one.evidence.release.t for one in changes] == [2, 5]
    assert asked == [(1, 1), (1, 2), (1, 3), (2, 4), (3, 5), (4, 6)]
    told = evaluator.first_unsent
    assert told is not None
    assert told["alerts"][0]["annotations"]["description"] == (
        "x changed by -0.3, -0.35 to -0.25, at t=2, 1 to 3"
    )


def test_a_change_must_be_surely_as_large_if_asked_to() -> None:
    def verdict(found: LevelChange, demand: RequiredEvidence) -> bool | None:
        return LevelChanged("x", 0.1, demand=demand).verdict(
            AlertEvidence(release(9), NAMES, 0, [found])
        )

    assert verdict(change(5, 0.12), RequiredEvidence()) is True
    assert verdict(change(5, 0.12), SURE) is False
    assert verdict(change(5, -0.16), SURE) is True
    assert verdict(change(5, 0.09), RequiredEvidence()) is False


def test_only_the_newest_release_says_what_has_changed(store: SqliteStore) -> None:
    calls: list[int] = []

    def found(first_t: int, last_t: int) -> list[LevelChange]:
        calls.append(last_t)
        return []

    evaluator = evaluator_of(store, LevelChanged("x", 0.1), find_changes=found)
    for t in (1, 2, 3):
        give(store, t, 9)
    evaluator.catch_up()
    assert calls == [3]


# Silences of rules


class Silence:
    """Silences every rule until a moment that the test sets."""

    def __init__(self) -> None:
        self.until_ms = 0

    def __call__(self, fingerprint: str) -> int:
        return self.until_ms


def test_a_silenced_rule_keeps_its_state_and_tells_at_the_end(tmp_path: Path) -> None:
    silence = Silence()
    with stored(tmp_path) as store:
        evaluator = evaluator_of(store, FewReports(0.5), silenced_until=silence)
        silence.until_ms = 4 * INTERVAL_MS
        (change,) = passed(store, evaluator, [9, 0, 0])
        assert change.alert.state is AlertState.FIRING
        assert len(evaluator.history) == 1
        assert evaluator.first_unsent is None
    with stored(tmp_path) as store:
        evaluator = evaluator_of(store, FewReports(0.5), silenced_until=silence)
        passed(store, evaluator, [0])
        told = evaluator.first_unsent
        assert told is not None
        assert (told["status"], told["alerts"][0]["startsAt"]) == (
            "firing",
            "1970-01-01T00:00:20.000Z",
        )


def test_what_came_and_went_in_silence_is_told_to_nobody(store: SqliteStore) -> None:
    silence = Silence()
    evaluator = evaluator_of(store, FewReports(0.5), silenced_until=silence)
    silence.until_ms = 4 * INTERVAL_MS
    assert len(passed(store, evaluator, [0, 9, 9, 9, 9])) == 2
    assert evaluator.first_unsent is None


def test_a_resolution_in_silence_is_told_later(store: SqliteStore) -> None:
    silence = Silence()
    evaluator = evaluator_of(store, FewReports(0.5), silenced_until=silence)
    passed(store, evaluator, [0])
    evaluator.settled(evaluator.first_unsent or {})
    silence.until_ms = 4 * INTERVAL_MS
    passed(store, evaluator, [9, 9])
    assert evaluator.first_unsent is None
    passed(store, evaluator, [9])
    told = evaluator.first_unsent
    assert told is not None
    assert told["status"] == "resolved"


# Their keys


@pytest.mark.parametrize(
    ("given", "condition"),
    [
        ({"no_reports": "5m"}, NoReports(300_000)),
        ({"reports_below": 0.5}, FewReports(0.5)),
        ({"reports_below": 0.5, "on": "interval"}, FewReports(0.5, SURE)),
        ({"label": "x", "wider_than": 0.1}, WideInterval("x", 0.1)),
        ({"label": "x", "changed_by": 0.1}, LevelChanged("x", 0.1)),
        ({"label": "x", "changed_by": 0.1, "within": 5}, LevelChanged("x", 0.1, 5)),
    ],
)
def test_each_kind_is_read_and_written_alike(
    given: dict[str, Any], condition: AlertCondition
) -> None:
    rule = read_request(given, "a", [*NAMES])
    assert rule.condition == condition
    assert read_request(rule.to_json(), "a", [*NAMES]) == rule


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"no_reports": "soon"}, "no_reports is 'soon'"),
        ({"no_reports": "0s"}, "at least 1ms"),
        ({"no_reports": "5m", "label": "x"}, "about the whole stream"),
        ({"no_reports": "5m", "above": 1}, "one condition"),
        ({"no_reports": "5m", "on": "interval"}, "no key 'on'"),
        ({"reports_below": 1.5}, "at most 1"),
        ({"reports_below": 0}, "above 0"),
        ({"wider_than": 0.1}, "label is missing"),
        ({"label": "q", "wider_than": 0.1}, "'q' is not a label"),
        ({"label": "x", "wider_than": -1}, "above 0"),
        ({"label": "x", "changed_by": 0.1, "within": 0}, "1 or more"),
        ({"label": "x", "above": 0.1, "within": 5}, "no key 'within'"),
    ],
)
def test_what_a_kind_does_not_have_is_refused(given: dict[str, Any], word: str) -> None:
    with pytest.raises(Mistake, match=word):
        read_request(given, "a", [*NAMES])
