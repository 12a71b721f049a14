"""Notifications of one stream: long polls wait for announcements, feeds for releases."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from ldpstream.collector.rounds.announcement import AnnouncedRounds, OpenRound
from ldpstream.collector.rounds.wake_up import WakeUp
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.protocol.history import TermsHistory

CLOSED_REMEMBERED = 1000
"""Closed rounds that are remembered; reports for older ones hear that the round is unknown."""


class NotificationHub:
    """The latest news of a stream, and a way for coroutines to wait for it.

    Written by the threads of the scheduler and of alerts, read by the event loop.
    """

    def __init__(self) -> None:
        self.announcement = AnnouncedRounds(0, 0, (), TermsHistory(()))
        self.last_t = 0
        self.latest: StoredRelease | None = None
        """The last release; None before the first."""
        self.alerts_serial = 0
        """Grows with each change of an alert."""
        self.stopping = False
        self.waiting = 0
        """Long polls under way; touched by the event loop only."""
        self.open: dict[str, OpenRound] = {}
        self._closed: deque[str] = deque(maxlen=CLOSED_REMEMBERED)
        self._announced = WakeUp()
        self._released = WakeUp()

    def attach(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._announced.attach(loop)
        self._released.attach(loop)

    @property
    def history(self) -> TermsHistory:
        """All versions of the stream's terms."""
        return self.announcement.history

    @history.setter
    def history(self, known: TermsHistory) -> None:
        self.announcement = replace(self.announcement, history=known)

    def remember(self, closed: Iterable[str]) -> None:
        """Remember rounds that were closed before the last restart."""
        self._closed.extend(closed)

    def was_open(self, round_name: str) -> bool:
        return round_name in self._closed

    def announced(self, announcement: AnnouncedRounds) -> None:
        before = self.open
        self.open = {one.name: one for one in announcement.rounds}
        self._closed.extend(name for name in before if name not in self.open)
        self.announcement = announcement
        self._announced.notify_all()

    def released(self, latest: StoredRelease) -> None:
        self.latest, self.last_t = latest, latest.t
        self._released.notify_all()

    def alerted(self) -> None:
        self.alerts_serial += 1
        self._released.notify_all()

    def stop(self) -> None:
        """Let everything that waits return: the collector shuts down."""
        self.stopping = True
        self._announced.notify_all()
        self._released.notify_all()

    async def after(self, serial: int, seconds: float) -> AnnouncedRounds:
        """Return the announcement once its serial is greater, or when the time is up."""
        self.waiting += 1
        try:
            await self._wait_until(lambda: self.announcement.serial > serial, seconds)
        finally:
            self.waiting -= 1
        return self.announcement

    async def opened(self, round_name: str, seconds: float) -> OpenRound | None:
        """Return the round of that name once it is open; None if the time is up before."""
        await self._wait_until(
            lambda: round_name in self.open or self.was_open(round_name), seconds
        )
        return self.open.get(round_name)

    async def _wait_until(self, done: Callable[[], bool], seconds: float) -> None:
        """Wait for announcements until they will do, the collector stops, or the time is up."""
        end = time.monotonic() + seconds
        while not done() and not self.stopping:
            left = end - time.monotonic()
            if left <= 0 or not await self._announced.wait(left):
                break

    async def news_after(self, t: int, alerts_serial: int, seconds: float) -> bool:
        """Wait for a later release or a change of an alert; return whether there is one."""

        def found() -> bool:
            return self.last_t > t or self.alerts_serial > alerts_serial

        if not found() and not self.stopping:
            await self._released.wait(seconds)
        return found()
