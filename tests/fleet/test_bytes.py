"""What a device with a slot costs on the wire, counted on the socket of a real collector."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from tests.fleet.counted import one_report
from tests.serving import serving, stream_table

A_DAY = 24 * 3600
WINDOW, INTERVAL = 24, 3600
"""The meter of the example: a report a day."""
MOST_BYTES = 1000


def test_a_device_with_one_report_a_day_sends_and_hears_at_most_a_kilobyte(tmp_path: Path) -> None:
    """Here its window is one timestamp of 2 s: the exchange is the same."""
    table = stream_table(
        "regions",
        datetime.now(UTC),
        window=1,
        interval='"2s"',
        selection='"slots"',
        public="true",
    )
    with serving(tmp_path, table) as url:
        report = asyncio.run(one_report(url, "regions", tmp_path / "device.ldp"))
    assert report.connections == 1
    assert report.both * A_DAY / (WINDOW * INTERVAL) <= MOST_BYTES
