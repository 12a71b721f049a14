"""A queue in which every sender has a turn, so that a flood from one delays no other."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """Something that a sender puts into the queue."""

    @property
    def sender(self) -> str: ...

    @property
    def packed(self) -> bytes: ...


Item = TypeVar("Item", bound=Sized)


class TurnQueue(Generic[Item]):
    """First in, first out for each sender; among senders one item each in turn. Thread-safe."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, deque[Item]] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: Item) -> None:
        with self._changed:
            self._lanes.setdefault(item.sender, deque()).append(item)
            self._changed.notify()

    def close(self) -> None:
        """Let `take` return nothing once all that was put is taken."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def take(self, most_bytes: int) -> list[Item]:
        """Wait for items, and return all there are, or as many as reach `most_bytes`."""
        taken: list[Item] = []
        with self._changed:
            self._changed.wait_for(lambda: self._lanes or self._closed)
            while self._lanes and most_bytes > 0:
                sender, lane = next(iter(self._lanes.items()))
                taken.append(lane.popleft())
                most_bytes -= len(taken[-1].packed)
                if lane:
                    self._lanes.move_to_end(sender)
                else:
                    del self._lanes[sender]
        return taken
