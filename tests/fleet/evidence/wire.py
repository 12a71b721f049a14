"""A record of everything that a fleet's reports went through on the wire.

It stands below the faults: what it calls sent was handed to the network, what it calls answered
came back from the collector, whether or not a fault then kept it from the device.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ldpstream.device.exchange import AsyncTransport, Connect, Request, Response
from ldpstream.protocol.messages import DEVICE_HEADER

SENT = 0
"""The status of a line that is written before the first byte leaves."""
ACKNOWLEDGED = 202


@dataclass(frozen=True)
class Event:
    """A report that was sent (status 0), or what the collector answered to it."""

    device: str
    round: str
    report: bytes
    status: int
    at_ms: int


class WireLog:
    """A transport that writes down what becomes of every single report, a line each."""

    def __init__(self, transport: AsyncTransport, path: Path) -> None:
        self._transport = transport
        self._file = path.open("w", encoding="ascii")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    async def send(self, url: str, request: Request) -> Response:
        if not request.path.endswith("/reports"):
            return await self._transport.send(url, request)
        self._write(request, SENT)
        response = await self._transport.send(url, request)
        self._write(request, response.status)
        return response

    async def connect(self, url: str, step: Connect) -> None:
        await self._transport.connect(url, step)

    def _write(self, request: Request, status: int) -> None:
        name = request.path.split("/")[-2]
        device = request.headers[DEVICE_HEADER]
        self._file.write(
            f"{device} {name} {request.body.hex()} {status} {time.time_ns() // 10**6}\n"
        )

    async def close(self) -> None:
        await self._transport.close()


def read_wire(path: Path) -> Iterator[Event]:
    """The events, in the order in which they happened."""
    with open(path, encoding="ascii") as file:
        for line in file:
            device, name, report, status, at_ms = line.split()
            yield Event(device, name, bytes.fromhex(report), int(status), int(at_ms))
