"""The thread that looks at every stream now and then, and logs when its condition changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from ldpstream.collector.service.condition import Condition, State
from ldpstream.errors import LdpStreamError

WATCH_SECONDS = 2.0

_log = logging.getLogger(__name__)


class ConditionWatch:
    """Logs changes of condition: no event would ever tell that a stream fell silent."""

    def __init__(
        self,
        look: Callable[[], None],
        conditions: Callable[[], Iterable[tuple[str, Condition]]],
    ) -> None:
        self._look = look
        """Asks what takes time: how far engines have come."""
        self._conditions = conditions
        self._known: dict[str, State] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ldpstream-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(WATCH_SECONDS):
            for work in (self._look, self.tell):
                try:
                    work()
                except LdpStreamError:  # what does not answer makes streams behind, or failing
                    continue
                except Exception:
                    _log.exception("the condition of streams could not be determined")

    def tell(self) -> None:
        """Log each stream whose condition is another one than before."""
        for name, condition in self._conditions():
            before = self._known.get(name, State.LIVE)
            self._known[name] = condition.state
            if condition.state is not before:
                level = logging.INFO if condition.state.is_intended else logging.WARNING
                facts = {"stream": name, "state": condition.state.value}
                _log.log(level, "stream %s: %s", condition.state, condition.why, extra=facts)
