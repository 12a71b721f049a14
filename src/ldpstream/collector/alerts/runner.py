"""The threads behind alerts: one evaluates releases, one delivers to the webhook."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any

from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.alerts.webhook import Undelivered, WebhookResponse, post
from ldpstream.collector.clock import ticks
from ldpstream.collector.store.contract import Store

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
FOLLOW_SECONDS = 1.0
"""How old the alerts may be that a follower shows, of so many streams:"""
FOLLOWED_AT_ONCE = 50

_log = logging.getLogger(__name__)

Post = Callable[[str, dict[str, Any]], WebhookResponse]


class AlertRunner:
    """Evaluates the alerts of all streams, and delivers their messages to the webhook."""

    def __init__(
        self,
        evaluators: list[AlertEvaluator],
        webhook: str | None,
        outcome: Callable[[str, str], None] = lambda stream, what: None,
        send: Post = post,
        first_pause: float = FIRST_PAUSE_SECONDS,
        held: Callable[[str], Store | None] | None = None,
        refresh: Callable[[str], None] = lambda stream: None,
    ) -> None:
        self._evaluators = evaluators
        self._webhook = webhook
        self._outcome = outcome
        self._send = send
        self._first_pause = first_pause
        self._held = held
        """The store under a stream's lease, or None if another collector evaluates its alerts."""
        self._refresh = refresh
        """Called before a stream is evaluated: its rules may have been changed elsewhere."""
        self._stopping = threading.Event()
        self._released = threading.Event()
        self._waking = threading.Lock()
        self._woken: set[str] = set()
        """The streams that are to be evaluated."""
        self._turns = cycle(evaluators)
        self._followed = ticks()
        self._to_send = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=f"ldpstream-{name}", daemon=True)
            for name, work in (("alerts", self._evaluate_all), ("webhook", self._deliver))
        ]

    def start(self) -> None:
        if self._evaluators:
            self.wake()
            self._to_send.set()
            for thread in self._threads:
                thread.start()

    def add(self, evaluator: AlertEvaluator) -> None:
        """Evaluate the alerts of one more stream from now on."""
        self._evaluators = [*self._evaluators, evaluator]
        self._turns = cycle(self._evaluators)

    def remove(self, stream: str) -> None:
        """Stop evaluating the alerts of a stream."""
        self._evaluators = [one for one in self._evaluators if one.stream != stream]
        self._turns = cycle(self._evaluators)

    def wake(self, stream: str | None = None) -> None:
        """Evaluate a stream soon, or all if None: it has a new release, or a new rule."""
        every = (one.stream for one in self._evaluators)
        with self._waking:
            self._woken.update(every if stream is None else (stream,))
        self._released.set()

    def stop(self) -> None:
        """Stop both threads; messages that are not delivered are kept for the next start."""
        self._stopping.set()
        self._released.set()
        self._to_send.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _evaluate_all(self) -> None:
        while not self._stopping.is_set():
            self._released.wait(None if self._held is None else FOLLOW_SECONDS)
            self._released.clear()
            for evaluator in self._due():
                try:
                    self._evaluate(evaluator)
                except Exception:
                    _log.exception("alerts of stream %s could not be evaluated", evaluator.stream)
            self._to_send.set()

    def _due(self) -> Iterator[AlertEvaluator]:
        """Yield what was woken and, in turn, what other collectors may have changed."""
        with self._waking:
            woken, self._woken = self._woken, set()
        yield from (one for one in self._evaluators if one.stream in woken)
        if self._held is not None and ticks() - self._followed >= FOLLOW_SECONDS:
            self._followed = ticks()
            yield from islice(self._turns, min(FOLLOWED_AT_ONCE, len(self._evaluators)))

    def _evaluate(self, evaluator: AlertEvaluator) -> None:
        leads = self._leads(evaluator)  # first: new rules are used as a leader, or as a follower
        self._refresh(evaluator.stream)
        if not leads:
            evaluator.follow()
            return
        for change in evaluator.catch_up():
            facts = {"stream": evaluator.stream, "alert": change.rule.name}
            _log.info("alert", extra=facts | {"state": change.alert.state.value})

    def _leads(self, evaluator: AlertEvaluator) -> bool:
        if self._held is None:
            return True
        held = self._held(evaluator.stream)
        if held is not None:
            evaluator.lead(held)
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
        """Send all messages; return False if some are left to be retried later."""
        for evaluator in self._evaluators if self._webhook else ():
            while (content := self._unsent(evaluator)) is not None and not self._stopping.is_set():
                if not self._attempt(evaluator.stream, content):
                    return False
                evaluator.settled(content)
        return True

    def _unsent(self, evaluator: AlertEvaluator) -> dict[str, Any] | None:
        """The next message to the webhook; a follower sends none."""
        if self._held is not None and self._held(evaluator.stream) is None:
            return None
        return evaluator.first_unsent

    def _attempt(self, stream: str, content: dict[str, Any]) -> bool:
        """Send a message; return whether it is settled: accepted, or refused for good."""
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
