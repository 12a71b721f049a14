"""Waking coroutines from any thread."""

from __future__ import annotations

import asyncio


class Alarm:
    """Whoever waits is woken by the next ring.

    To miss none, look at the state first and wait without an await in between: a ring that comes
    from another thread is delivered by the loop, so it cannot fall into the gap.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event = asyncio.Event()

    def attach(self) -> None:
        """Use the running loop from now on."""
        self._loop = asyncio.get_running_loop()

    def ring(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        ringing, self._event = self._event, asyncio.Event()
        ringing.set()

    async def wait(self, seconds: float) -> bool:
        """Whether it rang in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._event.wait()
        except TimeoutError:
            return False
