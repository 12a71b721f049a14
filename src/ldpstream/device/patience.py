"""How long a blocking transport may still wait."""

from __future__ import annotations

import time

from ldpstream.device.exchange import LOOK_SECONDS, Stop, never

STOPPED = "told to stop"
TOO_SLOW = "it takes too long"


class Patience:
    """A number of seconds that runs out, or ends when `stop()` says true."""

    def __init__(self, seconds: float, stop: Stop = never) -> None:
        self._end = time.monotonic() + seconds
        self._stop = stop

    def left(self) -> float:
        """Return how long to wait before asking again; raise `TimeoutError` if it has run out."""
        if self._stop():
            raise TimeoutError(STOPPED)
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(TOO_SLOW)
        return left if self._stop is never else min(left, LOOK_SECONDS)

    def share(self, parts: int) -> Patience:
        """Return what the first of so many attempts may use of it."""
        return Patience((self._end - time.monotonic()) / parts, self._stop)
