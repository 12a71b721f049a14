"""Simulated devices: they keep budgets as real ones do, and a collector takes them for real."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.cli import run
from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.device.exchange import Request, Response
from ldpstream.errors import Mistake
from ldpstream.fleet.fleet import FleetOutcome, FleetPlan, Progress
from ldpstream.fleet.reader import JudgedRelease
from ldpstream.fleet.simulated.devices import Devices
from ldpstream.fleet.simulated.fleet import SimulatedFleet
from ldpstream.fleet.simulated.gateway import SimulatedGateway
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle
from ldpstream.oracles.lab_half import encode_table
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.slots import is_turn
from ldpstream.streams.synthetic import meter, sin
from tests.device.collectors import make_terms
from tests.serving import LATE, TOKEN, serving, stream_table

PATIENCE = 120.0
DEVICES = 300
SPAN_MS = 60_000
ALL = np.arange(3)


@dataclass
class Clock:
    """A machine's clocks, which go on when they are told to."""

    ms: int = 1000
    name: str = "a boot"

    def wall_ms(self) -> int:
        return self.ms

    def steady_ms(self) -> int:
        return self.ms

    def boot(self) -> str:
        return self.name


def test_a_device_is_free_when_a_window_of_own_time_has_passed() -> None:
    clock = Clock()
    devices = Devices.new(3, clock)
    devices.debit(np.array([1]))
    clock.ms += SPAN_MS - 1
    assert devices.free(ALL, SPAN_MS).tolist() == [True, False, True]
    clock.ms += 1
    assert devices.free(ALL, SPAN_MS).all()


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "state"
    devices = replace(Devices.new(3, clock), terms=make_terms(), origin="http://x")
    devices.keys[2] = 7
    devices.debit(np.array([1]))
    devices.save(file)
    clock.ms += 10
    found = Devices.load(file, clock)
    for name in ("secrets", "keys", "debited_ms"):
        assert np.array_equal(getattr(found, name), getattr(devices, name))
    assert (found.terms, found.origin, found.own_ms()) == (make_terms(), "http://x", 10)
    assert found.with_more(5).enrolled.tolist() == [False, False, True, False, False]


def test_debits_of_a_run_that_died_count_as_made_when_it_is_found(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "state"
    replace(Devices.new(3, clock), reporting=True).save(file)
    found = Devices.load(file, clock)
    assert not found.free(ALL, SPAN_MS).any()
    clock.ms += SPAN_MS
    assert found.free(ALL, SPAN_MS).all()


def test_a_file_that_is_no_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"none")
    with pytest.raises(Mistake, match="give a file that --state has written"):
        Devices.load(tmp_path / "state", Clock())


@pytest.mark.parametrize("oracle", [*Oracle, *Numeric])
@pytest.mark.parametrize("labels", [2, 70, 300])
def test_reports_of_the_laboratory_are_encoded_as_devices_do(
    oracle: Oracle | Numeric, labels: int
) -> None:
    epsilon = Epsilon.of(1)
    drawn = oracle.lab(labels, epsilon).perturb(np.arange(50) % labels, np.random.default_rng(1))
    table = encode_table(drawn, oracle.device(labels, epsilon))
    assert np.array_equal(oracle.collector(labels, epsilon).decode_table(table), drawn)


def test_those_are_due_whose_slot_it_is() -> None:
    devices = Devices.new(100, Clock())
    devices.keys[:] = devices.slot_keys[:] = devices.secrets
    devices.terms = make_terms(selection="slots", deadline_ms=50_000, window=4)

    def nothing(*_: Any) -> Any:
        return None

    gateway = SimulatedGateway(AsyncHttpTransport(), "http://x", devices, nothing, nothing)
    for t in (1, 2, 64, 65):  # the second epoch begins at 65
        due = [row for row in range(100) if is_turn(devices.keys[row].tobytes(), 4, t)]
        assert gateway.due(t).tolist() == due


class Enrolments(AsyncHttpTransport):
    """Counts the requests to enrol."""

    count = 0

    async def send(self, url: str, request: Request) -> Response:
        self.count += request.path.endswith("/devices")
        return await super().send(url, request)


async def until(
    plan: FleetPlan,
    releases: int,
    transport: AsyncHttpTransport,
    progress: Progress = lambda *_: None,
) -> FleetOutcome:
    """Run until so many releases with reports are judged."""
    seen: list[JudgedRelease] = []

    def watch(judged: JudgedRelease) -> None:
        seen.append(judged)
        if sum(one.received > 0 for one in seen) >= releases:
            fleet.stop()

    fleet = SimulatedFleet(plan, progress, watch, transport)
    return await fleet.run()


def test_a_collector_takes_them_for_real_devices_and_they_enrol_once(tmp_path: Path) -> None:
    slots = stream_table(
        "sin", datetime.now(UTC), population=DEVICES, interval='"1s"', selection='"slots"'
    )
    source = sin(users=DEVICES, timestamps=50)
    with serving(tmp_path, slots) as url:
        plan = FleetPlan(url, "sin", TOKEN, source, DEVICES, PATIENCE, state=tmp_path / "fleet.npz")
        first = asyncio.run(until(plan, 2, counted := Enrolments()))
        again = asyncio.run(until(plan, 1, later := Enrolments()))
    assert counted.count == DEVICES
    assert later.count == 1  # one asks whether the terms are still the same
    for outcome in (first, again):
        assert outcome.delivered > 0
        assert set(outcome.refused) <= LATE


def test_they_hold_numbers_too(tmp_path: Path) -> None:
    table = stream_table("sin", datetime.now(UTC), interval='"1s"', selection='"slots"')
    kept = [line for line in table.splitlines() if not line.startswith(("labels", "oracle"))]
    numbers = "\n".join([*kept, "range = [0, 5]"])
    with serving(tmp_path, numbers) as url:
        plan = FleetPlan(url, "sin", TOKEN, meter(users=100, timestamps=50), 100, PATIENCE)
        outcome = asyncio.run(until(plan, 1, AsyncHttpTransport()))
    assert outcome.delivered > 0


def test_mistakes_are_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = stream_table("sin", datetime.now(UTC))
    with serving(tmp_path, asked) as url:
        fleet = ["fleet", "--collector", url, "--token", TOKEN, "--stream", "sin"]
        wrong = {
            ("--devices", "5", "--simulated"): "slots",
            ("--devices", "20001"): "slots",
            ("--devices", "5", "--state", "x"): "--simulated",
            ("--devices", "5", "--simulated", "--join", "0.1"): "real devices",
        }
        for options, word in wrong.items():
            assert run([*fleet, *options]) == 2
            (line,) = capsys.readouterr().err.strip().splitlines()
            assert word in line
