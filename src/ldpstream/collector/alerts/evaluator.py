"""The alerts of one stream: driven by its releases, kept in the store.

Alerts are evaluated release by release, at the time of each release, so that after a restart they
go on as if the collector had never been away. Messages that the webhook has not accepted yet are
stored with them. A message is stored before it is sent and deleted afterwards, so that delivery is
at-least-once: one that was sent just before a crash is sent again, with the same fingerprints and
times.

Rules may change at any time. A rule that is removed or replaced takes its alert with it: whoever
was told that it fires is told that it is resolved.

A release that no report stands behind changes no alert, but those that are about silence itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ldpstream.collector.alerts.conditions import LevelChanged
from ldpstream.collector.alerts.evidence import AlertEvidence, LevelChange
from ldpstream.collector.alerts.message import AlertChange, told
from ldpstream.collector.alerts.outbox import Outbox
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.state import Alert, AlertState
from ldpstream.collector.store.contract import Store, StoredRelease
from ldpstream.collector.store.names import StoredNames

NOTE = "alerts"
HISTORY_NOTE = "alert-history"
PAGE = 500
MOST_REMEMBERED = 200
"""Changes that the page can show on its timeline."""

FindChanges = Callable[[int, int], Sequence[LevelChange]]
"""Returns the changes of level from one timestamp to another, as all tallies so far show them."""
SilencedUntil = Callable[[str], int]
"""Returns until when the rule with a fingerprint is silenced, in milliseconds; 0: it is not."""


class AlertEvaluator:
    """The alerts of one stream, and the messages that the webhook has not accepted yet."""

    def __init__(
        self,
        stream: str,
        rules: tuple[Rule, ...],
        store: Store,
        *,
        sends: bool,
        external_url: str = "",
        news: Callable[[], None] = lambda: None,
        page: int = PAGE,
        find_changes: FindChanges = lambda first_t, last_t: (),
        silenced_until: SilencedUntil = lambda fingerprint: 0,
    ) -> None:
        self.stream = stream
        self.rules = rules
        self._store = store
        self._sends = sends
        self._page = page
        """Releases that are evaluated at once."""
        self._external_url = external_url
        self._find_changes = find_changes
        self._silenced_until = silenced_until
        self._names = StoredNames(store, stream)
        self._news = news
        """Called when there is something new to show."""
        self._lock = threading.Lock()
        self._leads = True
        """Whether these alerts are evaluated here, and not by another collector."""
        self.last_t = 0
        self.latest: AlertEvidence | None = None
        """The last release that was evaluated."""
        self.history: tuple[dict[str, Any], ...] = ()
        """Alerts that began to fire or were resolved, oldest first."""
        self.alerts = {rule.fingerprint: Alert() for rule in rules}
        self._now_ms = 0
        self._heard_ms: int | None = None
        """When reports last came, or None if no release was evaluated yet."""
        self._outbox = Outbox(stream, external_url)
        self._restore(store.note(stream, NOTE))

    def lead(self, held: Store) -> None:
        """Evaluate these alerts here from now on, and go on where another collector left off."""
        self._leads = True
        if held is not self._store:
            self._store = held
            self._reload()

    def follow(self) -> None:
        """Show what the leader of the stream has stored."""
        self._leads = False
        shown = self.last_t
        self._reload()
        if self.last_t != shown:
            self._news()

    def _reload(self) -> None:
        kept = self._store.note(self.stream, NOTE)
        if kept is not None:  # else nothing was evaluated yet
            with self._lock:
                self._restore(kept)

    def catch_up(self) -> list[AlertChange]:
        """Evaluate all new releases; return the alerts that began to fire or were resolved."""
        changes: list[AlertChange] = []
        while self.rules and (releases := self._unseen()):
            *earlier, last = releases
            found = self._changes_by(last) if len(releases) < self._page else None
            with self._lock:
                for release in earlier:
                    changes += self._recorded(self._observe(release))
                changes += self._recorded(self._observe(last, found))
                self._save()
            self._news()
        return changes

    def use(self, rules: tuple[Rule, ...]) -> None:
        """Use these rules from the next release on; alerts of unchanged rules go on."""
        with self._lock:
            if not self.rules:  # nothing was looked at meanwhile
                self.last_t, self._heard_ms = self._released_t(), None
            kept = {rule.fingerprint for rule in self.rules if rule in rules}
            gone = [rule for rule in self.rules if rule.fingerprint not in kept]
            if self._leads:
                self._recorded([change for rule in gone if (change := self._ended(rule))])
            self.alerts = {
                rule.fingerprint: self.alerts[rule.fingerprint]
                if rule.fingerprint in kept
                else Alert()
                for rule in rules
            }
            self.rules = rules
            if self._leads:
                self._save()
        self._news()

    @property
    def shown(self) -> list[tuple[Rule, Alert]]:
        """Each rule with its alert, as one consistent snapshot."""
        with self._lock:
            return [(rule, self.alerts[rule.fingerprint]) for rule in self.rules]

    def silence_of(self, rule: Rule) -> int | None:
        """Return until when a rule is silenced, by the time of releases; None if it is not."""
        until_ms = self._silenced_until(rule.fingerprint)
        return until_ms if until_ms > self._now_ms else None

    def _changes_by(self, release: StoredRelease) -> Sequence[LevelChange] | None:
        """The recent changes of level, if a rule asks for them; all tallies so far show them."""
        spans = [
            one.condition.within for one in self.rules if isinstance(one.condition, LevelChanged)
        ]
        if not spans or release.missed:
            return None
        return self._find_changes(max(release.t - max(spans) + 1, 1), release.t)

    def _is_silenced(self, fingerprint: str) -> bool:
        return self._now_ms < self._silenced_until(fingerprint)

    def _unseen(self) -> list[StoredRelease]:
        return self._store.releases(self.stream, self.last_t + 1, self._page)

    def _released_t(self) -> int:
        known = self._store.stream(self.stream)
        return 0 if known is None else known.last_t

    def _observe(
        self, release: StoredRelease, found: Sequence[LevelChange] | None = None
    ) -> list[AlertChange]:
        self.last_t = release.t
        self._now_ms = max(self._now_ms, release.at_ms)
        if release.missed or release.received or self._heard_ms is None:
            self._heard_ms = self._now_ms  # who misses a timestamp cannot know that all are silent
        self._outbox.release_held(self._is_silenced)
        if release.missed:  # nothing was heard, so nothing has changed
            return []
        self.latest = evidence = self._evidence(release, found)
        changes = []
        for rule in self.rules:
            holds = rule.verdict(evidence)
            if holds is None:
                continue
            before = self.alerts[rule.fingerprint]
            after = before.after(
                holds, self._now_ms, hold_ms=rule.hold_ms, keep_firing_ms=rule.keep_firing_ms
            )
            self.alerts[rule.fingerprint] = after
            if after.state is not before.state and after.state in (
                AlertState.FIRING,
                AlertState.RESOLVED,
            ):
                changes.append(AlertChange(rule, after, evidence))
        return changes

    def _ended(self, rule: Rule) -> AlertChange | None:
        """The resolution of the alert of a removed rule, or None if it was not firing."""
        after = self.alerts[rule.fingerprint].ended(self._now_ms)
        last = self._store.releases(self.stream, self.last_t, 1)
        if after.state is not AlertState.RESOLVED or not last:
            return None
        return AlertChange(rule, after, self._evidence(last[0]))

    def _evidence(
        self, release: StoredRelease, found: Sequence[LevelChange] | None = None
    ) -> AlertEvidence:
        silent_ms = self._now_ms - (self._now_ms if self._heard_ms is None else self._heard_ms)
        return AlertEvidence(release, self._names.at(release), silent_ms, found)

    def _recorded(self, changes: list[AlertChange]) -> list[AlertChange]:
        """Store changes for the webhook and the page; return them."""
        if not changes:
            return []
        if self._sends:
            alerts = (told(change, self._external_url) for change in changes)
            self._outbox.put(alerts, self._is_silenced)
        # Written before the states: after a crash in between, the same changes are found again.
        new = [change.to_json() for change in changes]
        self.history = (*(one for one in self.history if one not in new), *new)[-MOST_REMEMBERED:]
        self._store.write_note(self.stream, HISTORY_NOTE, {"changes": list(self.history)})
        return changes

    # Messages to the webhook

    @property
    def first_unsent(self) -> dict[str, Any] | None:
        with self._lock:
            return self._outbox.first

    @property
    def dropped(self) -> int:
        """Messages that were dropped since too many waited."""
        return self._outbox.dropped

    def settled(self, sent: dict[str, Any]) -> None:
        """Delete a message that was delivered, or refused for good."""
        with self._lock:
            if self._outbox.settle(sent):
                self._save()

    # Saving and restoring

    def _save(self) -> None:
        content = {
            "t": self.last_t,
            "now_ms": self._now_ms,
            "heard_ms": self._heard_ms,
            "alerts": {name: alert.to_json() for name, alert in self.alerts.items()},
        } | self._outbox.to_json()
        self._store.write_note(self.stream, NOTE, content)

    def _restore(self, saved: dict[str, Any] | None) -> None:
        """Go on from the saved state; new rules begin now, not in the past."""
        self.last_t = self._released_t()
        self.history = tuple((self._store.note(self.stream, HISTORY_NOTE) or {}).get("changes", ()))
        if saved is None:
            return
        self._now_ms = saved["now_ms"]
        if self._sends:
            self._outbox.restore(saved)
        if saved["alerts"]:  # without rules nothing was evaluated, and nothing waits
            self.last_t = min(saved["t"], self.last_t)
            self._heard_ms = saved.get("heard_ms")
        for name, alert in saved["alerts"].items():
            if name in self.alerts:
                self.alerts[name] = Alert.from_json(alert)
        last = self._store.releases(self.stream, self.last_t, 1)
        known = last and last[0].t == self.last_t
        self.latest = self._evidence(last[0]) if known else None
