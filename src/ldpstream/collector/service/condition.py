"""The condition of a stream in one word: the one place that decides it.

`judge` is a pure function of facts. The API, the page, metrics, the log and `ldpstream status` show
what it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ldpstream.durations import spelled
from ldpstream.protocol.notice import Halt

GRACE_MS = 2000
"""How much later than planned a release may come, besides an interval (but see MOST_GRACE_MS)."""
MOST_GRACE_MS = 60_000
"""The most that counts of a long interval."""
SURELY_HEARD = 20
"""Reports that must be planned for none at all to mean that the fleet is silent, not chance."""
LEAST_SILENT = 2
"""Timestamps without a report, at least, before a fleet counts as silent."""
FEW = 0.5
"""A stream is thin if less than this part of the reports came that were planned."""
WIDE = 0.5
"""It is also thin if an interval takes up more than this part of all values that are possible."""


class StreamState(StrEnum):
    """The condition of a stream."""

    WAITING = "waiting"
    """For its first report."""
    LIVE = "live"
    THIN = "thin"
    """Its figures say little: few reports, or wide intervals."""
    SILENT = "silent"
    """Reports came, and come no more."""
    BEHIND = "behind"
    """An engine or the store is late."""
    PAUSED = "paused"
    RETIRED = "retired"
    FAILING = "failing"
    """It cannot go on."""

    @property
    def is_intended(self) -> bool:
        """Whether the operator wants it so."""
        return self in (StreamState.LIVE, StreamState.PAUSED, StreamState.RETIRED)

    @property
    def is_broken(self) -> bool:
        """Whether the collector, its store or its engine is at fault, and not the fleet."""
        return self in (StreamState.BEHIND, StreamState.FAILING)


@dataclass(frozen=True)
class ResponseCount:
    """How many reports were planned at a timestamp, and how many came."""

    t: int
    asked: int
    received: int


@dataclass(frozen=True)
class StreamFacts:
    """What the condition of a stream follows from."""

    now_ms: int
    interval_ms: int
    due_ms: int
    """When the first timestamp that is not released yet should have been."""
    last_t: int
    """The last release."""
    heard_t: int
    """The last timestamp with a report; 0: there was none."""
    recent: Sequence[ResponseCount] = ()
    """The timestamps of the last window at which somebody was to report, in order."""
    widest: float = 0.0
    """The widest interval of the last release, as a part of all values that are possible."""
    halt: Halt | None = None
    failure: str | None = None
    counting_t: int | None = None
    """The timestamp that an engine has not counted yet, if one is waited for."""


@dataclass(frozen=True)
class StreamCondition:
    """A stream's state, why it is in it, and how late it is."""

    state: StreamState
    why: str
    behind_ms: int = 0

    def to_json(self) -> dict[str, str | float]:
        return {
            "state": self.state.value,
            "why": self.why,
            "behind_seconds": self.behind_ms / 1000,
        }


def judge(facts: StreamFacts) -> StreamCondition:
    """Return the condition of a stream: the first that applies, the gravest first."""
    if facts.failure is not None:
        return StreamCondition(StreamState.FAILING, facts.failure)
    if facts.halt is Halt.RETIRED:
        last = f" with t={facts.last_t}" if facts.last_t else ""
        return StreamCondition(StreamState.RETIRED, f"it has ended{last}")
    if facts.halt is Halt.PAUSED:
        since = f", since t={facts.last_t}" if facts.last_t else ""
        return StreamCondition(StreamState.PAUSED, f"nobody reports until it is resumed{since}")
    return _behind(facts) or _heard(facts)


def _behind(facts: StreamFacts) -> StreamCondition | None:
    late_ms = facts.now_ms - facts.due_ms
    if late_ms <= GRACE_MS + min(facts.interval_ms, MOST_GRACE_MS):
        return None
    who = "the store" if facts.counting_t is None else "an engine that counts reports"
    timestamps = 1 + late_ms // facts.interval_ms
    late = spelled(late_ms // 1000 * 1000)
    why = f"{timestamps} timestamps ({late}) late after t={facts.last_t}: {who} is late"
    return StreamCondition(StreamState.BEHIND, why, late_ms)


def _heard(facts: StreamFacts) -> StreamCondition:
    """Judge a stream that is neither late nor halted by the reports that it gets."""
    if not facts.heard_t:
        return StreamCondition(StreamState.WAITING, "no report has come yet")
    unanswered = [one for one in facts.recent if one.t > facts.heard_t]
    planned, whole = sum(one.asked for one in unanswered), len(unanswered) == len(facts.recent)
    if len(unanswered) >= LEAST_SILENT and (planned >= SURELY_HEARD or whole):
        since = facts.last_t - facts.heard_t
        return StreamCondition(StreamState.SILENT, f"no report has come for {since} timestamps")
    received = sum(one.received for one in facts.recent)
    asked = sum(one.asked for one in facts.recent)
    if asked >= SURELY_HEARD and received < FEW * asked:
        why = f"{received} reports came of {asked} that were planned"
        return StreamCondition(StreamState.THIN, why)
    if facts.widest > WIDE:
        return StreamCondition(
            StreamState.THIN, f"an interval is {facts.widest:.0%} of all values wide"
        )
    return StreamCondition(
        StreamState.LIVE, f"{received} reports came of {asked} that were planned"
    )
