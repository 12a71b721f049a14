"""The size of the batches in which an engine counts a log.

A batch reads back which devices the round's earlier batches have counted. So a batch waits until it
has at least half as many messages as the round had before it, or the round has ended. Then all
batches of a round read back at most three times its size, however long it is, and at most a third
of the round is left to count when it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import monotonic

from ldpstream.collector.report_log.contract import ReportLog
from ldpstream.collector.report_log.counts import BEAT_SECONDS, LogCounts

_log = logging.getLogger(__name__)

GROWTH = 0.5
MOST_BYTES = 1 << 30
"""The largest size of a batch: it bounds the work that an engine repeats after a fault."""


class Heartbeat:
    """Shows collectors now and then that an engine counts their streams."""

    def __init__(self, counts: LogCounts, streams: Sequence[str]) -> None:
        self._counts, self._streams = counts, streams
        self._next = 0.0

    def beat(self) -> None:
        """Show that the engine is alive, unless that was done recently."""
        if monotonic() >= self._next:
            self._counts.show(self._streams)
            self._next = monotonic() + BEAT_SECONDS


def batch_end(log: ReportLog, stream: str, counted: int) -> int:
    """Return the last sequence of the next batch; `counted` if it is not time for one."""
    extent = log.extent(stream)
    if extent.last <= counted:
        return counted
    if extent.first > counted + 1:
        lost = extent.first - counted - 1
        _log.error("%d messages of stream %s expired before they were counted", lost, stream)
    end = max(log.last_end(stream), extent.first - 1)  # it may have expired, and all before it
    if end <= counted and extent.last - counted < GROWTH * (counted - end):
        return counted
    most = max(1, MOST_BYTES // extent.message_bytes)
    return min(extent.last, max(counted, extent.first - 1) + most)
