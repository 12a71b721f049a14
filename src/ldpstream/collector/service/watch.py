"""The thread that looks at every stream now and then, and logs when its condition changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress

from ldpstream.collector.periodic import PeriodicThread
from ldpstream.collector.service.condition import StreamCondition, StreamState
from ldpstream.errors import LdpStreamError

WATCH_SECONDS = 2.0

_log = logging.getLogger(__name__)


class ConditionWatch:
    """Logs changes of condition: no event would ever tell that a stream fell silent."""

    def __init__(
        self,
        look: Callable[[], None],
        conditions: Callable[[], Iterable[tuple[str, StreamCondition]]],
    ) -> None:
        self._look = look
        """Asks what takes time: how far engines have come."""
        self._conditions = conditions
        self._known: dict[str, StreamState] = {}
        thread = PeriodicThread("watch", WATCH_SECONDS, self._watch)
        self.start, self.stop = thread.start, thread.stop

    def _watch(self) -> None:
        with suppress(LdpStreamError):  # what does not answer makes streams behind, or failing
            self._look()
        with suppress(LdpStreamError):
            self.tell()

    def tell(self) -> None:
        """Log each stream whose condition is another one than before."""
        for name, condition in self._conditions():
            before = self._known.get(name, StreamState.LIVE)
            self._known[name] = condition.state
            if condition.state is not before:
                level = logging.INFO if condition.state.is_intended else logging.WARNING
                facts = {"stream": name, "state": condition.state.value}
                _log.log(level, "stream %s: %s", condition.state, condition.why, extra=facts)
