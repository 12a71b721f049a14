"""A watch on what other collectors of a shared store do, with one query for all streams."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from ldpstream.collector.leadership.stream_driver import StreamDriver
from ldpstream.collector.store.contract import Pulse, Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FollowedStreams:
    """The streams that this collector follows, after a look at the store."""

    news: tuple[str, ...] = ()
    """Those that have changed since the last look, or whose lease is free."""
    quiet: tuple[str, ...] = ()
    """All others."""


class StoreWatch:
    """Compares the pulses of the streams that are followed with those of the last look."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Pulse] = {}
        self._trouble = ""

    def look(self, drivers: Mapping[str, StreamDriver]) -> FollowedStreams:
        """Look at the streams that this collector does not lead; a failure is kept and logged."""
        followed = [name for name, driver in drivers.items() if driver.held is None]
        if not followed:
            return FollowedStreams()
        try:
            pulses = self._store.pulses()
        except Exception as error:
            if not self._trouble:
                _log.exception("the streams of the store cannot be followed; trying again")
            self._trouble = str(error) or type(error).__name__
            return FollowedStreams()
        self._trouble = ""
        news = {
            name
            for name in followed
            if (pulse := pulses.get(name)) is None or pulse.free or pulse != self._known.get(name)
        }
        self._known = pulses
        return FollowedStreams(tuple(news), tuple(name for name in followed if name not in news))

    def failures(self, drivers: Mapping[str, StreamDriver]) -> dict[str, str]:
        """Return why streams cannot be followed, by their names, if the last look has failed."""
        if not self._trouble:
            return {}
        return {name: self._trouble for name, driver in list(drivers.items()) if not driver.held}
