"""The thread that prunes what is older than a stream's `retention`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ldpstream.collector.clock import Clock
from ldpstream.collector.periodic import PeriodicThread
from ldpstream.collector.releases.paging import at_once
from ldpstream.collector.releases.retention import Retention, combined, day_of, summary_of
from ldpstream.collector.store.contract import ReleaseSummary, Store, StoredRelease
from ldpstream.collector.store.groups import most_figures
from ldpstream.protocol.history import TermsHistory

PAUSE_SECONDS = 60.0
PAGE = 1000

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pruner:
    """Prunes one stream, whose store is held under its lease."""

    stream: str
    retention: Retention
    history: TermsHistory
    store: Store
    reach: int = 0
    """The timestamps up to the last release whose rounds are needed, if not those of a window."""

    def prune(self, now_ms: int, stops: Callable[[], bool] = lambda: False) -> None:
        """Remove all that is too old, an hour in each transaction, until it `stops`."""
        while not stops() and self._prune_hour(now_ms):
            pass
        known = self.store.summaries(self.stream)
        for hours in self.retention.days_to_merge(known, now_ms):
            if stops():
                return
            gone = [one.first_t for one in hours]
            self.store.prune(self.stream, 0, [day_of(hours)], gone)
        gone = self.retention.gone(self.store.summaries(self.stream), now_ms)
        if gone:
            self.store.prune(self.stream, 0, gone=gone)
            self._tell("summaries are gone", number=len(gone))

    def _prune_hour(self, now_ms: int) -> bool:
        """Summarise and remove the oldest hour of releases; return whether there was one."""
        oldest, stored = self.store.releases(self.stream, 0, 1), self.store.stream(self.stream)
        if not oldest or stored is None:
            return False
        first_t, last_t = oldest[0].t, stored.last_t - max(self.reach, self.history.longest_window)
        until_t = self.retention.hour_to_prune(self.history.first, first_t, last_t, now_ms)
        if until_t is None:
            return False
        summaries = self._summaries(first_t, until_t)
        self.store.prune(self.stream, until_t + 1, summaries)
        self._tell("releases are pruned", t=until_t)
        return True

    def _summaries(self, first_t: int, until_t: int) -> list[ReleaseSummary]:
        """Return the summaries of some releases, one for each version of the terms."""
        found: list[ReleaseSummary] = []
        for release in self._between(first_t, until_t):
            one = summary_of(release, self.history.first)
            if found and found[-1].content["terms_version"] == release.terms_version:
                found[-1] = combined(found[-1], one)
            else:
                found.append(one)
        return found

    def _between(self, first_t: int, until_t: int) -> Iterator[StoredRelease]:
        page = at_once(most_figures(self.history.versions), PAGE)
        while first_t <= until_t:
            found = self.store.releases(self.stream, first_t, page)
            yield from (one for one in found if one.t <= until_t)
            first_t = found[-1].t + 1 if found else until_t + 1

    def _tell(self, what: str, **facts: int) -> None:
        _log.info(what, extra={"stream": self.stream, **facts})


class RetentionKeeper:
    """Prunes, now and then, the streams that this collector leads."""

    def __init__(self, pruners: Callable[[], Iterable[Pruner]], clock: Clock) -> None:
        self._pruners = pruners
        self._clock = clock
        self._thread = PeriodicThread("retention", PAUSE_SECONDS, self._prune, at_once=True)
        self.start, self.stop = self._thread.start, self._thread.stop

    def _prune(self) -> None:
        for one in self._pruners():
            if self._thread.is_stopping:
                break
            try:
                one.prune(self._clock.now_ms(), lambda: self._thread.is_stopping)
            except Exception:
                _log.exception("stream %s could not be pruned", one.stream)
