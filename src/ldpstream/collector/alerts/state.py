"""The states of an alert, as Prometheus has them. No clock, no threads, no I/O.

    inactive ──► pending ──► firing ──► resolved ──► inactive
        ▲            │          ▲            │
        └────────────┘          └─ pending ◄─┘

An alert is pending while its condition holds and `for` is not over; a pending one whose condition
ends is inactive at once. A firing one goes on for `keep_firing_for` after its condition has ended,
and is then resolved. After 15 minutes nobody needs to be told so any more, and it is inactive.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

RETENTION_MS = 15 * 60_000


class AlertState(StrEnum):
    """The states of an alert."""

    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True)
class Alert:
    """An alert at one moment; times are in milliseconds since the epoch.

    >>> alert = Alert().after(True, 0, hold_ms=10, keep_firing_ms=0)
    >>> alert.state.value, alert.after(True, 10, hold_ms=10, keep_firing_ms=0).state.value
    ('pending', 'firing')
    """

    state: AlertState = AlertState.INACTIVE
    active_ms: int | None = None
    """Since when the condition holds, or held."""
    fired_ms: int | None = None
    ended_ms: int | None = None
    """Since when the condition of a firing alert no longer holds."""
    resolved_ms: int | None = None

    def after(self, holds: bool, now_ms: int, *, hold_ms: int, keep_firing_ms: int) -> Alert:
        """The alert after its condition was evaluated."""
        if not holds:
            return self._without(now_ms, keep_firing_ms)
        match self.state:
            case AlertState.FIRING:
                return Alert(AlertState.FIRING, self.active_ms, self.fired_ms)
            case AlertState.PENDING:
                since = now_ms if self.active_ms is None else self.active_ms
            case _:
                since = now_ms
        if now_ms - since >= hold_ms:
            return Alert(AlertState.FIRING, since, now_ms)
        return Alert(AlertState.PENDING, since)

    def _without(self, now_ms: int, keep_firing_ms: int) -> Alert:
        match self.state:
            case AlertState.FIRING:
                since = now_ms if self.ended_ms is None else self.ended_ms
                if now_ms - since < keep_firing_ms:
                    return Alert(AlertState.FIRING, self.active_ms, self.fired_ms, since)
                return self.ended(now_ms)
            case AlertState.RESOLVED if now_ms - (self.resolved_ms or 0) <= RETENTION_MS:
                return self
            case _:
                return Alert()

    @property
    def since_ms(self) -> int | None:
        """The time at which it came into its state."""
        match self.state:
            case AlertState.PENDING:
                return self.active_ms
            case AlertState.FIRING:
                return self.fired_ms
            case AlertState.RESOLVED:
                return self.resolved_ms
            case AlertState.INACTIVE:
                return None

    def ended(self, now_ms: int) -> Alert:
        """The alert at its end: resolved if it was firing, otherwise inactive."""
        if self.state is not AlertState.FIRING:
            return Alert()
        ended = now_ms if self.ended_ms is None else self.ended_ms
        return Alert(AlertState.RESOLVED, self.active_ms, self.fired_ms, ended, now_ms)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Alert:
        return cls(**saved | {"state": AlertState(saved["state"])})
