"""Simulated faults and churn of a fleet: loss, latency, offline devices, users who come and go."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random

from ldpstream.device.exchange import AsyncTransport, Connect, Request, Response, Unreachable
from ldpstream.errors import Mistake, Problem


@dataclass(frozen=True)
class FaultRates:
    """How unreliable the network is, and how often users are offline or leave."""

    offline: float = 0.0
    """The share of devices that are offline, drawn anew for each timestamp."""
    join: float = 0.0
    """The share of users who leave for good in each timestamp; as many new ones join."""
    loss: float = 0.0
    """The probability that a request is lost, and the same again for its response."""
    latency: float = 0.0
    """The mean of the seconds added to an exchange, which are exponentially distributed."""

    def __post_init__(self) -> None:
        for name in ("offline", "join", "loss"):
            if not 0 <= getattr(self, name) < 1:
                self._refuse(name, "0 to below 1")
        if not 0 <= self.latency < 60:
            self._refuse("latency", "seconds, below 60")

    def _refuse(self, name: str, expected: str) -> None:
        raise Mistake(
            Problem.OPTION, option=f"--{name}", given=getattr(self, name), expected=expected
        )


class LostMessage(Unreachable):
    """A request or response that was lost on purpose; the collector may well be reachable."""


class FaultyTransport:
    """The connection of one device: a shared transport with simulated faults."""

    def __init__(self, transport: AsyncTransport, faults: FaultRates, chance: Random) -> None:
        self._transport = transport
        self._faults = faults
        self._chance = chance
        self.offline = False

    async def send(self, url: str, request: Request) -> Response:
        self._may_be_lost(url)
        if self._faults.latency:
            await asyncio.sleep(self._chance.expovariate(1 / self._faults.latency))
        response = await self._transport.send(url, request)
        self._may_be_lost(url)
        return response

    async def connect(self, url: str, step: Connect) -> None:
        self._may_be_lost(url)
        await self._transport.connect(url, step)

    def _may_be_lost(self, url: str) -> None:
        if self.offline or self._chance.random() < self._faults.loss:
            raise LostMessage(Problem.UNREACHABLE, url=url, what="a simulated fault")

    async def close(self) -> None:
        """Do nothing: other devices share the transport."""
