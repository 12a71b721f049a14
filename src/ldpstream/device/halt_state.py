"""Streams that are paused or retired: what a device hears of it, and when it asks again.

Nothing is drawn or spent for a stream that takes no reports. A device cannot be called, so it asks
before its next turn whether a paused stream was resumed; it hardly ever asks a retired one.
"""

from __future__ import annotations

from ldpstream.device.account import Account
from ldpstream.protocol.notice import Halt, Notice

RETIRED_WINDOWS = 64
"""After so many windows a device asks whether a retired stream goes on after all: somebody may have
retired it by mistake, or said so in the collector's name."""


class HaltState:
    """What the notices of one stream say of a pause or its end."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._clock = account.wallet.clock
        self._not_before_ms = 0
        self.halt: Halt | None = None
        """Why the stream takes no reports, as far as this device has heard."""

    def hear(self, notice: Notice) -> None:
        """Remember what an answer says."""
        self.halt = notice.halt
        if notice.halt is Halt.RETIRED and self._account.enrolment is not None:
            span = self._account.enrolled.terms.promise.span
            self._not_before_ms = self._clock.steady_ms() + RETIRED_WINDOWS * span

    @property
    def rests_ms(self) -> int:
        """How long to wait, in milliseconds, because the stream is retired."""
        if self.halt is not Halt.RETIRED:
            return 0
        return max(0, self._not_before_ms - self._clock.steady_ms())
