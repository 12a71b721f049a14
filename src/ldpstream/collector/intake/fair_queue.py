"""A fair queue: senders take turns, so that a flood from one delays no other."""

from __future__ import annotations

import queue
from collections import OrderedDict, deque
from typing import Generic, Protocol, TypeVar


class QueueItem(Protocol):
    """Something that a sender puts into the queue."""

    @property
    def sender(self) -> str: ...

    @property
    def packed(self) -> bytes: ...


Item = TypeVar("Item", bound=QueueItem)


class FairQueue(Generic[Item]):
    """First in, first out for each sender; among senders one item each in turn.

    Any thread may put; one thread takes, and sorts by sender what has come since.
    """

    def __init__(self) -> None:
        self._arrived: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._lanes: OrderedDict[str, deque[Item]] = OrderedDict()
        self._closed = False

    def put(self, item: Item) -> None:
        self._arrived.put(item)

    def close(self) -> None:
        """Let `take` return nothing once all that was put is taken."""
        self._arrived.put(None)

    def take(self, most_bytes: int) -> list[Item]:
        """Wait for items, and return all there are, or as many as reach `most_bytes`."""
        if not self._lanes and not self._closed:
            self._sort(self._arrived.get())
        while not self._arrived.empty():
            self._sort(self._arrived.get())
        taken: list[Item] = []
        while self._lanes and most_bytes > 0:
            sender, lane = next(iter(self._lanes.items()))
            taken.append(lane.popleft())
            most_bytes -= len(taken[-1].packed)
            if lane:
                self._lanes.move_to_end(sender)
            else:
                del self._lanes[sender]
        return taken

    def _sort(self, item: Item | None) -> None:
        if item is None:
            self._closed = True
        else:
            self._lanes.setdefault(item.sender, deque()).append(item)
