"""A running collector: the store, its streams, and the threads that serve them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from ldpstream.collector.alerts.evaluator import PAGE, AlertEvaluator
from ldpstream.collector.alerts.evidence import LevelChange
from ldpstream.collector.alerts.rulebook import RuleBook
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.runner import AlertRunner
from ldpstream.collector.clock import Clock, ticks
from ldpstream.collector.config import Config, Limits, StreamConfig, load
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
from ldpstream.collector.rounds.loading import settled
from ldpstream.collector.rounds.revised import RevisedHistory
from ldpstream.collector.rounds.text_figures import TextFigures
from ldpstream.collector.service.administration import OPERATION, Administration
from ldpstream.collector.service.checking import check_releases
from ldpstream.collector.service.condition import StreamCondition, judge
from ldpstream.collector.service.listener import StreamListener
from ldpstream.collector.service.meters import Meters
from ldpstream.collector.service.opening import open_store
from ldpstream.collector.service.recent_responses import MOST_RECENT
from ldpstream.collector.service.reloading import Reload, applied, plan
from ldpstream.collector.service.retention import Pruner, RetentionKeeper
from ldpstream.collector.service.stream_service import StreamService
from ldpstream.collector.service.timekeeping import clock_of
from ldpstream.collector.service.warm_up import warm_up
from ldpstream.collector.service.watch import ConditionWatch
from ldpstream.collector.store.contract import RoundState, Store
from ldpstream.collector.store.damage import reading_store
from ldpstream.collector.store.groups import most_figures
from ldpstream.collector.store.names import StoredNames
from ldpstream.errors import LdpStreamError, Mistake, Problem

LEASES_OF_SILENCE = 3
"""Durations of a lease after which a collector that hears nothing from its store is not ready."""

_log = logging.getLogger(__name__)


class Service:
    """A running collector without HTTP: what the API, and what serves it, call."""

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
        self.uses_limits: list[Callable[[Limits], None]] = []
        """Are called with the limits of a file that was read again."""
        self._changing = threading.RLock()
        """Held while streams are changed or added."""
        self._loop: asyncio.AbstractEventLoop | None = None
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
        self._intakes: dict[str, StreamIntake] = {}
        self._paused = self._paused_of(config.streams)
        self._listeners = {one.name: self._listener(one) for one in config.streams}
        self.scheduler = Scheduler(
            self.clock,
            {one.name: self._maker(one) for one in config.streams},
            StoreWatch(self.store) if self.store.shared else None,
            self.store.at_once,
        )
        self.rulebooks: dict[str, RuleBook] = {}
        self.evaluators: dict[str, AlertEvaluator] = {}
        self.alerts = AlertRunner(
            [self._add_alerts(one) for one in config.streams],
            config.webhook,
            self._webhook_answered,
            held=self.held if self.store.shared else None,
            refresh=lambda name: self.rulebooks[name].refresh(),
        )
        self.retention = RetentionKeeper(self._pruners, self.clock)
        limit = config.limits.waiting_bytes
        self.intake = IntakeQueue(
            self.store, self._intakes, limit, self._reports_came, self._ingested
        )
        self.watch = ConditionWatch(self._look_at_engines, self.conditions)
        self.administration.changed = self._administrators_decided

    def _listener(self, stream: StreamConfig) -> StreamListener:
        return StreamListener(
            stream.name, stream.window, self.meters, partial(self._evaluate_alerts, stream.name)
        )

    def _maker(self, stream: StreamConfig) -> Callable[[], StreamDriver]:
        """Return what builds the driver of a stream, as the file and administrators want it."""
        return partial(self._driver, self._wanted(stream), self._listeners[stream.name])

    def _wanted(self, stream: StreamConfig) -> StreamConfig:
        return replace(stream, paused=stream.paused or stream.name in self._paused)

    def _add_alerts(self, stream: StreamConfig) -> AlertEvaluator:
        """Add the rules and alerts of a stream."""
        book = RuleBook(stream.name, stream.alerts, self.store, stream.alert_rule)
        for rule in book.rules:
            if stream.missing(rule) is not None:
                facts = {"stream": stream.name, "alert": rule.name}
                _log.warning("an alert rule is about a label or a group that is gone", extra=facts)
        evaluator = AlertEvaluator(
            stream.name,
            book.rules,
            self.store,
            sends=self.config.webhook is not None,
            external_url=self.config.external_url,
            news=self._listeners[stream.name].hub.alerted,
            page=at_once(stream.figures, PAGE),
            find_changes=partial(self._changes, stream.name),
            silenced_until=partial(self.administration.silenced_until, stream.name),
        )
        book.changed = partial(self._rules_changed, stream.name)
        self.rulebooks = {**self.rulebooks, stream.name: book}
        self.evaluators = {**self.evaluators, stream.name: evaluator}
        return evaluator

    # Changes while it runs

    def reload(self, who: str) -> Reload:
        """Read the configuration file again, and use what can be changed; all of it or nothing.

        What is told is also in the log of administrators. New streams begin first, since that may
        fail.
        """
        with self._changing:
            new = load(self.config.file)
            planned = plan(self.config, new, self.store, self.clock.now_ms())
            if planned.refused:
                return planned
            try:
                self._begin_all([one for one in new.streams if one.name not in self.streams])
            except LdpStreamError as error:
                return replace(planned, refused=(str(error),))
            self._use(applied(self.config, new))
            self.administration.record(who, "reload", planned.to_json())
        return planned

    def _begin_all(self, fresh: list[StreamConfig]) -> None:
        """Serve streams that the file had not before; all of them or none."""
        if fresh:
            warm_up(fresh)
        begun = []
        try:
            for one in fresh:
                begun.append(one.name)
                self._begin(one)
        except BaseException:
            for name in begun:
                self._forget(name)
            raise

    def _forget(self, stream: str) -> None:
        """Stop serving a stream; its data stays in the store."""
        self.alerts.remove(stream)
        self.scheduler.remove(stream)
        self.streams = {name: one for name, one in self.streams.items() if name != stream}
        for known in (self._intakes, self._listeners):
            known.pop(stream, None)
        self._paused.discard(stream)

    def _use(self, new: Config) -> None:
        old = {one.name: one for one in self.config.streams}
        self.config = new
        for use in (self._use_limits, *self.uses_limits):
            use(new.limits)
        for one in new.streams:
            if one != old.get(one.name, one):
                self._change(one)
                self.rulebooks[one.name].use(one.alerts, one.alert_rule)

    def _use_limits(self, limits: Limits) -> None:
        self.intake.most_bytes = limits.waiting_bytes

    def _begin(self, stream: StreamConfig) -> None:
        """Serve a stream that the file had not before."""
        self._paused |= self._paused_of([stream])
        self._listeners[stream.name] = self._listener(stream)
        self.scheduler.add(stream.name, self._maker(stream))
        self.alerts.add(self._add_alerts(stream))
        if self._loop is not None:
            self.streams[stream.name].hub.attach(self._loop)

    def _change(self, stream: StreamConfig) -> None:
        """Serve a stream with other settings: what devices hear at once, the rest when at rest."""
        found = self.streams[stream.name]
        if stream.follows_fleet:  # from the population that is known
            stream = replace(stream, population=found.config.population)
        wanted = self._wanted(stream)
        if found.config.halt is not None and wanted.halt is None:
            found.begun_ms = self.clock.now_ms()  # what was not released in a pause is not late
        found.config = settled(wanted, found.history.latest)
        self.scheduler.replace(stream.name, self._maker(stream))

    def pause(self, who: str, stream: str, *, paused: bool) -> None:
        """Pause a stream, or resume it; it stays so over restarts, at every collector."""
        with self._changing:
            if not paused and self._file_of(stream).halt is not None:
                raise Mistake(Problem.PAUSED_BY_FILE, stream=stream)
            self.administration.pause(who, stream, paused=paused)
            self._administrators_decided()

    def _file_of(self, stream: str) -> StreamConfig:
        return next(one for one in self.config.streams if one.name == stream)

    def _administrators_decided(self) -> None:
        """Read again which streams are paused, here or through another collector."""
        with self._changing:
            before, self._paused = self._paused, self._paused_of(self.config.streams)
            for name in before ^ self._paused:
                self._change(self._file_of(name))

    def _paused_of(self, streams: Iterable[StreamConfig]) -> set[str]:
        notes = {one.name: self.store.note(one.name, OPERATION) for one in streams}
        return {name for name, note in notes.items() if note is not None and note["paused"]}

    # The condition of streams

    def conditions(self) -> Iterator[tuple[str, StreamCondition]]:
        """Yield the condition of each stream, by name."""
        failures = self.failures
        for name in self.streams:
            yield name, self._condition(name, failures.get(name))

    def condition(self, stream: str) -> StreamCondition:
        return self._condition(stream, self.failures.get(stream))

    def _condition(self, name: str, failure: str | None) -> StreamCondition:
        counting_t = self.scheduler.drivers[name].role.counting_t
        return judge(self.streams[name].facts(failure, counting_t))

    def _look_at_engines(self) -> None:
        for name, stream in self.streams.items():
            stream.engine = self.store.engine(name)

    @property
    def unserved(self) -> list[str]:
        """The streams that the store has and the file has not."""
        return sorted(set(self.store.names()) - self.streams.keys())

    @property
    def ring(self) -> KeyRing:
        """The master secrets as they are now."""
        return self.administration.ring

    def reports_with_earlier_keys(self) -> dict[str, int | None]:
        """Reports of each stream's last window with a key of the earlier master secret.

        None if it is not known yet, since the rotation or the last start is less than a window ago.
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
        revised, texts = RevisedHistory(config, self.store), TextFigures(self.store)
        if name not in self.streams:
            keys = StreamKeys(self.ring, name)
            denied = partial(self.administration.denied, name)
            intake = StreamIntake(keys, role.selection, Counter(), denied)
            delay = 3 * POLL_MS / 1000 if self.store.shared else 0.0
            names = StoredNames(self.store, name)
            self._intakes[name] = intake
            first_t = max(1, role.last_t + 1 - min(config.window, MOST_RECENT))
            few = at_once(most_figures(role.history.versions), MOST_RECENT)
            for one in self.store.releases(name, max(first_t, role.last_t + 1 - few), few):
                listener.recent.add(one)
            found = StreamService(
                config, hub, intake, self.clock, names, delay, revised, texts, listener.recent
            )
            self.streams = {**self.streams, name: found}
            recent = self.store.rounds(name, role.last_t - config.window)
            hub.remember(one.name for one in recent if one.state is not RoundState.OPEN)
            if latest:
                hub.released(latest[0])
        elif role.last_t > hub.last_t:  # another collector has released before it was followed
            listener.released(latest[0])
        found = self.streams[name]
        found.intake.selection, found.revised = role.selection, revised
        found.config, found.begun_ms = config, self.clock.now_ms()
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
                yield Pruner(name, retention, stream.history, held, stream.config.reach)

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
        self._listeners[stream].hub.alerted()

    def _webhook_answered(self, stream: str, outcome: str) -> None:
        self.meters.webhook.labels(stream, outcome).inc()

    def _ingested(self, stream: str, seconds: float) -> None:
        self.meters.ingest.labels(stream).observe(seconds)

    def start(self) -> None:
        """Begin, within the running event loop."""
        self._loop = asyncio.get_running_loop()
        for stream in self.streams.values():
            stream.hub.attach(self._loop)
        self.intake.start()
        self.leases.start()
        self.administration.start()
        self.alerts.start()
        self.retention.start()
        self.scheduler.start()
        self.watch.start()

    def release_waiting(self) -> None:
        """Let long polls and feeds end."""
        for stream in self.streams.values():
            stream.hub.stop()

    def stop(self) -> None:
        """Finish what is under way, then close the store."""
        self.release_waiting()
        self.watch.stop()
        self.scheduler.stop()
        self.intake.stop()
        self.alerts.stop()
        self.retention.stop()
        self.leases.stop()
        self.administration.stop()
        self.store.close()

    @property
    def ready(self) -> bool:
        """Whether reports are taken, and no stream is behind or failing."""
        return self.takes_reports and not any(one.state.is_broken for _, one in self.conditions())

    @property
    def takes_reports(self) -> bool:
        """Whether reports are taken, though their releases may be late."""
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
        """Return whether all changes by others to a stream up to then (in ticks) are known here."""
        if stream in self.scheduler.failures:
            return False
        if not self.store.shared:
            return True
        in_touch = self._silence(stream) <= self._lease_seconds
        return in_touch and self.scheduler.looked[stream] >= since

    def _silence(self, stream: str) -> float:
        """Return the seconds since a shared store last said anything about a stream.

        A leader may count for long, or wait, without asking it for more than the lease.
        """
        confirmed = self.leases.confirmed(stream)
        return ticks() - (self.scheduler.looked[stream] if confirmed is None else confirmed)

    @property
    def _lease_seconds(self) -> float:
        return self.config.lease_ms / 1000
