"""The reactions of this process to changes of a stream: metrics, log, notifications."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ldpstream.collector.rounds.announcement import AnnouncedRounds
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.rounds.notifications import NotificationHub
from ldpstream.collector.service.meters import Meters
from ldpstream.collector.service.recent_responses import RecentResponses
from ldpstream.collector.store.contract import NewRound, RoundState, StoredRelease
from ldpstream.protocol.strata import STANDARD
from ldpstream.protocol.terms import Terms

_log = logging.getLogger(__name__)


class StreamListener(Listener):
    """Counts what this collector does with a stream, and notifies all that wait for news of it."""

    def __init__(
        self, stream: str, window: int, meters: Meters, evaluate_alerts: Callable[[], None]
    ) -> None:
        self._stream = stream
        self._meters = meters
        self._evaluate_alerts = evaluate_alerts
        self.hub = NotificationHub()
        self.recent = RecentResponses(window)

    def announced(self, announcement: AnnouncedRounds) -> None:
        self.hub.announced(announcement)

    def changed(self, changed: NewRound, state: RoundState) -> None:
        self._meters.rounds.labels(self._stream, changed.purpose, state.value).inc()

    def counted(self, stratum: Terms, reports: int) -> None:
        level = stratum.level or STANDARD
        labels = (self._stream, str(stratum.version), level)
        self._meters.counted.labels(*labels).inc(reports)

    def committed(self, releases: Sequence[StoredRelease]) -> None:
        for one in releases:
            self.recent.add(one)
            self._meters.releases.labels(self._stream, one.kind).inc()
            self._meters.asked.labels(self._stream).inc(one.asked)
        last = releases[-1]
        facts = {"stream": self._stream, "t": last.t, "kind": last.kind, "number": len(releases)}
        _log.info("released", extra=facts | {"asked": last.asked, "received": last.received})
        self.released(last)

    def released(self, latest: StoredRelease) -> None:
        self.recent.add(latest)
        self.hub.released(latest)
        self._evaluate_alerts()
