"""A stream's notice board: the latest announcement, and those who wait for the next."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

from ldpstream.collector.alarm import Alarm
from ldpstream.collector.announcement import Announcement, OpenRound

CLOSED_REMEMBERED = 1000
"""Reports for rounds that closed longer ago hear that there is no such round."""


class Board:
    """Written by the threads of the coordinator and of alerts, read by the event loop."""

    def __init__(self) -> None:
        self.announcement = Announcement(0, "", 0, ())
        self.last_t = 0
        self.alerts_serial = 0
        """Grows whenever there is something new to tell of alerts."""
        self.stopping = False
        self.waiting = 0
        """Long polls under way; touched by the event loop only."""
        self.open: dict[str, OpenRound] = {}
        self._closed: deque[str] = deque(maxlen=CLOSED_REMEMBERED)
        self._announced = Alarm()
        self._released = Alarm()

    def attach(self) -> None:
        self._announced.attach()
        self._released.attach()

    def remember(self, closed: Iterable[str]) -> None:
        """Rounds of before a restart."""
        self._closed.extend(closed)

    def was_open(self, round_name: str) -> bool:
        return round_name in self._closed

    def announced(self, announcement: Announcement) -> None:
        before = self.open
        self.open = {one.name: one for one in announcement.rounds}
        self._closed.extend(name for name in before if name not in self.open)
        self.announcement = announcement
        self._announced.ring()

    def released(self, t: int) -> None:
        self.last_t = t
        self._released.ring()

    def alerted(self) -> None:
        self.alerts_serial += 1
        self._released.ring()

    def stop(self) -> None:
        """Send everyone home who waits."""
        self.stopping = True
        self._announced.ring()
        self._released.ring()

    async def after(self, serial: int, seconds: float) -> Announcement:
        """The announcement, as soon as its serial is greater, or the time is up."""
        end = time.monotonic() + seconds
        self.waiting += 1
        try:
            while self.announcement.serial <= serial and not self.stopping:
                left = end - time.monotonic()
                if left <= 0 or not await self._announced.wait(left):
                    break
        finally:
            self.waiting -= 1
        return self.announcement

    async def hears_of(self, round_name: str, seconds: float) -> OpenRound | None:
        """The round of that name, as soon as it is open, if that is before the time is up."""
        end = time.monotonic() + seconds
        while round_name not in self.open and not self.was_open(round_name) and not self.stopping:
            left = end - time.monotonic()
            if left <= 0 or not await self._announced.wait(left):
                break
        return self.open.get(round_name)

    async def news_after(self, t: int, alerts_serial: int, seconds: float) -> bool:
        """Whether there is a later release, or news of alerts, now or before the time is up."""

        def found() -> bool:
            return self.last_t > t or self.alerts_serial > alerts_serial

        if not found() and not self.stopping:
            await self._released.wait(seconds)
        return found()
