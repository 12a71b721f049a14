"""Real devices beside a real collector that is operated: what became of each of their reports."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from ldpstream.device import AsyncDevice
from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.device.session import PollResult
from tests.waiting import eventually

SECONDS = 600


@dataclass
class DeviceFleet:
    """Devices of one stream, on an event loop of their own."""

    url: str
    folder: Path
    stream: str
    size: int
    token: str
    delivered: int = 0
    undelivered: Counter[str] = field(default_factory=Counter)
    """Reports that did not arrive, by what the collector said."""
    _ready: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)

    async def _live(self) -> None:
        transport = AsyncHttpTransport()
        devices = []
        for number in range(self.size):
            file = self.folder / f"{self.stream}-{number}.ldp"
            device = AsyncDevice.create(file, first_install=True, transport=transport)
            await device.enrol(self.url, self.stream, self.token)
            device.observe("x")
            devices.append(device)
        self._ready.set()
        running = [asyncio.create_task(one.run(wait=5, tell=self._heard)) for one in devices]
        while not self._stop.is_set():
            await asyncio.sleep(0.1)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for device in devices:
            device.sessions.wallet.close()
        await transport.close()

    def _heard(self, heard: PollResult) -> None:
        self.delivered += len(heard.delivered)
        for fault in heard.undelivered:
            self.undelivered[str(fault.facts.get("code", fault.problem.code))] += 1

    @contextmanager
    def running(self) -> Iterator[DeviceFleet]:
        self.folder.mkdir(exist_ok=True)
        thread = threading.Thread(target=lambda: asyncio.run(self._live()), daemon=True)
        thread.start()
        try:
            assert self._ready.wait(SECONDS)
            yield self
        finally:
            self._stop.set()
            thread.join(SECONDS)


@dataclass(frozen=True)
class Admin:
    """An administrator of a collector at a URL."""

    url: str
    token: str

    @classmethod
    def of(cls, folder: Path, url: str) -> Admin:
        return cls(url, (folder / "admin.secret").read_text().strip())

    def call(self, method: str, path: str, content: object = None) -> Any:
        body = None if method == "GET" else json.dumps(content or {}).encode()
        request = Request(f"{self.url}/v1/{path}", body, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        with urlopen(request, timeout=60) as answer:
            told = answer.read()
        return json.loads(told) if told else None

    def status(self, stream: str) -> Any:
        return self.call("GET", f"streams/{stream}/status")

    def releases(self, stream: str) -> list[dict[str, Any]]:
        found = self.call("GET", f"streams/{stream}/releases?since=0&format=json")
        return list(found["releases"])

    def await_release(self, stream: str, t: int) -> None:
        eventually(lambda: self.status(stream)["last_release"] >= t, f"t={t} is released")

    def await_more(self, stream: str, timestamps: int) -> int:
        """Wait until so many more timestamps are released; return the last of them."""
        until = int(self.status(stream)["last_release"]) + timestamps
        self.await_release(stream, until)
        return until
