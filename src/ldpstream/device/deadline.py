"""The deadline of a request on a blocking transport."""

from __future__ import annotations

import time

from ldpstream.device.exchange import LOOK_SECONDS, Stop, never

STOPPED = "told to stop"
TOO_SLOW = "it takes too long"


class Deadline:
    """A deadline after a number of seconds, or as soon as `stop()` returns true."""

    def __init__(self, seconds: float, stop: Stop = never) -> None:
        self._end = time.monotonic() + seconds
        self._stop = stop

    def left(self) -> float:
        """Return how long to wait before the next call; raise `TimeoutError` after the deadline."""
        if self._stop():
            raise TimeoutError(STOPPED)
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(TOO_SLOW)
        return left if self._stop is never else min(left, LOOK_SECONDS)

    def share(self, parts: int) -> Deadline:
        """Return the patience of one attempt: the time left, divided by `parts`."""
        return Deadline((self._end - time.monotonic()) / parts, self._stop)
