"""The thread that lets each stream act when its time has come."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ldpstream.collector.clock import Clock, ticks
from ldpstream.collector.leadership.stream_driver import StreamDriver

RETRY_MS = 1000
LONGEST_SLEEP_MS = 1000
"""So that a clock which is set is noticed, and told."""

_log = logging.getLogger(__name__)


class Scheduler:
    """Calls `advance` of each driver on time. A driver that fails is rebuilt from the store.

    A restart after a crash does the same: there is only one way to recover.
    """

    def __init__(self, clock: Clock, build: dict[str, Callable[[], StreamDriver]]) -> None:
        self._clock = clock
        self._build = build
        self._due = dict.fromkeys(build, 0)
        self.drivers = {name: make() for name, make in build.items()}
        self.failures = dict.fromkeys(build, "")
        """The last error of streams that cannot go on, for the readiness check."""
        self.looked = dict.fromkeys(build, ticks())
        """When each stream last advanced without an error: changes made before are known here."""
        self._woken = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="ldpstream-scheduler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; return once nothing is under way."""
        self._stopping = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def wake(self) -> None:
        """Let all streams advance now."""
        self._woken.set()

    def _run(self) -> None:
        while not self._stopping:
            self._woken.clear()
            next_ms = min(self._advance(name) for name in self._build)
            sleep = min(next_ms - self._clock.now_ms(), LONGEST_SLEEP_MS)
            if sleep > 0:
                self._woken.wait(sleep / 1000)

    def _advance(self, name: str) -> int:
        now, began = self._clock.now_ms(), ticks()
        try:
            if self.failures[name]:
                if now < self._due[name]:
                    return self._due[name]
                self.drivers[name] = self._build[name]()
            next_ms = self.drivers[name].advance()
        except Exception as error:
            _log.exception("stream %s cannot go on; trying again", name)
            self.failures[name] = str(error) or type(error).__name__
            self._due[name] = now + RETRY_MS
            return self._due[name]
        self.failures[name] = ""
        self.looked[name] = began
        return next_ms
