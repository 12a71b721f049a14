"""The costs of a stream to its devices and its collector."""

from __future__ import annotations

from dataclasses import dataclass

from ldpstream.durations import DAY_MS
from ldpstream.lab.planning.outcome import PlanOutcome
from ldpstream.mechanisms.registry import usual_selection
from ldpstream.protocol.terms import SelectionMethod

REPORT_OVERHEAD = 640
"""Bytes around one report on a connection that is kept alive: 280 of request line and headers,
110 of response, 44 of TLS records, four packets of 52."""
POLL_OVERHEAD = 850
"""Bytes of one request for rounds: 190 of request, 110 of response headers, 300 of announcement,
44 of TLS records, four packets of 52."""
POLL_SECONDS = 30
"""How long a request for rounds waits at most (docs/protocol.md)."""


def wire_bytes(outcome: PlanOutcome) -> int:
    """Return the bytes of one report with its overhead."""
    return outcome.report_bytes + REPORT_OVERHEAD


@dataclass(frozen=True)
class Cost:
    """The effort behind an outcome when a timestamp lasts `interval_ms`."""

    reports_per_day: float
    """Reports of one device."""
    bytes_per_day: float
    """Bytes of one device for its reports: in both directions, HTTP included."""
    listening_bytes_per_day: float
    """Bytes of one device to hear of rounds, a lower bound; 0 with slots, where nobody asks."""
    peak_per_second: float
    """Reports that reach the collector, spread over the busiest timestamp."""

    @classmethod
    def of(cls, outcome: PlanOutcome, interval_ms: int) -> Cost:
        """Return the cost of an outcome.

        >>> from ldpstream.lab.planning.outcome import OutcomeSource
        >>> lpu = PlanOutcome("lpu", "grr", 0.1, 0, 0.1, 0.05, 5000, 1, 2, OutcomeSource.FORMULA)
        >>> cost = Cost.of(lpu, interval_ms=60_000)
        >>> cost.reports_per_day, cost.bytes_per_day, round(cost.peak_per_second)
        (72.0, 46224.0, 83)
        """
        reports = outcome.reports * DAY_MS / interval_ms
        polls = max(DAY_MS / interval_ms, DAY_MS / 1000 / POLL_SECONDS)
        unasked = usual_selection(outcome.mechanism) is SelectionMethod.SLOTS
        return cls(
            reports,
            reports * wire_bytes(outcome),
            0.0 if unasked else polls * POLL_OVERHEAD,
            outcome.busiest * 1000 / interval_ms,
        )
