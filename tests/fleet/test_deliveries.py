"""Deliveries of a gateway, while its stream is paused."""

from __future__ import annotations

import asyncio

from ldpstream.device.exchange import AsyncTransport, Connect, Request, Response, Unreachable
from ldpstream.errors import Problem
from ldpstream.fleet.deliveries import Deliveries
from ldpstream.protocol.notice import Halt


class Away(AsyncTransport):
    """A collector that does not answer."""

    async def send(self, url: str, request: Request) -> Response:
        raise Unreachable(Problem.UNREACHABLE, url=url, what="nobody is there")

    async def connect(self, url: str, step: Connect) -> None: ...

    async def close(self) -> None: ...


def test_a_paused_stream_stays_so_while_its_collector_is_away() -> None:
    deliveries = Deliveries(Away(), "http://127.0.0.1:1", "a", halt=Halt.PAUSED)
    assert not asyncio.run(deliveries.goes_on(None, 1))
    assert deliveries.halt is Halt.PAUSED
