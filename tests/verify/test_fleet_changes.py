"""A live stream whose terms change under a running fleet, with levels of privacy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ldpstream.device.checking import check_ledger
from ldpstream.fleet.fleet import Fleet, FleetPlan
from ldpstream.fleet.levels import LevelShares
from ldpstream.fleet.reader import JudgedRelease
from ldpstream.fleet.simulated.fleet import SimulatedFleet
from ldpstream.streams.synthetic import constant
from tests.serving import ENROLMENT, HEAD, TOKEN, CollectorProcess, stream_table

DEVICES = 60
PATIENCE = 600.0
"""Seconds, far more than anything here takes."""
LEVEL = '[[stream.level]]\nname = "careful"\nepsilon = 0.5\nwindow = 8\n'
SUCCESSOR = '[stream.successor]\nversion = 2\nrename = { "0" = "no" }\n'


def table(start: datetime, labels: str) -> str:
    return stream_table(
        "constant",
        start,
        labels=labels,
        window=4,
        interval='"1s"',
        selection='"slots"',
        population=DEVICES,
    )


@pytest.mark.parametrize(
    ("kind", "gateway"), [(Fleet, False), (Fleet, True), (SimulatedFleet, True)]
)
def test_labels_change_under_a_running_fleet(
    tmp_path: Path, kind: type[Fleet], gateway: bool
) -> None:
    start = datetime.now(UTC) + timedelta(seconds=2)
    before = HEAD + table(start, '["0", "1"]') + "\n" + LEVEL
    after = table(start, '["no", "1", "new"]') + "\n" + SUCCESSOR + LEVEL
    folder = tmp_path / "devices"
    folder.mkdir()
    with CollectorProcess.of(tmp_path, before, ENROLMENT) as collector:
        plan = FleetPlan(
            collector.url,
            "constant",
            TOKEN,
            constant(users=DEVICES, timestamps=10, p=0.4),
            DEVICES,
            PATIENCE,
            gateway=gateway,
            folder=folder,
            levels=LevelShares.read("careful:0.4"),
        )
        released = asyncio.run(live(kind, plan, collector, after))
    assert released, "the new terms came into force and were reported under"
    for file in folder.glob("*.ldp"):
        check = check_ledger(file)
        assert check.faults == ()
    if kind is Fleet:
        levels = [check_ledger(file).streams[0].record.terms.level for file in folder.glob("*.ldp")]
        assert {"", "careful"} == set(levels)


async def live(kind: type[Fleet], plan: FleetPlan, collector: CollectorProcess, after: str) -> bool:
    """Run the fleet; change the terms after a few releases; end when the new ones are released."""
    heard: list[JudgedRelease] = []
    fleet = kind(plan, watch=heard.append)
    running = asyncio.create_task(fleet.run())

    async def until(condition: Callable[[], bool]) -> None:
        while not condition():
            if running.done():
                await running
            await asyncio.sleep(0.2)

    await until(lambda: len(heard) >= 5)
    await asyncio.to_thread(collector.stop)
    address = collector.url.removeprefix("http://")
    collector.file.write_text(HEAD.replace("127.0.0.1:0", address) + after)
    await asyncio.to_thread(collector.start)

    def gone_over() -> bool:
        if kind is SimulatedFleet:
            terms = fleet._devices.terms  # type: ignore[attr-defined]
            return terms is not None and terms.version == 2
        versions = [member.device.terms for member in fleet._members.values()]
        return all(terms is not None and terms.version == 2 for terms in versions)

    await asyncio.wait_for(until(gone_over), PATIENCE)
    delivered = _delivered(fleet)
    await asyncio.wait_for(until(lambda: _delivered(fleet) > delivered + DEVICES), PATIENCE)
    fleet.stop()
    await running
    return True


def _delivered(fleet: Fleet) -> int:
    sender = getattr(fleet, "sender", None)
    return fleet._delivered if sender is None else sender.delivered
