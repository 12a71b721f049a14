"""A real collector whose labels change twice under running devices, in processes of their own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from ldpstream.device import AsyncDevice
from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.device.checking import check_ledger
from ldpstream.protocol.succession import Acceptance
from tests.serving import ENROLMENT, HEAD, TOKEN, CollectorProcess, stream_table
from tests.waiting import eventually

WINDOW = 3
SECONDS = 600
LEVEL = '\n[[stream.level]]\nname = "careful"\nepsilon = 0.5\nwindow = 6\n'
FIRST = '["x", "y", "z"]'
CHANGES = [
    (
        '["x", "why", "new"]',
        'version = 2\nrename = { y = "why", z = "x" }\n',
    ),
    ('["why", "x"]', 'version = 3\nrename = { new = "x" }\n'),
]


@dataclass(frozen=True)
class Scene:
    """How many devices there are, and how long a timestamp is."""

    devices: int
    interval_s: int

    def configuration(self, start: datetime, labels: str, more: str) -> str:
        given = {"selection": '"slots"', "mechanism": '"lpf"', "epsilon": 4, "window": WINDOW}
        given |= {"interval": f'"{self.interval_s}s"', "population": self.devices}
        given |= {"public": "true", "labels": labels, "oracle": '"auto"'}
        return HEAD + stream_table("s", start, **given) + LEVEL + more

    def change(
        self, collector: CollectorProcess, start: datetime, labels: str, section: str
    ) -> None:
        """Restart the collector with other labels."""
        collector.stop()
        overlap = f'overlap = "{10 * self.interval_s}s"\n'
        more = f"\n[stream.successor]\n{section}{overlap}"
        collector.file.write_text(self.configuration(start, labels, more))
        collector.start()


@dataclass
class RunningFleet:
    """Devices on an event loop of their own; every third one is careful, none accepts less."""

    url: str
    folder: Path
    size: int
    devices: list[AsyncDevice] = field(default_factory=list)

    async def live(self, ready: threading.Event, stop: threading.Event) -> None:
        transport = AsyncHttpTransport()
        for number in range(self.size):
            file = self.folder / f"{number}.ldp"
            device = AsyncDevice.create(file, first_install=True, transport=transport)
            level = "careful" if number % 3 == 0 else ""
            accept = Acceptance.NOT_LOOSER
            await device.enrol(self.url, "s", TOKEN, level=level, accept=accept)
            device.observe("x")
            self.devices.append(device)
        ready.set()
        running = [asyncio.create_task(device.run(wait=5)) for device in self.devices]
        while not stop.is_set():
            await asyncio.sleep(0.1)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for device in self.devices:
            device.sessions.wallet.close()
        await transport.close()

    def await_version(self, version: int) -> None:
        """Wait until all have gone over: who was away during the overlap hears of it at last."""
        eventually(
            lambda: {one.terms.version for one in self.devices if one.terms} == {version},
            "all devices have gone over",
        )


@contextmanager
def running_fleet(url: str, folder: Path, size: int) -> Iterator[RunningFleet]:
    fleet, ready, stop = RunningFleet(url, folder, size), threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(fleet.live(ready, stop)), daemon=True)
    thread.start()
    try:
        assert ready.wait(SECONDS)
        yield fleet
    finally:
        stop.set()
        thread.join(SECONDS)


def get(url: str, path: str) -> Any:
    with urlopen(f"{url}/v1/streams/s{path}") as answer:
        return json.load(answer)


def await_release(url: str, t: int) -> None:
    eventually(lambda: get(url, "/status")["last_release"] >= t, f"t={t} is released")


def test_labels_change_twice_under_a_running_fleet(tmp_path: Path) -> None:
    start, ledgers, scene = datetime.now(UTC), tmp_path / "ledgers", Scene(30, interval_s=3)
    ledgers.mkdir()
    text = scene.configuration(start, FIRST, "")
    with CollectorProcess.of(tmp_path, text, ENROLMENT) as collector:
        with running_fleet(collector.url, ledgers, scene.devices) as fleet:
            await_release(collector.url, 3)
            for version, (labels, section) in enumerate(CHANGES, 2):
                scene.change(collector, start, labels, section)
                newest = get(collector.url, "")["versions"][-1]
                assert newest["version"] == version
                overlapping = get(collector.url, "")["versions"][-2]["until_t"]
                await_release(collector.url, overlapping + 2)
                fleet.await_version(version)
        last_t = get(collector.url, "/status")["last_release"]
        released = get(collector.url, "/releases?since=0&format=json")["releases"]
        changes = [one["from_t"] for one in get(collector.url, "")["versions"]]
    first_t = released[0]["t"]  # the process took some time to start
    assert [one["t"] for one in released] == [*range(first_t, last_t + 1)]
    for one in released:
        version = sum(one["t"] >= from_t for from_t in changes)
        assert one.get("terms_version", 1) == version
        assert len(one["values"]) == (3, 3, 2)[version - 1]
    answered = [one for one in released if not one["missed"]]
    assert sum(one["received"] > 0 for one in answered[2:]) >= 0.7 * len(answered[2:])
    # Nobody was silent for long: those who report are all who could have, when it is over.
    assert released[-1]["devices"]["heard"] >= 0.7 * scene.devices
    for file in ledgers.iterdir():
        assert check_ledger(file).faults == (), file
