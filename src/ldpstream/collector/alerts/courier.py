"""The threads behind alerts: one looks at releases, one talks to the webhook."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from ldpstream.collector.alerts.watch import Watch
from ldpstream.collector.alerts.webhook import Answer, Undelivered, post
from ldpstream.collector.store.contract import Store

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
FOLLOW_SECONDS = 1.0
"""How old the alerts may be that a collector shows for one that conducts."""

_log = logging.getLogger(__name__)

Post = Callable[[str, dict[str, Any]], Answer]


class Courier:
    """Keeps the watches of a service up to date, and delivers what they have to tell."""

    def __init__(
        self,
        watches: list[Watch],
        webhook: str | None,
        outcome: Callable[[str, str], None] = lambda stream, what: None,
        send: Post = post,
        first_pause: float = FIRST_PAUSE_SECONDS,
        held: Callable[[str], Store | None] | None = None,
        refresh: Callable[[str], None] = lambda stream: None,
    ) -> None:
        self._watches = watches
        self._webhook = webhook
        self._outcome = outcome
        self._send = send
        self._first_pause = first_pause
        self._held = held
        """The store under a stream's lease; None: another collector looks at its alerts."""
        self._refresh = refresh
        """Called before a watch looks: its rules may have been changed elsewhere."""
        self._stopping = threading.Event()
        self._released = threading.Event()
        self._to_send = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=f"ldpstream-{name}", daemon=True)
            for name, work in (("alerts", self._look), ("webhook", self._deliver))
        ]

    def start(self) -> None:
        if self._watches:
            self.nudge()
            self._to_send.set()
            for thread in self._threads:
                thread.start()

    def nudge(self) -> None:
        """There is a new release."""
        self._released.set()

    def stop(self) -> None:
        """What is not delivered by now is kept for the next start."""
        self._stopping.set()
        self._released.set()
        self._to_send.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _look(self) -> None:
        while not self._stopping.is_set():
            self._released.wait(None if self._held is None else FOLLOW_SECONDS)
            self._released.clear()
            for watch in self._watches:
                try:
                    self._look_at(watch)
                except Exception:
                    _log.exception("alerts of stream %s could not be looked at", watch.stream)
            self._to_send.set()

    def _look_at(self, watch: Watch) -> None:
        self._refresh(watch.stream)
        if not self._conducts(watch):
            watch.follow()
            return
        for change in watch.catch_up():
            facts = {"stream": watch.stream, "alert": change.rule.name}
            _log.info("alert", extra=facts | {"state": change.alert.state.value})

    def _conducts(self, watch: Watch) -> bool:
        if self._held is None:
            return True
        held = self._held(watch.stream)
        if held is not None:
            watch.conduct(held)
        return held is not None

    def _deliver(self) -> None:
        pause = self._first_pause
        while not self._stopping.is_set():
            self._to_send.wait()
            self._to_send.clear()
            while not self._stopping.is_set():
                try:
                    if self._deliver_all():
                        pause = self._first_pause
                        break
                except Exception:
                    _log.exception("messages to the webhook could not be sent")
                self._stopping.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _deliver_all(self) -> bool:
        """Whether nothing is left to send; False: try again later."""
        for watch in self._watches if self._webhook else ():
            while (content := self._to_tell(watch)) is not None and not self._stopping.is_set():
                if not self._attempt(watch.stream, content):
                    return False
                watch.settled(content)
        return True

    def _to_tell(self, watch: Watch) -> dict[str, Any] | None:
        """What the webhook is to be told from here: by one that follows, nothing."""
        if self._held is not None and self._held(watch.stream) is None:
            return None
        return watch.first_unsent

    def _attempt(self, stream: str, content: dict[str, Any]) -> bool:
        """Whether a message is settled: taken, or refused for good."""
        assert self._webhook is not None
        try:
            answer = self._send(self._webhook, content)
        except Undelivered:
            self._outcome(stream, "unreachable")
            _log.warning("the webhook does not answer; trying again", extra={"stream": stream})
            return False
        taken = 200 <= answer.status < 300
        self._outcome(stream, "delivered" if taken else "refused")
        if not taken:
            facts = {"stream": stream, "status": answer.status}
            _log.warning("the webhook refused a message", extra=facts)
        return answer.final
