"""The terms of a stream: what is pinned, what older stores hold, and what may not change."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.domain import Domain
from ldpstream.errors import Mistake, Problem
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Terms
from tests.collector.api import ENROL, STREAM, running
from tests.collector.helpers import SECRETS, START_MS, enrolment, stream_config

LABELS = ("north", "süd", "none")
FIXED = {
    "version": 1,
    "stream": "regions",
    "query": "histogram",
    "labels": ["north", "south"],
    "epsilon_nano": 10**9,
    "window": 20,
    "interval_ms": 60_000,
    "start_ms": 1_700_000_000_000,
    "oracle": "grr",
}
"""Terms as release 0.1.0 wrote them."""
PIN = "4b380b163a41968320a53d03fe6d0de9aebfe1650fac5f8db8523d83df604503"
"""Their pin, as release 0.1.0 computed it."""


def terms_of(other: str | None) -> Terms:
    values = Domain.of(LABELS)
    return Terms("regions", values, Epsilon.of(1), 20, 60_000, 0, Oracle.GRR, other)


def test_terms_of_before_have_the_pin_that_they_had() -> None:
    terms = Terms.read(FIXED)
    assert terms.other is None
    assert terms.to_json() == FIXED
    assert terms.pin == PIN


@pytest.mark.parametrize("other", [None, *LABELS])
def test_the_other_label_is_part_of_the_terms(other: str | None) -> None:
    terms = terms_of(other)
    assert Terms.read(json.loads(terms.canonical)) == terms
    assert ("other" in terms.to_json()) == (other is not None)
    assert terms.other == other


def test_every_other_label_has_a_pin_of_its_own() -> None:
    assert len({terms_of(other).pin for other in (None, *LABELS)}) == 4


def test_an_enrolment_tells_of_the_other_label(tmp_path: Path) -> None:
    with running(tmp_path, other="z") as api:
        answer = api.client.post(f"{STREAM}/devices", json=enrolment(1), headers=ENROL).json()
        assert answer["terms"]["other"] == "z"
        assert Terms.read(answer["terms"]).pin == answer["pin"]
        assert api.client.get(STREAM).json()["terms"]["other"] == "z"


@pytest.mark.parametrize(
    ("stored", "given", "told"),
    [
        (None, "z", "other = nothing, but the file says 'z'"),
        ("z", None, "other = 'z', but the file says nothing"),
        ("z", "y", "other = 'z', but the file says 'y'"),
    ],
)
def test_another_other_label_is_refused(
    tmp_path: Path, stored: str | None, given: str | None, told: str
) -> None:
    clock = ManualClock(START_MS)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        Coordinator(stream_config(tmp_path, other=stored), store, clock)
        Coordinator(stream_config(tmp_path, other=stored), store, clock)
        with pytest.raises(Mistake) as refused:
            Coordinator(stream_config(tmp_path, other=given), store, clock)
    assert refused.value.problem is Problem.TERMS_CHANGED
    assert told in str(refused.value)


OLD = {
    **FIXED,
    "stream": "a",
    "labels": ["x", "y", "z"],
    "window": 4,
    "interval_ms": 10_000,
    "start_ms": START_MS,
}
"""What release 0.1.0 would have stored of the tests' stream."""


@pytest.mark.parametrize(
    ("given", "used"), [(None, "open"), ("open", "open"), ("roster", "roster")]
)
def test_a_stream_that_was_stored_by_0_1_0_is_taken_up(
    tmp_path: Path, given: str | None, used: str
) -> None:
    """As its configuration says; the default of newer streams, slots, would need other terms."""
    config = stream_config(tmp_path, selection=given, mechanism="lpf")
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        store.create_stream("a", OLD)
        coordinator = Coordinator(config, store, ManualClock(START_MS))
        coordinator.advance()
        assert [one.name for one in store.rounds("a", 0)] == ["1-publication"]
    assert coordinator.terms.to_json() == OLD
    assert coordinator.config.selection == used


def test_a_stream_that_was_stored_by_0_1_0_cannot_have_slots(tmp_path: Path) -> None:
    config = stream_config(tmp_path, selection="slots")
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        store.create_stream("a", OLD)
        with pytest.raises(Mistake) as refused:
            Coordinator(config, store, ManualClock(START_MS))
    assert refused.value.problem is Problem.SLOTS_TOO_LATE
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("stored", "given", "told"),
    [
        (
            {"selection": "open"},
            {"selection": "slots"},
            "selection = open, but the file says slots",
        ),
        (
            {"selection": None},
            {"selection": "roster"},
            "selection = slots, but the file says roster",
        ),
        (
            {"selection": "slots"},
            {"selection": "slots", "deadlines": {"publication": 0.8}},
            "deadlines = 9s, but the file says 8s",
        ),
    ],
)
def test_how_devices_are_reached_never_changes(
    tmp_path: Path, stored: dict[str, object], given: dict[str, object], told: str
) -> None:
    clock = ManualClock(START_MS)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        Coordinator(stream_config(tmp_path, **stored), store, clock)
        with pytest.raises(Mistake) as refused:
            Coordinator(stream_config(tmp_path, **given), store, clock)
    assert refused.value.problem is Problem.TERMS_CHANGED
    assert told in str(refused.value)
