"""Leases of the streams that this process leads: taken, renewed in time, and given back."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Callable

from ldpstream.collector.clock import ticks
from ldpstream.collector.periodic import PeriodicThread
from ldpstream.collector.store.contract import Lease, Store

RENEWALS = 3
"""Renewals in the time of a lease: two may fail before another collector takes over."""

_log = logging.getLogger(__name__)


class LeaseKeeper:
    """Takes leases for the scheduler's thread, and renews them in a thread of its own.

    So a tally that takes longer than a lease does not lose it. That a lease is held, as this object
    believes, proves nothing: the store checks the fencing token with every change under it.
    """

    def __init__(
        self, store: Store, seconds: float, lost: Callable[[str], None] = lambda stream: None
    ) -> None:
        self._store = store
        self._lost = lost
        """Called with the stream whose lease another collector has taken."""
        self._seconds = seconds
        self.holder = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._held: dict[str, Lease] = {}
        self._confirmed: dict[str, float] = {}
        """When leases that are held here were last taken or renewed, in ticks."""
        self._next_attempt: dict[str, float] = {}
        self._thread = PeriodicThread("lease", self.pause, self._renew)

    @property
    def pause(self) -> float:
        """Seconds between renewals, and between attempts to take a lease that another has."""
        return self._seconds / RENEWALS

    def start(self) -> None:
        if self._store.shared:
            self._thread.start()

    def lease(self, stream: str) -> Lease | None:
        """The stream's lease, if it is held here or can be taken now."""
        held = self._held.get(stream)
        if held is None and ticks() >= self._next_attempt.get(stream, 0):
            asked = ticks()
            held = self._store.lease(stream, self.holder, self._seconds)
            self._next_attempt[stream] = ticks() + self.pause
            if held is not None:
                self._confirmed[stream] = asked
                self._held[stream] = held
                _log.info("leading", extra={"stream": stream})
        return held

    def confirmed(self, stream: str) -> float | None:
        """Return when, in ticks, the store last agreed that the stream's lease is held here."""
        return self._confirmed.get(stream) if stream in self._held else None

    def drop(self, lease: Lease) -> None:
        """Forget a lease that another collector has taken."""
        if self._held.get(lease.stream) == lease:
            del self._held[lease.stream]
            _log.warning("another collector leads now", extra={"stream": lease.stream})
            self._lost(lease.stream)

    def stop(self) -> None:
        """Stop renewing, and give all leases back, so that others can take over at once."""
        self._thread.stop()
        for lease in list(self._held.values()):
            try:
                self._store.give_back(lease)
            except Exception:
                _log.exception("the lease of %s was not given back; it will expire", lease.stream)

    def _renew(self) -> None:
        held, asked = list(self._held.values()), ticks()
        try:
            renewed = self._store.renew(held, self._seconds) if held else set()
        except Exception:
            _log.exception("the leases of %s stream(s) could not be renewed", len(held))
            return
        for lease in held:
            if lease in renewed:
                self._confirmed[lease.stream] = asked
            else:
                self.drop(lease)
