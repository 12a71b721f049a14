"""One stream's alerts: driven by its releases, kept in the store.

Alerts are looked at release by release, at the time each was made, so that those of a restarted
collector go on as if it had never been away. What the webhook has not taken yet is kept with them.
A message is written down before it is sent and struck out afterwards: one that was sent in the
instant of a crash is sent again, with the same fingerprints and times.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from ldpstream.collector.alerts.machine import Alert, State
from ldpstream.collector.alerts.message import Change, message
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.store.contract import Release, Store

NOTE = "alerts"
PAGE = 500
MOST_UNSENT = 1000
"""Messages; when there are more, the oldest are dropped."""


class Watch:
    """The alerts of one stream, and what the webhook is still to be told."""

    def __init__(
        self,
        stream: str,
        rules: tuple[Rule, ...],
        store: Store,
        *,
        sends: bool,
        external_url: str = "",
    ) -> None:
        self.stream = stream
        self.rules = rules
        self._store = store
        self._sends = sends
        self._external_url = external_url
        self._lock = threading.Lock()
        self.last_t = 0
        self.dropped = 0
        self.latest: Release | None = None
        self.alerts = {rule.fingerprint: Alert() for rule in rules}
        self._now_ms = 0
        self._unsent: deque[dict[str, Any]] = deque()
        self._restore(store.note(stream, NOTE))

    def catch_up(self) -> list[Change]:
        """Look at all releases since the last time; what began or ceased to fire."""
        changes: list[Change] = []
        while releases := self._store.releases(self.stream, self.last_t + 1, PAGE):
            with self._lock:
                for release in releases:
                    changed = self._observe(release)
                    if changed and self._sends:
                        self._unsent.append(message(self.stream, changed, self._external_url))
                    changes += changed
                while len(self._unsent) > MOST_UNSENT:
                    self._unsent.popleft()
                    self.dropped += 1
                self._save()
        return changes

    def _observe(self, release: Release) -> list[Change]:
        self.last_t = release.t
        if release.missed:  # nothing was heard, so nothing has changed
            return []
        self.latest = release
        self._now_ms = max(self._now_ms, release.at_ms)
        changes = []
        for rule in self.rules:
            before = self.alerts[rule.fingerprint]
            after = before.after(
                rule.holds(release),
                self._now_ms,
                hold_ms=rule.hold_ms,
                keep_firing_ms=rule.keep_firing_ms,
            )
            self.alerts[rule.fingerprint] = after
            if after.state is not before.state and after.state in (State.FIRING, State.RESOLVED):
                changes.append(Change(rule, after, release))
        return changes

    # What is to be sent

    @property
    def first_unsent(self) -> dict[str, Any] | None:
        with self._lock:
            return self._unsent[0] if self._unsent else None

    def settled(self, sent: dict[str, Any]) -> None:
        """Nothing more is to be done about a message."""
        with self._lock:
            if self._unsent and self._unsent[0] is sent:
                self._unsent.popleft()
                self._save()

    # What is kept

    def _save(self) -> None:
        content = {
            "t": self.last_t,
            "now_ms": self._now_ms,
            "alerts": {name: alert.to_json() for name, alert in self.alerts.items()},
            "unsent": list(self._unsent),
        }
        self._store.write_note(self.stream, NOTE, content)

    def _restore(self, saved: dict[str, Any] | None) -> None:
        """Go on from what was kept; rules that are new begin now, not in the past."""
        known = self._store.stream(self.stream)
        self.last_t = known.last_t if known is not None else 0
        if saved is None:
            return
        self.last_t = min(saved["t"], self.last_t)
        self._now_ms = saved["now_ms"]
        if self._sends:
            self._unsent.extend(saved["unsent"])
        for name, alert in saved["alerts"].items():
            if name in self.alerts:
                self.alerts[name] = Alert.from_json(alert)
