"""A proxy on loopback that counts the bytes of everything that passes through it, both ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from ldpstream.device import AsyncDevice
from ldpstream.protocol.limits import LONGEST_WAIT
from tests.serving import TOKEN


@dataclass
class Counted:
    """What has passed so far."""

    port: int
    connections: int = 0
    up: int = 0
    """Bytes to the collector."""
    down: int = 0
    """Bytes from the collector."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def both(self) -> int:
        return self.up + self.down


@asynccontextmanager
async def counting(port: int) -> AsyncIterator[Counted]:
    """Forward connections to a port of this machine, and count their bytes."""
    counted = Counted(0)
    forwarding: set[asyncio.Task[None]] = set()

    async def forward(client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        counted.connections += 1
        forwarding.add(cast("asyncio.Task[None]", asyncio.current_task()))
        server, requests = await asyncio.open_connection("127.0.0.1", port)

        async def up() -> None:
            while data := await client.read(1 << 16):
                counted.up += len(data)
                requests.write(data)
            requests.close()

        async def down() -> None:
            while data := await server.read(1 << 16):
                counted.down += len(data)
                answers.write(data)
            answers.close()

        await asyncio.gather(up(), down())
        await asyncio.gather(answers.wait_closed(), requests.wait_closed())

    async with await asyncio.start_server(forward, "127.0.0.1", 0) as listening:
        counted.port = listening.sockets[0].getsockname()[1]
        yield counted
        await asyncio.gather(*forwarding)


async def one_report(url: str, stream: str, file: Path) -> Counted:
    """Return what one report of a new device with slots costs, from its connection on."""
    port = urlsplit(url).port
    assert port is not None
    async with counting(port) as counted:
        async with AsyncDevice.create(file, first_install=True) as device:
            await device.enrol(counted.url, stream, TOKEN)
        delivered = 0
        while not delivered:  # one that comes too late is not one
            async with AsyncDevice.open(file) as device:
                device.follow(lambda: 0)
                counted.up = counted.down = counted.connections = 0
                delivered = len((await device.poll(wait=LONGEST_WAIT)).delivered)
        return counted
