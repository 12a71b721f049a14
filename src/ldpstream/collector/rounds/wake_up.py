"""Waking coroutines from any thread."""

from __future__ import annotations

import asyncio


class WakeUp:
    """An event that any thread may set, and that wakes every coroutine which waits for it then.

    To miss none, look at the state first and wait without an await in between: what another thread
    sets is delivered by the loop, so it cannot fall into the gap.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event = asyncio.Event()

    def attach(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Use this loop from now on, or the running one if it is None."""
        self._loop = loop or asyncio.get_running_loop()

    def notify_all(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        waited_for, self._event = self._event, asyncio.Event()
        waited_for.set()

    async def wait(self, seconds: float) -> bool:
        """Return whether the event was set in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._event.wait()
        except TimeoutError:
            return False
