"""The driver of one stream: it leads while this process holds the lease, and follows otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ldpstream.collector.clock import Clock
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.leadership.lease_keeper import LeaseKeeper
from ldpstream.collector.rounds.follower import POLL_MS
from ldpstream.collector.rounds.selection import Selection
from ldpstream.collector.store.contract import Lease, Store
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.history import TermsHistory


class Role(Protocol):
    """A coordinator, which leads a stream, or a follower."""

    history: TermsHistory
    last_t: int

    @property
    def config(self) -> StreamConfig:
        """The stream as the file and its stored terms describe it."""

    @property
    def selection(self) -> Selection: ...

    @property
    def complete(self) -> bool: ...

    @property
    def at_rest(self) -> bool: ...

    @property
    def counting_t(self) -> int | None: ...

    @property
    def polls(self) -> bool: ...

    def advance(self) -> int: ...


class StreamDriver:
    """Changes between the two roles as the lease comes and goes. Each starts from the store."""

    def __init__(
        self,
        stream: str,
        store: Store,
        clock: Clock,
        leases: LeaseKeeper,
        lead: Callable[[Store], Role],
        follow: Callable[[], Role],
    ) -> None:
        self._stream = stream
        self._store = store
        self._clock = clock
        self._leases = leases
        self._lead = lead
        self._follow = follow
        self._lease: Lease | None = None
        self.held: Store | None = None
        """The store under the stream's lease, while this process leads the stream."""
        self.role = follow() if store.shared else self._change(leases.lease(stream))

    def _change(self, lease: Lease | None) -> Role:
        self._lease = lease
        self.held = None if lease is None else self._store.under(lease)
        self.role = self._follow() if self.held is None else self._lead(self.held)
        return self.role

    def advance(self) -> int:
        """Do all that is due; return when to call again, in milliseconds."""
        lease = self._leases.lease(self._stream)
        if lease != self._lease:
            self._change(lease)
        try:
            next_ms = self.role.advance()
        except Mistake as mistake:
            if mistake.problem is not Problem.LEASE_LOST or lease is None:
                raise
            self._leases.drop(lease)
            self._change(None)
            return self._clock.now_ms()
        # Reports at other collectors may complete a round. All else is seen by a `StoreWatch`.
        polls = self._store.shared and self.role.polls
        return min(next_ms, self._clock.now_ms() + POLL_MS) if polls else next_ms
