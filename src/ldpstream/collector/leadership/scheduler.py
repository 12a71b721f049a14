"""The thread that lets each stream act when its time has come."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ldpstream.collector.clock import Clock, ticks
from ldpstream.collector.leadership.stream_driver import StreamDriver
from ldpstream.errors import LdpStreamError

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
        self._build = dict(build)
        self._replaced: set[str] = set()
        """Streams whose drivers are to be built anew, as soon as they are at rest."""
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

    def add(self, name: str, build: Callable[[], StreamDriver]) -> None:
        """Drive one more stream from now on."""
        self.drivers[name] = build()
        self._due[name], self.failures[name], self.looked[name] = 0, "", ticks()
        self._build[name] = build
        self.wake()

    def replace(self, name: str, build: Callable[[], StreamDriver]) -> None:
        """Drive a stream with other settings, from when its driver has ended what it has begun."""
        self._build[name] = build
        self._replaced.add(name)
        self.wake()

    def _run(self) -> None:
        while not self._stopping:
            self._woken.clear()
            next_ms = min(self._advance(name) for name in list(self._build))
            sleep = min(next_ms - self._clock.now_ms(), LONGEST_SLEEP_MS)
            if sleep > 0:
                self._woken.wait(sleep / 1000)

    def _advance(self, name: str) -> int:
        now, began = self._clock.now_ms(), ticks()
        try:
            if self.failures[name]:
                if now < self._due[name]:
                    return self._due[name]
                self._rebuild(name)
            next_ms = self._advance_replaced(name)
        except Exception as error:
            self._tell(name, error)
            self.failures[name] = str(error) or type(error).__name__
            self._due[name] = now + RETRY_MS
            return self._due[name]
        self.failures[name] = ""
        self.looked[name] = began
        return next_ms

    def _advance_replaced(self, name: str) -> int:
        """Let a driver act; one that is to be replaced, before and after that."""
        next_ms = 0
        for _ in range(2):
            if name in self._replaced and self.drivers[name].role.at_rest:
                self._rebuild(name)
            next_ms = self.drivers[name].advance()
            if name not in self._replaced:
                break
        return next_ms

    def _rebuild(self, name: str) -> None:
        self._replaced.discard(name)
        self.drivers[name] = self._build[name]()

    def _tell(self, name: str, error: Exception) -> None:
        """Log why a stream cannot go on: what is in the catalogue in one line, and once."""
        if not isinstance(error, LdpStreamError):
            _log.exception("stream %s cannot go on; trying again", name)
        elif str(error) != self.failures[name]:
            _log.error("stream %s cannot go on; trying again: %s", name, error)
