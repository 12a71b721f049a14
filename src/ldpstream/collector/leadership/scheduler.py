"""The threads that let each stream act when its time has come."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from ldpstream.collector.clock import Clock, ticks
from ldpstream.collector.leadership.store_watch import StoreWatch
from ldpstream.collector.leadership.stream_driver import StreamDriver
from ldpstream.collector.rounds.follower import POLL_MS
from ldpstream.collector.store.contract import EVER
from ldpstream.errors import LdpStreamError

RETRY_MS = 1000
LONGEST_SLEEP_MS = 1000
"""So that a clock which is set is noticed, and told."""

Build = Callable[[], StreamDriver]

_log = logging.getLogger(__name__)


class Scheduler:
    """Calls `advance` of each driver when it is due. A driver that fails is rebuilt from the store.

    A restart after a crash does the same: there is only one way to recover. What is due next is the
    top of a heap, so that a stream which has nothing to do costs nothing. A stream advances in one
    thread at a time. Streams can be added and removed while it runs.
    """

    def __init__(
        self,
        clock: Clock,
        build: Mapping[str, Build],
        watch: StoreWatch | None = None,
        workers: int = 1,
    ) -> None:
        self._clock = clock
        self._workers = workers
        """How many streams may advance at once."""
        self._watch = watch
        """Looks for what other collectors of a shared store have done."""
        self._build: dict[str, Build] = {}
        self._replaced: set[str] = set()
        """Streams whose drivers are to be built anew, as soon as they are at rest."""
        self.drivers: dict[str, StreamDriver] = {}
        self._errors: dict[str, str] = {}
        self.looked: dict[str, float] = {}
        """When all that others had done with a stream was last known here, in ticks."""
        self._heap: list[tuple[int, int, str]] = []
        self._due: dict[str, int] = {}
        """When each stream is due; an entry of the heap that says otherwise is void."""
        self._entries = itertools.count()
        """Numbers of entries: what is due at the same time takes turns."""
        self._latest_ms = 0
        self._watch_ms = 0
        self._changed = threading.Condition()
        self._advancing: set[str] = set()
        self._again: set[str] = set()
        """Streams that were woken while they advanced."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="ldpstream-scheduler", daemon=True)
        for name, make in build.items():
            self.add(name, make)

    def add(self, name: str, build: Build) -> None:
        """Drive one more stream from now on, by a driver that is built here and after failures."""
        driver = build()
        with self._changed:
            self._build[name], self.drivers[name] = build, driver
            self.looked[name] = ticks()
            self._put(name, 0)
            self._changed.notify_all()

    def replace(self, name: str, build: Build) -> None:
        """Drive a stream with other settings, from when its driver has ended what it has begun."""
        with self._changed:
            self._build[name] = build
            self._replaced.add(name)
        self.wake(name)

    def remove(self, name: str) -> None:
        """Stop driving a stream; it does not advance any more when this returns."""
        with self._changed:
            self._due.pop(name, None)  # it is not taken any more
            self._changed.wait_for(lambda: name not in self._advancing)
            for known in (self._build, self.drivers, self.looked, self._errors):
                known.pop(name, None)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; return once nothing is under way."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def failures(self) -> dict[str, str]:
        """The last errors of streams that cannot go on, by their names."""
        unseen = {} if self._watch is None else self._watch.failures(self.drivers)
        return unseen | self._errors

    def wake(self, name: str | None = None) -> None:
        """Let a stream advance now, or all of them if it is None."""
        with self._changed:
            for one in list(self._due) if name is None else [name]:
                if one in self._due and one not in self._errors:  # those wait for their next try
                    self._put(one, 0)
            self._changed.notify_all()

    def _put(self, name: str, due_ms: int) -> None:
        """Schedule a stream for this time; the lock is held."""
        if name in self._advancing:
            self._again.add(name)
            return
        self._due[name] = due_ms
        heapq.heappush(self._heap, (due_ms, next(self._entries), name))

    def _run(self) -> None:
        pool = ThreadPoolExecutor(self._workers, "ldpstream-stream")
        try:
            while not self._stopping:
                self._look()
                name = self._take()
                if name is not None:
                    pool.submit(self._act, name)
        finally:
            pool.shutdown(cancel_futures=True)

    def _act(self, name: str) -> None:
        """Let a stream advance, and put it back on the heap."""
        next_ms = self._advance(name)
        with self._changed:
            self._advancing.discard(name)
            if name in self._due:  # else it was removed
                self._put(name, 0 if name in self._again else next_ms)
            self._again.discard(name)
            self._changed.notify_all()

    def _take(self) -> str | None:
        """Take what is due off the heap, or wait a while and return None."""
        with self._changed:
            now_ms = self._clock.now_ms()
            if now_ms < self._latest_ms:  # the clock was set back: what is due is due in vain
                for one in list(self._due):
                    self._put(one, 0)
            self._latest_ms = now_ms
            while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
                heapq.heappop(self._heap)
            sleep_ms = LONGEST_SLEEP_MS if self._watch is None else self._watch_ms - now_ms
            if self._heap:
                sleep_ms = min(sleep_ms, self._heap[0][0] - now_ms)
            if self._heap and self._heap[0][0] <= now_ms:
                _, _, name = heapq.heappop(self._heap)
                self._due[name] = EVER
                self._advancing.add(name)
                return name
            if sleep_ms > 0 and not self._stopping:  # a change that comes now is notified of
                self._changed.wait(min(sleep_ms, LONGEST_SLEEP_MS) / 1000)
            return None

    def _look(self) -> None:
        """Wake the streams that other collectors have changed."""
        now_ms = self._clock.now_ms()
        if self._watch is None or self._watch_ms - POLL_MS <= now_ms < self._watch_ms:
            return
        began = ticks()
        self._watch_ms = now_ms + POLL_MS
        seen = self._watch.look(self.drivers)
        with self._changed:
            for name in seen.quiet:
                if self._due.get(name, 0) not in (0, EVER) and name not in self._errors:
                    self.looked[name] = began  # else it has yet to take up what was seen before
        for name in seen.news:
            self.wake(name)

    def _advance(self, name: str) -> int:
        now, began = self._clock.now_ms(), ticks()
        try:
            if name in self._errors:
                self._rebuild(name)
            next_ms = self._advance_replaced(name)
        except Exception as error:
            self._tell(name, error)
            self._errors[name] = str(error) or type(error).__name__
            return now + RETRY_MS
        self._errors.pop(name, None)
        self.looked[name] = began
        return next_ms

    def _advance_replaced(self, name: str) -> int:
        """Advance a driver; rebuild it before or after that if it is to be replaced."""
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
        """Log why a stream cannot go on; an error of the catalogue in one line, and only once."""
        if not isinstance(error, LdpStreamError):
            _log.exception("stream %s cannot go on; trying again", name)
        elif str(error) != self._errors.get(name):
            _log.error("stream %s cannot go on; trying again: %s", name, error)
