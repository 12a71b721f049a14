"""A running collector: the store, its streams, and the threads that serve them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from ldpstream.collector.alerts.evaluator import PAGE, AlertEvaluator
from ldpstream.collector.alerts.evidence import LevelChange
from ldpstream.collector.alerts.rulebook import RuleBook
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.runner import AlertRunner
from ldpstream.collector.clock import Clock, ticks
from ldpstream.collector.config import Config, StreamConfig
from ldpstream.collector.credentials.device_keys import StreamKeys
from ldpstream.collector.credentials.masters import KeyRing
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.intake.queue import IntakeQueue, StreamIntake
from ldpstream.collector.leadership.lease_keeper import LeaseKeeper
from ldpstream.collector.leadership.scheduler import Scheduler
from ldpstream.collector.leadership.store_watch import StoreWatch
from ldpstream.collector.leadership.stream_driver import Role, StreamDriver
from ldpstream.collector.releases.paging import at_once
from ldpstream.collector.releases.retention import KEEP_ALL
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.follower import POLL_MS, Follower
from ldpstream.collector.rounds.notifications import NotificationHub
from ldpstream.collector.rounds.revised import RevisedHistory
from ldpstream.collector.rounds.selection import RosterSelection
from ldpstream.collector.service.administration import Administration
from ldpstream.collector.service.checking import check_releases
from ldpstream.collector.service.listener import StreamListener
from ldpstream.collector.service.meters import Meters
from ldpstream.collector.service.opening import open_store
from ldpstream.collector.service.retention import Pruner, RetentionKeeper
from ldpstream.collector.service.timekeeping import clock_of
from ldpstream.collector.store.contract import RoundState, Store
from ldpstream.collector.store.damage import reading_store
from ldpstream.collector.store.names import StoredNames
from ldpstream.errors import Problem
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.notice import Notice
from ldpstream.protocol.terms import Terms

LEASES_OF_SILENCE = 3
"""After so many a collector that hears nothing from a shared store is not ready."""

_log = logging.getLogger(__name__)


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
    refused: Counter[Problem] = field(default_factory=Counter)
    """Requests that were turned away as a whole."""
    renewed: int = 0
    """Keys that were renewed."""

    def reports_with_earlier_keys(self, since_ms: int) -> int | None:
        """How many reports of the last window came with a key of the earlier master secret.

        None if they have been counted for less than a window, since that time.
        """
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
    def most_labels(self) -> int:
        """The most figures that a release of any version has."""
        return max(len(terms.names) for terms in self.history.versions)

    def notice(self, terms: Terms | None, *, renew: bool = False) -> Notice:
        """Return what a device under these terms is told in every answer; None: under any."""
        now_ms = self.clock.now_ms()
        if terms is None:
            return Notice(now_ms, renew=renew)
        return self.history.notice(terms, now_ms, renew=renew)

    @property
    def roster(self) -> RosterSelection | None:
        selection = self.intake.selection
        return selection if isinstance(selection, RosterSelection) else None


class Service:
    """Everything but HTTP."""

    def __init__(
        self,
        config: Config,
        secrets: Secrets,
        clock: Clock | None = None,
        store: Store | None = None,
    ) -> None:
        self.config = config
        self.secrets = secrets
        self.meters = Meters()
        self.store = store or open_store(config, secrets)
        try:
            with reading_store(config.database or config.store):
                check_releases(self.store, [one.name for one in config.streams])
                self.clock = clock or clock_of(config, self.store)
                self._build()
        except BaseException:
            self.store.close()
            raise

    def _build(self) -> None:
        """Build what serves the streams, from where the store has them."""
        config = self.config
        self.store.observer = self.meters.store_changed
        self._began_ms = self.clock.now_ms()
        self.administration = Administration(self.store, self.secrets, self.clock)
        self.streams: dict[str, StreamService] = {}
        self.leases = LeaseKeeper(self.store, self._lease_seconds, self._lease_lost)
        listeners = {
            name: StreamListener(name, self.meters, partial(self._evaluate_alerts, name))
            for name in (one.name for one in config.streams)
        }
        self.scheduler = Scheduler(
            self.clock,
            {one.name: partial(self._driver, one, listeners[one.name]) for one in config.streams},
            StoreWatch(self.store) if self.store.shared else None,
            self.store.at_once,
        )
        self.rulebooks = {
            one.name: RuleBook(one.name, one.alerts, self.store, one.alert_rule)
            for one in config.streams
        }
        for one in config.streams:
            for rule in self.rulebooks[one.name].rules:
                if rule.label is not None and rule.label not in one.labels:
                    facts = {"stream": one.name, "alert": rule.name}
                    _log.warning("an alert rule is about a label that is gone", extra=facts)
        self.evaluators = {
            one.name: AlertEvaluator(
                one.name,
                self.rulebooks[one.name].rules,
                self.store,
                sends=config.webhook is not None,
                external_url=config.external_url,
                news=listeners[one.name].hub.alerted,
                page=at_once(len(one.labels), PAGE),
                find_changes=partial(self._changes, one.name),
                silenced_until=partial(self.administration.silenced_until, one.name),
            )
            for one in config.streams
        }
        self.alerts = AlertRunner(
            list(self.evaluators.values()),
            config.webhook,
            self._webhook_answered,
            held=self.held if self.store.shared else None,
            refresh=lambda name: self.rulebooks[name].refresh(),
        )
        self.retention = RetentionKeeper(self._pruners, self.clock)
        for name, book in self.rulebooks.items():
            book.changed = partial(self._rules_changed, name)
        intakes = {name: one.intake for name, one in self.streams.items()}
        self.intake = IntakeQueue(
            self.store, intakes, config.limits.waiting_bytes, self._reports_came, self._ingested
        )

    @property
    def ring(self) -> KeyRing:
        """The master secrets as they are now."""
        return self.administration.ring

    def reports_with_earlier_keys(self) -> dict[str, int | None]:
        """Reports of each stream's last window with a key of the earlier master secret.

        None: it is not known yet, since the rotation or the last start is less than a window ago.
        """
        since = max(self._began_ms, self.ring.masters.issued_ms)
        return {
            name: stream.reports_with_earlier_keys(since) for name, stream in self.streams.items()
        }

    def _driver(self, config: StreamConfig, listener: StreamListener) -> StreamDriver:
        """Build what drives a stream, from where the store has it."""

        def lead(held: Store) -> Role:
            return self._serve(Coordinator(config, held, self.clock, listener), listener)

        def follow() -> Role:
            follower = Follower(config, self.store, self.clock, listener)
            return self._serve(follower, listener)

        return StreamDriver(config.name, self.store, self.clock, self.leases, lead, follow)

    def _serve(self, role: Role, listener: StreamListener) -> Role:
        """Let the API see what a coordinator or follower has found in the store."""
        config, name, hub = role.config, role.config.name, listener.hub
        hub.history = role.history
        latest = self.store.releases(name, role.last_t, 1)
        if name not in self.streams:
            keys = StreamKeys(self.ring, name)
            denied = partial(self.administration.denied, name)
            intake = StreamIntake(keys, role.selection, Counter(), denied)
            delay = 3 * POLL_MS / 1000 if self.store.shared else 0.0
            names = StoredNames(self.store, name)
            revised = RevisedHistory(config, self.store)
            self.streams[name] = StreamService(
                config, hub, intake, self.clock, names, delay, revised
            )
            recent = self.store.rounds(name, role.last_t - config.window)
            hub.remember(one.name for one in recent if one.state is not RoundState.OPEN)
            if latest:
                hub.released(latest[0])
        elif role.last_t > hub.last_t:  # another collector has released before it was followed
            listener.released(latest[0])
        self.streams[name].intake.selection = role.selection
        return role

    @property
    def levels(self) -> frozenset[str]:
        """The names of the levels of privacy of any stream."""
        return frozenset(
            one.level
            for stream in self.streams.values()
            for terms in stream.history.versions
            for one in terms.strata
        )

    def held(self, stream: str) -> Store | None:
        """The store under the stream's lease, if this collector leads the stream."""
        return self.scheduler.drivers[stream].held

    def _pruners(self) -> Iterator[Pruner]:
        """Yield what prunes each stream with a retention that this collector leads."""
        for name, stream in list(self.streams.items()):
            held, retention = self.held(name), stream.config.retention
            if held is not None and retention != KEEP_ALL:
                yield Pruner(name, retention, stream.history, held)

    def _reports_came(self, asking: OpenRound) -> None:
        """Close a round at once when everyone who was asked has answered."""
        if self.store.shared:
            return  # the leader polls, wherever reports came in
        if self.scheduler.drivers[asking.stream].role.complete:
            self.scheduler.wake(asking.stream)

    def _lease_lost(self, stream: str) -> None:
        self.scheduler.wake(stream)

    def _evaluate_alerts(self, stream: str) -> None:
        self.alerts.wake(stream)

    def _rules_changed(self, stream: str, rules: tuple[Rule, ...]) -> None:
        self.evaluators[stream].use(rules)
        self.alerts.wake(stream)

    def _changes(self, stream: str, first_t: int, last_t: int) -> tuple[LevelChange, ...]:
        return self.streams[stream].revised.between(first_t, last_t).changes

    def silences_changed(self, stream: str) -> None:
        """Show that rules of a stream were silenced, or are not any more."""
        self.evaluators[stream].silences_changed()

    def _webhook_answered(self, stream: str, outcome: str) -> None:
        self.meters.webhook.labels(stream, outcome).inc()

    def _ingested(self, stream: str, seconds: float) -> None:
        self.meters.ingest.labels(stream).observe(seconds)

    def start(self) -> None:
        """Begin, within the running event loop."""
        for stream in self.streams.values():
            stream.hub.attach()
        self.intake.start()
        self.leases.start()
        self.administration.start()
        self.alerts.start()
        self.retention.start()
        self.scheduler.start()

    def release_waiting(self) -> None:
        """Let long polls and feeds end."""
        for stream in self.streams.values():
            stream.hub.stop()

    def stop(self) -> None:
        """Finish what is under way, then close the store."""
        self.release_waiting()
        self.scheduler.stop()
        self.intake.stop()
        self.alerts.stop()
        self.retention.stop()
        self.leases.stop()
        self.administration.stop()
        self.store.close()

    @property
    def ready(self) -> bool:
        fit = self.scheduler.alive and not self.ring.is_behind
        return fit and not self.failures and self.clock.doubt is None

    @property
    def failures(self) -> dict[str, str]:
        """Why streams cannot go on, by name."""
        trouble = self.store.trouble()
        if trouble is not None:
            return dict.fromkeys(self.streams, trouble)
        found = self.scheduler.failures
        if self.store.shared:
            for name in self.streams.keys() - found.keys():
                silence = self._silence(name)
                if silence > LEASES_OF_SILENCE * self._lease_seconds:
                    found[name] = f"the store has said nothing of it for {silence:.0f} s"
        return found

    def sees(self, stream: str, since: float) -> bool:
        """Whether all that others had done with a stream by then (in ticks) is known here."""
        if stream in self.scheduler.failures:
            return False
        if not self.store.shared:
            return True
        in_touch = self._silence(stream) <= self._lease_seconds
        return in_touch and self.scheduler.looked[stream] >= since

    def _silence(self, stream: str) -> float:
        """Seconds since a shared store was last heard of a stream.

        A leader may count for long, or wait, without asking it for more than the lease.
        """
        confirmed = self.leases.confirmed(stream)
        return ticks() - (self.scheduler.looked[stream] if confirmed is None else confirmed)

    @property
    def _lease_seconds(self) -> float:
        return self.config.lease_ms / 1000
