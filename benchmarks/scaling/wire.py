"""Bytes and connections of a device in a day: with slots, and with long polls.

The exchanges are real ones with a real collector, counted on the socket: a report, and a long poll
that ends without news. The rest is arithmetic.
"""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.fleet.counted import counting, one_report
from tests.serving import serving, stream_table

from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.device.exchange import Request
from ldpstream.protocol.limits import LONGEST_WAIT
from ldpstream.protocol.messages import ListRounds

A_DAY = 24 * 3600
DEVICES = 1_000_000
STREAMS = ((60, 10), (20, 600), (24, 3600))
"""Windows, in timestamps, and intervals, in seconds."""


def measure() -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    tables = [
        stream_table(kind, now, window=1, interval='"2s"', selection=f'"{kind}"', public="true")
        for kind in ("slots", "open")
    ]
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), *tables) as url:
        report = asyncio.run(one_report(url, "slots", Path(folder) / "device.ldp"))
        poll_bytes = asyncio.run(_poll_bytes(url))
    return [
        row
        for window, interval in STREAMS
        for row in (
            _row("slots", window, interval, report.both, 0),
            _row("open", window, interval, report.both, poll_bytes),
        )
    ]


def _row(
    selection: str, window: int, interval: int, report_bytes: int, poll_bytes: int
) -> dict[str, Any]:
    """With long polls a device hears of every round, and at least every 30 s that there is none."""
    reports = A_DAY / (window * interval)
    polls = A_DAY / min(interval, LONGEST_WAIT) if poll_bytes else 0
    return {
        "selection": selection,
        "window": window,
        "interval_seconds": interval,
        "reports_per_device_per_day": reports,
        "polls_per_device_per_day": round(polls),
        "bytes_of_a_report": report_bytes,
        "bytes_of_a_poll": poll_bytes or None,
        "bytes_per_device_per_day": round(reports * report_bytes + polls * poll_bytes),
        "devices": DEVICES,
        "reports_per_second": round(DEVICES * reports / A_DAY),
        "connections_held": DEVICES if poll_bytes else 0,
    }


async def _poll_bytes(url: str) -> int:
    """Return the bytes of a question for rounds and its answer, with the rounds of a timestamp."""
    port = urlsplit(url).port
    assert port is not None
    async with counting(port) as counted:
        transport = AsyncHttpTransport()
        await transport.send(counted.url, Request.of(ListRounds("open", after=0, wait=1)))
        await transport.close()
    return counted.both
