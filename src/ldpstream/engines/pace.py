"""The size of the batches in which an engine counts a log.

A batch reads back which devices the round's earlier batches have counted. So a batch waits until it
has at least half as many messages as the round had before it, or the round has ended. Then all
batches of a round read back at most three times its size, however long it is, and at most a third
of the round is left to count when it ends.
"""

from __future__ import annotations

import logging

from ldpstream.collector.report_log.contract import ReportLog

_log = logging.getLogger(__name__)

GROWTH = 0.5
MOST_BYTES = 1 << 30
"""The largest size of a batch: it bounds the work that an engine repeats after a fault."""


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
