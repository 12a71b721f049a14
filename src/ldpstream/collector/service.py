"""A running collector: the store, its streams, and the threads that serve them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ldpstream.collector.alerts.courier import Courier
from ldpstream.collector.alerts.watch import Watch
from ldpstream.collector.announcement import Announcement, OpenRound
from ldpstream.collector.board import Board
from ldpstream.collector.clock import Clock, SystemClock
from ldpstream.collector.conductor import Conductor
from ldpstream.collector.config import Config, StreamConfig
from ldpstream.collector.coordinator import Coordinator
from ldpstream.collector.intake import Desk, Intake
from ldpstream.collector.keys import DeviceKeys
from ldpstream.collector.metrics.meters import Meters
from ldpstream.collector.metrics.store import MeteredStore
from ldpstream.collector.secrets import Secrets
from ldpstream.collector.selection import RosterSelection
from ldpstream.collector.store.contract import Store
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.collector.terms import Terms
from ldpstream.errors import Problem


@dataclass
class StreamService:
    """One stream, as the API sees it."""

    config: StreamConfig
    terms: Terms
    board: Board
    desk: Desk
    refused: Counter[Problem] = field(default_factory=Counter)
    """Requests that were turned away as a whole."""

    @property
    def roster(self) -> RosterSelection | None:
        selection = self.desk.selection
        return selection if isinstance(selection, RosterSelection) else None


@dataclass(frozen=True)
class _Bell:
    """The board, and whoever else looks at releases."""

    board: Board
    ring: Callable[[], None]

    def announced(self, announcement: Announcement) -> None:
        self.board.announced(announcement)

    def released(self, t: int) -> None:
        self.board.released(t)
        self.ring()


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
        self.store = MeteredStore(store or SqliteStore(config.store), self.meters)
        self.streams: dict[str, StreamService] = {}
        boards = {stream.name: Board() for stream in config.streams}
        self.conductor = Conductor(
            self.clock,
            {
                stream.name: lambda stream=stream: self._coordinator(  # type: ignore[misc]
                    stream, boards[stream.name]
                )
                for stream in config.streams
            },
        )
        self.watches = {
            stream.name: Watch(
                stream.name,
                stream.alerts,
                self.store,
                sends=config.webhook is not None,
                external_url=config.external_url,
            )
            for stream in config.streams
            if stream.alerts
        }
        self.courier = Courier(list(self.watches.values()), config.webhook, self._told)
        desks = {name: one.desk for name, one in self.streams.items()}
        self.intake = Intake(self.store, desks, config.limits.waiting, self._progress, self._took)

    def _coordinator(self, config: StreamConfig, board: Board) -> Coordinator:
        """A coordinator that takes up the stream where the store has it."""
        coordinator = Coordinator(config, self.store, self.clock, _Bell(board, self._released))
        board.last_t = coordinator.last_t
        if config.name not in self.streams:
            keys = DeviceKeys(self.secrets.master, config.name)
            desk = Desk(keys, coordinator.selection, Counter())
            self.streams[config.name] = StreamService(config, coordinator.terms, board, desk)
            self.store.recall(config.name)
            recent = self.store.rounds(config.name, coordinator.last_t - config.window)
            board.remember(one.name for one in recent)
        self.streams[config.name].desk.selection = coordinator.selection
        return coordinator

    def _progress(self, asking: OpenRound) -> None:
        """Close a round at once when everyone who was asked has answered."""
        if self.conductor.coordinators[asking.stream].complete:
            self.conductor.nudge()

    def _released(self) -> None:
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
        self.store.close()

    @property
    def ready(self) -> bool:
        return self.conductor.alive and not any(self.conductor.failures.values())
