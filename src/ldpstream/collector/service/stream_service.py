"""One stream of a running collector, as the API sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ldpstream.collector.clock import Clock
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.intake.queue import StreamIntake
from ldpstream.collector.rounds.notifications import NotificationHub
from ldpstream.collector.rounds.revised import RevisedHistory
from ldpstream.collector.rounds.selection import RosterSelection
from ldpstream.collector.rounds.text_figures import TextFigures
from ldpstream.collector.service.condition import StreamFacts
from ldpstream.collector.service.recent_responses import RecentResponses
from ldpstream.collector.store.contract import EngineProgress
from ldpstream.collector.store.groups import most_figures
from ldpstream.collector.store.names import StoredNames
from ldpstream.errors import Mistake, Problem
from ldpstream.numeric import Range
from ldpstream.numeric.range import MEAN, BinnedRange
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.notice import Halt, Notice
from ldpstream.protocol.terms import Terms, Values

MIDDLE = ("p10", "p50", "p90", MEAN)
"""The figures of a distribution whose intervals say whether enough is known of it."""


@dataclass
class StreamService:
    """One stream, as the API sees it."""

    config: StreamConfig
    hub: NotificationHub
    intake: StreamIntake
    clock: Clock
    names: StoredNames
    """The names of what is released, by the terms of each release."""
    news_seconds: float
    """How long it may take until a round that another collector opened is known here."""
    revised: RevisedHistory
    texts: TextFigures
    recent: RecentResponses
    """How its last timestamps were answered."""
    begun_ms: int = 0
    """Since when it is driven with its present settings."""
    engine: EngineProgress | None = None
    """How far an engine has come that counts its reports, if there is one."""
    refused: Counter[Problem] = field(default_factory=Counter)
    """Requests with reports that were turned away as a whole."""
    refused_requests: Counter[Problem] = field(default_factory=Counter)
    """All others that were turned away: enrolments, readers, calls of administrators."""
    renewed: int = 0
    """Keys that were renewed."""

    def reports_with_earlier_keys(self, since_ms: int) -> int | None:
        """Return how many reports of the last window came with a key of the earlier master secret.

        None if they have been counted for less than a window, since that time. Of a stream that has
        ended none will come.
        """
        if self.config.halt is Halt.RETIRED:
            return 0
        last_t, window = self.hub.last_t, self.terms.window
        if self.terms.start_of(last_t + 1 - window) < since_ms:
            return None
        return self.intake.earlier_since(last_t - window)

    @property
    def history(self) -> TermsHistory:
        """All versions of its terms."""
        return self.hub.history

    @property
    def terms(self) -> Terms:
        """The terms that are in force now."""
        history = self.history
        return history.at(history.first.timestamp_at(self.clock.now_ms()))

    @property
    def figures(self) -> int:
        """The most figures that a release of any version has."""
        return most_figures(self.history.versions)

    def notice(self, terms: Terms | None, *, renew: bool = False) -> Notice:
        """Return what a device under these terms is told in every answer, or any device if None."""
        now_ms = self.clock.now_ms()
        if terms is None:
            return Notice(now_ms, renew=renew, halt=self.config.halt)
        return self.history.notice(terms, now_ms, renew=renew, halt=self.config.halt)

    def refuse_halted(self) -> None:
        """Refuse a report to a stream that takes none for now, or any more."""
        halt = self.config.halt
        if halt is not None:
            kind = Problem.STREAM_RETIRED if halt is Halt.RETIRED else Problem.STREAM_PAUSED
            raise Mistake(kind, stream=self.config.name)

    @property
    def population(self) -> int:
        """How many devices are expected, by the last release if it follows the fleet."""
        devices = {} if self.hub.latest is None else self.hub.latest.content.get("devices", {})
        expected: int = devices.get("expected", self.config.population)
        return expected if self.config.follows_fleet else self.config.population

    def facts(self, failure: str | None, counting_t: int | None) -> StreamFacts:
        """Return what its condition follows from."""
        latest, terms, last_t = self.hub.latest, self.terms, self.hub.last_t
        awaited = max(last_t + 1, terms.timestamp_at(self.begun_ms) + 1)
        uncounted = self.engine is not None and self.engine.waiting > 0
        return StreamFacts(
            now_ms=self.clock.now_ms(),
            interval_ms=terms.interval_ms,
            due_ms=terms.start_of(awaited + 1),
            last_t=last_t,
            heard_t=self.recent.heard_t(latest),
            recent=self.recent.at(last_t),
            widest=0.0 if latest is None else widest(latest.content, self.config.values),
            halt=self.config.halt,
            failure=failure,
            counting_t=last_t + 1 if counting_t is None and uncounted else counting_t,
        )

    @property
    def roster(self) -> RosterSelection | None:
        selection = self.intake.selection
        return selection if isinstance(selection, RosterSelection) else None


def widest(content: Mapping[str, Any], values: Values) -> float:
    """Return the widest interval of a release, as a part of all values that are possible.

    Of texts it is that of the rest, which there always is; of a distribution those of the middle
    count, since that of p99 is wide as long as little is known of a hundredth of the devices.
    """
    if "rest" in content:
        return float(content["rest"]["high"] - content["rest"]["low"])
    whole = values.high - values.low if isinstance(values, Range) else 1.0
    ends = list(zip(content["low"], content["high"], strict=True))
    if isinstance(values, BinnedRange):
        ends = [end for end, name in zip(ends, values.names, strict=True) if name in MIDDLE]
    return float(max(high - low for low, high in ends) / whole)
