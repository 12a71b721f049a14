"""A stream's place in this process: it conducts while it holds the lease, and else it follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ldpstream.collector.clock import Clock
from ldpstream.collector.follower import POLL_MS
from ldpstream.collector.selection import Selection
from ldpstream.collector.store.contract import Lease, Store
from ldpstream.collector.tenure import Tenure
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.terms import Terms


class Part(Protocol):
    """A coordinator, or a follower."""

    terms: Terms
    last_t: int

    @property
    def selection(self) -> Selection: ...

    @property
    def complete(self) -> bool: ...

    def advance(self) -> int: ...


class Seat:
    """Changes between the two parts as the lease comes and goes. Each starts from the store."""

    def __init__(
        self,
        stream: str,
        store: Store,
        clock: Clock,
        tenure: Tenure,
        conduct: Callable[[Store], Part],
        follow: Callable[[], Part],
    ) -> None:
        self._stream = stream
        self._store = store
        self._clock = clock
        self._tenure = tenure
        self._conduct = conduct
        self._follow = follow
        self._lease: Lease | None = None
        self.held: Store | None = None
        """The store under the stream's lease, while this is the one that conducts."""
        self.part = follow() if store.shared else self._sit(tenure.lease(stream))

    def _sit(self, lease: Lease | None) -> Part:
        self._lease = lease
        self.held = None if lease is None else self._store.under(lease)
        self.part = self._follow() if self.held is None else self._conduct(self.held)
        return self.part

    @property
    def complete(self) -> bool:
        return self.part.complete

    def advance(self) -> int:
        """Do all that is due; return when to call again, in milliseconds."""
        lease = self._tenure.lease(self._stream)
        if lease != self._lease:
            self._sit(lease)
        try:
            wake = self.part.advance()
        except Mistake as mistake:
            if mistake.problem is not Problem.LEASE_LOST or lease is None:
                raise
            self._tenure.drop(lease)
            self._sit(None)
            return self._clock.now_ms()
        # Others' reports may complete a round, and others may vanish: look now and then.
        return min(wake, self._clock.now_ms() + POLL_MS) if self._store.shared else wake
