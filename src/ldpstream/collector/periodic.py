"""Periodic work in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)


class PeriodicThread:
    """A daemon thread that works, pauses, and works again until it is stopped.

    A fault in the work is logged and costs one turn only.

    >>> done = threading.Event()
    >>> thread = PeriodicThread("example", 0.001, done.set)
    >>> thread.start()
    >>> done.wait(), thread.stop()
    (True, None)
    """

    def __init__(
        self, name: str, seconds: float, work: Callable[[], None], *, at_once: bool = False
    ) -> None:
        self._seconds, self._work = seconds, work
        self._at_once = at_once
        """Whether it works before the first pause."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ldpstream-{name}", daemon=True)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Let the work that is being done end, and no other begin; wait for it."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause = 0.0 if self._at_once else self._seconds
        while not self._stopping.wait(pause):
            pause = self._seconds
            try:
                self._work()
            except Exception:
                _log.exception("the work of %s failed", self._thread.name)
