"""A running collector: the store, its streams, and the threads that serve them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from ldpstream.collector.alerts.courier import Courier
from ldpstream.collector.alerts.rulebook import RuleBook
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.watch import PAGE, Watch
from ldpstream.collector.announcement import Announcement, OpenRound
from ldpstream.collector.board import Board
from ldpstream.collector.clock import Clock, SystemClock, ticks
from ldpstream.collector.conductor import Conductor
from ldpstream.collector.config import Config, StreamConfig
from ldpstream.collector.coordinator import Coordinator
from ldpstream.collector.follower import POLL_MS, Follower
from ldpstream.collector.intake import Desk, Intake
from ldpstream.collector.keys import DeviceKeys
from ldpstream.collector.metrics.meters import Meters
from ldpstream.collector.metrics.store import MeteredStore
from ldpstream.collector.paging import at_once
from ldpstream.collector.seat import Part, Seat
from ldpstream.collector.secrets import Secrets
from ldpstream.collector.selection import RosterSelection
from ldpstream.collector.store.contract import RoundState, Store
from ldpstream.collector.store.opening import open_store
from ldpstream.collector.tenure import Tenure
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.terms import Terms

LEASES_OF_SILENCE = 3
"""After so many a collector that hears nothing from a shared store is not ready."""


@dataclass
class StreamService:
    """One stream, as the API sees it."""

    config: StreamConfig
    terms: Terms
    board: Board
    desk: Desk
    news_seconds: float
    """How long it may take until a round that another collector opened is known here."""
    refused: Counter[Problem] = field(default_factory=Counter)
    """Requests that were turned away as a whole."""

    @property
    def roster(self) -> RosterSelection | None:
        selection = self.desk.selection
        return selection if isinstance(selection, RosterSelection) else None


@dataclass(frozen=True)
class _Bell:
    """The board, and whoever else looks at releases."""

    stream: str
    board: Board
    ring: Callable[[str], None]

    def announced(self, announcement: Announcement) -> None:
        self.board.announced(announcement)

    def released(self, t: int) -> None:
        self.board.released(t)
        self.ring(self.stream)


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
        self.clock = clock or SystemClock()
        self.meters = Meters()
        self.store = MeteredStore(store or open_store(config), self.meters)
        if not self.store.claim("master", secrets.check):
            self.store.close()
            raise Mistake(Problem.MASTER_DIFFERS, where=config.database)
        self.streams: dict[str, StreamService] = {}
        self.tenure = Tenure(self.store, self._lease_seconds)
        bells = {one.name: _Bell(one.name, Board(), self._released) for one in config.streams}
        self.conductor = Conductor(
            self.clock,
            {one.name: partial(self._seat, one, bells[one.name]) for one in config.streams},
        )
        self.rulebooks = {stream.name: RuleBook(stream, self.store) for stream in config.streams}
        self.watches = {
            stream.name: Watch(
                stream.name,
                self.rulebooks[stream.name].rules,
                self.store,
                sends=config.webhook is not None,
                external_url=config.external_url,
                news=bells[stream.name].board.alerted,
                page=at_once(len(stream.labels), PAGE),
            )
            for stream in config.streams
        }
        self.courier = Courier(
            list(self.watches.values()),
            config.webhook,
            self._told,
            held=self.held if self.store.shared else None,
            refresh=lambda name: self.rulebooks[name].refresh(),
        )
        for name, book in self.rulebooks.items():
            book.changed = partial(self._rules_changed, name)
        desks = {name: one.desk for name, one in self.streams.items()}
        self.intake = Intake(self.store, desks, config.limits.waiting, self._progress, self._took)

    def _seat(self, config: StreamConfig, bell: _Bell) -> Seat:
        """A stream's place, taken up where the store has it."""

        def conduct(held: Store) -> Part:
            return self._seated(Coordinator(config, held, self.clock, bell), config, bell)

        def follow() -> Part:
            return self._seated(Follower(config, self.store, self.clock, bell), config, bell)

        return Seat(config.name, self.store, self.clock, self.tenure, conduct, follow)

    def _seated(self, part: Part, config: StreamConfig, bell: _Bell) -> Part:
        """Let the API see what a coordinator or follower has found in the store."""
        name, board = config.name, bell.board
        if name not in self.streams:
            desk = Desk(DeviceKeys(self.secrets.master, name), part.selection, Counter())
            news = 3 * POLL_MS / 1000 if self.store.shared else 0.0
            self.streams[name] = StreamService(config, part.terms, board, desk, news)
            self.store.recall(name)
            recent = self.store.rounds(name, part.last_t - config.window)
            board.remember(one.name for one in recent if one.state is not RoundState.OPEN)
            board.last_t = part.last_t
        elif part.last_t > board.last_t:  # released by another, in the last moments
            self.store.recall(name)
            bell.released(part.last_t)
        self.streams[name].desk.selection = part.selection
        return part

    def held(self, stream: str) -> Store | None:
        """The store under the stream's lease, if this is the collector that conducts it."""
        return self.conductor.seats[stream].held

    def _progress(self, asking: OpenRound) -> None:
        """Close a round at once when everyone who was asked has answered."""
        if self.store.shared:
            return  # the one that conducts looks at short intervals, wherever reports came in
        if self.conductor.seats[asking.stream].complete:
            self.conductor.nudge()

    def _released(self, stream: str) -> None:
        if self.held(stream) is None:
            self.store.recall(stream)
        self.courier.nudge()

    def _rules_changed(self, stream: str, rules: tuple[Rule, ...]) -> None:
        self.watches[stream].use(rules)
        self.courier.nudge()

    def _told(self, stream: str, outcome: str) -> None:
        self.meters.webhook.labels(stream, outcome).inc()

    def _took(self, stream: str, seconds: float) -> None:
        self.meters.ingest.labels(stream).observe(seconds)

    def start(self) -> None:
        """Begin, within the running event loop."""
        for stream in self.streams.values():
            stream.board.attach()
        self.intake.start()
        self.tenure.start()
        self.courier.start()
        self.conductor.start()

    def release_waiting(self) -> None:
        """Let long polls and feeds end."""
        for stream in self.streams.values():
            stream.board.stop()

    def stop(self) -> None:
        """Finish what is under way, then close the store."""
        self.release_waiting()
        self.conductor.stop()
        self.intake.stop()
        self.courier.stop()
        self.tenure.stop()
        self.store.close()

    @property
    def ready(self) -> bool:
        return self.conductor.alive and not self.failures

    @property
    def failures(self) -> dict[str, str]:
        """Why streams cannot go on, by name."""
        found = {name: why for name, why in self.conductor.failures.items() if why}
        if self.store.shared:
            for name in self.streams.keys() - found.keys():
                silence = self._silence(name)
                if silence > LEASES_OF_SILENCE * self._lease_seconds:
                    found[name] = f"the store has said nothing of it for {silence:.0f} s"
        return found

    def sees(self, stream: str, since: float) -> bool:
        """Whether all that others had done with a stream by then (in ticks) is known here."""
        if self.conductor.failures[stream]:
            return False
        if not self.store.shared:
            return True
        in_touch = self._silence(stream) <= self._lease_seconds
        return in_touch and self.conductor.looked[stream] >= since

    def _silence(self, stream: str) -> float:
        """Seconds since a shared store was last heard of a stream.

        Whoever conducts may count for long, or wait, without asking it for more than the lease.
        """
        confirmed = self.tenure.confirmed(stream)
        return ticks() - (self.conductor.looked[stream] if confirmed is None else confirmed)

    @property
    def _lease_seconds(self) -> float:
        return self.config.lease_ms / 1000
