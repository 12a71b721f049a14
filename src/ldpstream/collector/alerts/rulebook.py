"""The rules of one stream: those of the file, which stay, and those of the API, which may change.

What the API was given is kept in the store in the words of the configuration, and read by the same
code. A rule goes by its fingerprint, which is that of its alert.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ldpstream.collector.alerts.rules import Rule, read_rules
from ldpstream.collector.config import StreamConfig, Table
from ldpstream.collector.store.contract import Store
from ldpstream.errors import Mistake, Problem

NOTE = "alert-rules"
MOST_RULES = 500
"""Of one stream: each of them is looked at for every release."""


class RequestTable(Table):
    """A table that came with a request: there is no line to point at."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values, Path(), "", ())

    def refuse(self, name: str | None, what: str, fix: str) -> NoReturn:
        raise Mistake(Problem.ALERT_RULE, what=what, fix=fix)


class RuleBook:
    """Which rules there are; `changed` is called with all of them whenever that changes."""

    def __init__(self, config: StreamConfig, store: Store) -> None:
        self._config = config
        self._store = store
        self._lock = threading.Lock()
        self.changed: Callable[[tuple[Rule, ...]], None] = lambda rules: None
        self._fixed = {rule.fingerprint: rule for rule in config.alerts}
        self._added = self._kept()

    def _kept(self) -> dict[str, Rule]:
        """The rules that were added. One that came into the file since takes its place."""
        kept = self._store.note(self._config.name, NOTE) or {"rules": []}
        added = [self._read(given) for given in kept["rules"]]
        return {one.fingerprint: one for one in added if one.fingerprint not in self._fixed}

    def refresh(self) -> None:
        """Take over what was changed through another collector of the same store."""
        with self._lock:
            self._refresh()

    def _refresh(self) -> None:
        kept = self._kept() if self._store.shared else self._added
        if kept != self._added:
            self._added = kept
            self.changed(self.rules)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple({**self._fixed, **self._added}.values())

    def is_fixed(self, rule: Rule) -> bool:
        """Whether it stands in the file."""
        return rule.fingerprint in self._fixed

    def add(self, given: dict[str, Any]) -> Rule:
        with self._lock:
            self._refresh()
            rule = self._read(given)
            self._check_free(rule)
            if len(self.rules) >= MOST_RULES:
                what = f"the stream has {MOST_RULES} rules"
                raise Mistake(Problem.ALERT_RULE, what=what, fix="remove one first")
            self._keep({**self._added, rule.fingerprint: rule})
            return rule

    def replace(self, fingerprint: str, given: dict[str, Any]) -> Rule:
        with self._lock:
            self._refresh()
            old, rule = self._changeable(fingerprint), self._read(given)
            if rule.fingerprint != old.fingerprint:
                self._check_free(rule)
            others = [rule if one is old else one for one in self._added.values()]
            self._keep({one.fingerprint: one for one in others})
            return rule

    def remove(self, fingerprint: str) -> None:
        with self._lock:
            self._refresh()
            old = self._changeable(fingerprint)
            self._keep({name: one for name, one in self._added.items() if one is not old})

    def _read(self, given: dict[str, Any]) -> Rule:
        table = RequestTable(given)
        (rule,) = read_rules([table], self._config.name, list(self._config.labels))
        table.finish()
        return rule

    def _check_free(self, rule: Rule) -> None:
        if rule.fingerprint in self._fixed or rule.fingerprint in self._added:
            raise Mistake(Problem.ALERT_RULE_EXISTS, name=rule.name, label=rule.label)

    def _changeable(self, fingerprint: str) -> Rule:
        if fingerprint in self._fixed:
            raise Mistake(Problem.ALERT_RULE_FIXED, name=self._fixed[fingerprint].name)
        if fingerprint not in self._added:
            raise Mistake(Problem.ALERT_RULE_UNKNOWN, given=fingerprint)
        return self._added[fingerprint]

    def _keep(self, added: dict[str, Rule]) -> None:
        content = {"rules": [rule.to_json() for rule in added.values()]}
        self._store.write_setting(self._config.name, NOTE, content)
        self._added = added
        self.changed(self.rules)
