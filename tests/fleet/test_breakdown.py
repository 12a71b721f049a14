"""Fleets whose devices say what they are, beside a real collector that breaks its figures down."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.request import urlopen

import pytest

from ldpstream.cli import run
from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.errors import Mistake
from ldpstream.fleet.fleet import Fleet, FleetOutcome, FleetPlan
from ldpstream.fleet.reader import JudgedRelease
from ldpstream.fleet.simulated.fleet import SimulatedFleet
from ldpstream.fleet.users import Users
from ldpstream.lab.parts import Parts
from ldpstream.streams.synthetic import constant, sin
from tests.serving import ENROLMENT, HEAD, LATE, TOKEN, CollectorProcess, serving, stream_table

DEVICES = 200
PATIENCE = 240.0
LATELY = 5
"""Releases, a few seconds of them."""
PARTS = Parts.read(["country=de:0.6,fr:0.3"])
ATTRIBUTES = '{ country = ["de", "fr"] }'


def table(**given: object) -> str:
    usual: dict[str, object] = {
        "population": DEVICES,
        "interval": '"1s"',
        "selection": '"slots"',
        "mechanism": '"lpf"',
        "epsilon": 6,
        "least_group": 1,
        "attributes": ATTRIBUTES,
    }
    return stream_table("sin", datetime.now(UTC), **usual | given)


def lately(group: str, releases: list[dict[str, Any]]) -> float:
    """The mean figure of a group in the last releases: a single one may rest on few reports."""
    shown = (one for release in releases[-LATELY:] for one in release["groups"])
    return fmean(one["values"][0] for one in shown if one["value"] == group)


async def until_all_were_heard(plan: FleetPlan, kind: type[Fleet]) -> FleetOutcome:
    """Run until as many reports are judged as there are devices."""
    seen: list[JudgedRelease] = []

    def watch(judged: JudgedRelease) -> None:
        seen.append(judged)
        if sum(one.received for one in seen) >= plan.devices:
            fleet.stop()

    fleet = kind(plan, watch=watch, transport=AsyncHttpTransport())
    return await fleet.run()


@pytest.mark.parametrize("kind", [Fleet, SimulatedFleet])
def test_what_devices_say_of_themselves_arrives(kind: type[Fleet], tmp_path: Path) -> None:
    """Of all, 0 is held by all but a few; of those in France, by only these few."""
    source = constant(users=DEVICES, timestamps=50, p=0.1)
    with serving(tmp_path, table()) as url:
        plan = FleetPlan(
            url, "sin", TOKEN, source, DEVICES, PATIENCE, gateway=kind is Fleet, parts=PARTS
        )
        outcome = asyncio.run(until_all_were_heard(plan, kind))
        with urlopen(f"{url}/v1/streams/sin/releases?format=json") as answer:
            releases: list[dict[str, Any]] = json.load(answer)["releases"]
    assert set(outcome.refused) <= LATE
    assert set(outcome.groups) == {"country:de", "country:fr", "country:other"}
    last = releases[-1]["groups"]
    found = {one["value"]: one for one in last}
    assert sum(one["devices"] for one in last) == releases[-1]["devices"]["heard"]
    assert found["de"]["devices"] > found["fr"]["devices"] > found["other"]["devices"] > 0
    assert lately("de", releases) > 0.5 > lately("fr", releases)
    for name, metrics in outcome.groups.items():  # half and half, before any report, is off by 0.4
        assert metrics.mae < 0.4, name


def test_groups_outlive_a_collector_that_is_killed(tmp_path: Path) -> None:
    """What is known of them goes on, and who was heard before the kill is still counted."""
    source = constant(users=DEVICES, timestamps=500, p=0.1)
    seen: list[JudgedRelease] = []
    heard: list[int] = []
    with CollectorProcess.of(tmp_path, HEAD + table(), ENROLMENT) as collector:
        plan = FleetPlan(collector.url, "sin", TOKEN, source, DEVICES, PATIENCE, parts=PARTS)

        def watch(judged: JudgedRelease) -> None:
            seen.append(judged)
            reports = sum(one.received for one in seen)
            if not heard and reports >= DEVICES:
                collector.kill()
                collector.start()
                heard.append(reports)
            elif heard and reports >= heard[0] + DEVICES:
                fleet.stop()

        fleet = SimulatedFleet(plan, watch=watch, transport=AsyncHttpTransport())
        asyncio.run(fleet.run())
        with urlopen(f"{collector.url}/v1/streams/sin/releases?format=json") as answer:
            releases: list[dict[str, Any]] = json.load(answer)["releases"]
    assert heard
    assert [one["t"] for one in releases] == [*range(releases[0]["t"], releases[-1]["t"] + 1)]
    begun = next(at for at, one in enumerate(releases) if len(one["groups"]) == 3)
    for one in releases[begun:]:
        if one["missed"] or not one["received"]:
            continue
        groups = {group["value"]: group for group in one["groups"]}
        assert sum(group["devices"] for group in groups.values()) == one["devices"]["heard"]
        for place in (0, 1):
            parts = sum(group["share"] * group["values"][place] for group in groups.values())
            assert parts == pytest.approx(one["values"][place])
    assert lately("de", releases) > 0.5 > lately("fr", releases)


def test_users_hold_other_labels_by_their_attributes() -> None:
    users = Users(constant(users=100, timestamps=5, p=0.1), 100, seed=1, parts=PARTS)
    assert users.values(3) is not None
    by_part = users.counts_by_part(3)
    assert by_part is not None
    assert by_part.sum(axis=1).tolist() == [60, 30, 10]
    assert by_part[1][0] < by_part[1][1]
    counts = users.counts(3)
    assert counts is not None
    assert counts.tolist() == by_part.sum(axis=0).tolist()


def test_attributes_that_a_stream_does_not_ask_for_are_refused(tmp_path: Path) -> None:
    source = sin(users=10, timestamps=50)
    plain = stream_table("sin", datetime.now(UTC), interval='"1s"', selection='"slots"')
    with serving(tmp_path, plain) as url:
        plan = FleetPlan(url, "sin", TOKEN, source, 10, PATIENCE, parts=PARTS)
        with pytest.raises(Mistake, match="sin has no attributes"):
            asyncio.run(SimulatedFleet(plan).run())


@pytest.mark.parametrize(
    "written", ["country", "country=de", "country=de:2", "country=de:0.6,fr:0.6", "C=de:0.5"]
)
def test_malformed_attributes_are_refused(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fleet", "--collector", "http://127.0.0.1:1", "--token", "x", "--stream", "sin"]
    assert run([*words, "--attribute", written]) == 2
    assert "--attribute is" in capsys.readouterr().err
