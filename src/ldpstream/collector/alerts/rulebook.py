"""The rules of one stream: those of the file, which stay, and those of the API, which may change.

Rules of the API are kept in the store with the keys of the configuration, and read by the same
code. A rule is identified by its fingerprint, which is that of its alert.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.store.contract import Store
from ldpstream.errors import Mistake, Problem

NOTE = "alert-rules"
MOST_RULES = 500
"""Rules of one stream: each of them is evaluated at every release."""

Rules = dict[str, Rule]
"""By fingerprint."""


class ReadRule(Protocol):
    """Reads a rule with the keys of the configuration."""

    def __call__(self, given: dict[str, Any], *, kept: bool = False) -> Rule: ...


class RuleBook:
    """The rules of one stream; `changed` is called with all of them after each change."""

    def __init__(
        self,
        stream: str,
        fixed: tuple[Rule, ...],
        store: Store,
        read: ReadRule,
    ) -> None:
        self._stream = stream
        self._store = store
        self._read = read
        """Reads a rule that the API is given, or refuses it; one that is kept may be about a label
        that is gone: it waits, and never fires."""
        self._lock = threading.Lock()
        self.changed: Callable[[tuple[Rule, ...]], None] = lambda rules: None
        self._fixed = {rule.fingerprint: rule for rule in fixed}
        self._added = self._kept()

    def _kept(self) -> Rules:
        return self._rules_of(self._store.note(self._stream, NOTE))

    def _rules_of(self, note: dict[str, Any] | None) -> Rules:
        """The rules that the API was given, without those that the file has by now."""
        added = [self._read(given, kept=True) for given in (note or {"rules": []})["rules"]]
        return {one.fingerprint: one for one in added if one.fingerprint not in self._fixed}

    def use(self, fixed: tuple[Rule, ...], read: ReadRule) -> None:
        """Use the rules and labels of a file that was read again."""
        with self._lock:
            self._fixed, self._read = {rule.fingerprint: rule for rule in fixed}, read
            self._use(self._kept())

    def refresh(self) -> None:
        """Read the rules again, which another collector of the same store may have changed."""
        if not self._store.shared:
            return
        with self._lock:
            kept = self._kept()
            if kept != self._added:
                self._use(kept)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple({**self._fixed, **self._added}.values())

    def is_fixed(self, rule: Rule) -> bool:
        """Return whether the rule is in the file."""
        return rule.fingerprint in self._fixed

    def find(self, fingerprint: str) -> Rule:
        """Return the rule with this fingerprint; raise `Mistake` if there is none."""
        for rule in self.rules:
            if rule.fingerprint == fingerprint:
                return rule
        raise Mistake(Problem.ALERT_RULE_UNKNOWN, given=fingerprint)

    def add(self, given: dict[str, Any]) -> Rule:
        rule = self._read(given)

        def change(added: Rules) -> Rules:
            self._check_free(rule, added)
            if len(self._fixed) + len(added) >= MOST_RULES:
                what = f"the stream has {MOST_RULES} rules"
                raise Mistake(Problem.ALERT_RULE, what=what, fix="remove one first")
            return {**added, rule.fingerprint: rule}

        self._change(change)
        return rule

    def replace(self, fingerprint: str, given: dict[str, Any]) -> Rule:
        rule = self._read(given)

        def change(added: Rules) -> Rules:
            old = self._changeable(fingerprint, added)
            if rule.fingerprint != old.fingerprint:
                self._check_free(rule, added)
            others = [rule if one is old else one for one in added.values()]
            return {one.fingerprint: one for one in others}

        self._change(change)
        return rule

    def remove(self, fingerprint: str) -> None:
        def change(added: Rules) -> Rules:
            old = self._changeable(fingerprint, added)
            return {name: one for name, one in added.items() if one is not old}

        self._change(change)

    def _check_free(self, rule: Rule, added: Rules) -> None:
        if rule.fingerprint in self._fixed or rule.fingerprint in added:
            raise Mistake(Problem.ALERT_RULE_EXISTS, name=rule.name, about=rule.about)

    def _changeable(self, fingerprint: str, added: Rules) -> Rule:
        if fingerprint in self._fixed:
            raise Mistake(Problem.ALERT_RULE_FIXED, name=self._fixed[fingerprint].name)
        if fingerprint not in added:
            raise Mistake(Problem.ALERT_RULE_UNKNOWN, given=fingerprint)
        return added[fingerprint]

    def _change(self, change: Callable[[Rules], Rules]) -> None:
        """Change the stored rules, which may have been changed through another collector."""

        def written(note: dict[str, Any] | None) -> dict[str, Any]:
            return {"rules": [rule.to_json() for rule in change(self._rules_of(note)).values()]}

        with self._lock:
            kept = self._store.change_setting(self._stream, NOTE, written)
            self._use(self._rules_of(kept))

    def _use(self, added: Rules) -> None:
        self._added = added
        self.changed(self.rules)
