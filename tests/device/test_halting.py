"""Devices of a stream that is paused or retired: they draw nothing, and hardly ask."""

from __future__ import annotations

from typing import Any

import pytest

from ldpstream.device import Device
from ldpstream.device.halt_state import RETIRED_WINDOWS
from ldpstream.device.status import read_status
from tests.device.collectors import INTERVAL_MS, Bench, a_round, make_terms

WINDOW = 4
SLOTS: dict[str, Any] = {"selection": "slots", "deadline_ms": 54_000}


def live(bench: Bench, device: Device, timestamps: int) -> int:
    """Run the device for so many timestamps; return how many requests it has sent."""
    before, end = len(bench.collector.requests), bench.clock.wall + timestamps * INTERVAL_MS
    device.run(stop=lambda: bench.clock.wall >= end)
    return len(bench.collector.requests) - before


@pytest.fixture
def device(bench: Bench) -> Device:
    bench.collector.terms = make_terms(**SLOTS)
    return bench.enrolled()


def test_a_device_of_a_paused_stream_asks_at_its_turn_and_spends_nothing(
    bench: Bench, device: Device
) -> None:
    live(bench, device, 2 * WINDOW)
    heard = len(bench.collector.sent)
    assert heard == 2
    bench.collector.halt = "paused"
    live(bench, device, WINDOW)  # the report that is refused tells it
    assert len(bench.collector.sent) == heard + 1
    assert 9 <= live(bench, device, 10 * WINDOW) <= 11  # a question in each window
    assert len(bench.collector.sent) == heard + 1
    (left,) = [one.left_nano for one in read_status(bench.path, bench.clock).streams]
    assert left == bench.collector.terms.epsilon_nano
    bench.collector.halt = None
    live(bench, device, WINDOW)  # resumed: its very next turn is taken
    assert len(bench.collector.sent) == heard + 2


def test_a_device_of_a_retired_stream_hardly_ever_asks_again(bench: Bench, device: Device) -> None:
    bench.collector.halt = "retired"
    live(bench, device, WINDOW)
    assert len(bench.collector.sent) == 1
    # A window less than that from the device's turn, and another for what `live` takes longer.
    assert live(bench, device, (RETIRED_WINDOWS - 2) * WINDOW) == 0
    bench.collector.halt = None  # it was a mistake
    live(bench, device, 4 * WINDOW)
    assert len(bench.collector.sent) >= 2


def test_an_asked_device_of_a_retired_stream_stops_polling(bench: Bench) -> None:
    bench.collector.terms = make_terms(selection="open")
    device = bench.enrolled()
    bench.collector.halt = "retired"
    assert live(bench, device, WINDOW) == 1
    assert live(bench, device, 10 * WINDOW) == 0


def test_rounds_of_a_halted_stream_are_not_answered(bench: Bench) -> None:
    device = bench.enrolled()
    bench.collector.halt = "paused"
    assert bench.ask(device, a_round(bench.t)) == []
    bench.collector.halt = None
    assert len(bench.ask(device, a_round(bench.t))) == 1


@pytest.mark.parametrize("halt", ["", "for ever", 1, None, ["paused"], {}])
def test_what_is_no_halt_halts_nothing(bench: Bench, device: Device, halt: Any) -> None:
    bench.collector.halt = halt
    bench.collector.status = 202
    live(bench, device, 3 * WINDOW)
    assert len(bench.collector.sent) == 3
