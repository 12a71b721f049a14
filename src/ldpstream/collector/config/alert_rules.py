"""Alert rules, as a [[stream.alert]] table or a request of the API gives them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from ldpstream.collector.alerts.conditions import (
    PROBABILITY,
    RECENT,
    AlertCondition,
    Comparand,
    ConditionKind,
    FewReports,
    LevelChanged,
    NoReports,
    RequiredEvidence,
    Threshold,
    WideInterval,
)
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.config.table import ConfigTable, nearest
from ldpstream.errors import Mistake, Problem
from ldpstream.vocabulary.device import encoded

LONGEST_NAME = 200
CONDITIONS = (
    "above",
    "below",
    ConditionKind.NO_REPORTS,
    ConditionKind.FEW_REPORTS,
    ConditionKind.WIDE,
    ConditionKind.CHANGED,
)
"""The keys of conditions, of which a rule has one."""


class _RequestTable(ConfigTable):
    """A table from a request, whose errors have no line number."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values, Path(), "", ())

    def refuse(self, name: str | None, what: str, fix: str) -> NoReturn:
        raise Mistake(Problem.ALERT_RULE, what=what, fix=fix)


def read_request(
    given: dict[str, Any],
    stream: str,
    labels: list[str] | None,
    groups: Sequence[str] = (),
    *,
    changes: bool = True,
) -> Rule:
    """Read one rule that the API was given, with the keys of the configuration.

    `labels` are those of the stream, or None if it may be about any text.
    """
    table = _RequestTable(given)
    (rule,) = read_rules([table], stream, labels, groups, changes=changes)
    table.finish()
    return rule


def read_rules(
    tables: list[ConfigTable],
    stream: str,
    labels: list[str] | None,
    groups: Sequence[str] = (),
    *,
    changes: bool = True,
) -> tuple[Rule, ...]:
    """Read the [[stream.alert]] tables of a stream, or what the API was given instead."""
    rules: list[Rule] = []
    for table in tables:
        rule = _rule(table, stream, labels, groups, changes)
        if rule.fingerprint in {one.fingerprint for one in rules}:
            table.refuse("name", f"alert {rule.name!r} appears twice", "give it another name")
        rules.append(rule)
    return tuple(rules)


def _rule(
    table: ConfigTable, stream: str, labels: list[str] | None, groups: Sequence[str], changes: bool
) -> Rule:
    condition, group = _condition(table, labels, changes), _group(table, groups)
    usual = condition.title + (f" in {group}" if group else "")
    name = table.text("name", usual)
    # A rule about a long label may be called so: it is stored with its name, and read again.
    if name != usual and not 1 <= len(name) <= LONGEST_NAME:
        table.refuse("name", f"name has {len(name)} characters", f"give 1 to {LONGEST_NAME}")
    return Rule(
        name=name,
        stream=stream,
        condition=condition,
        hold_ms=table.duration("for", "0s"),
        keep_firing_ms=table.duration("keep_firing_for", "0s"),
        group=group,
    )


def _condition(table: ConfigTable, labels: list[str] | None, changes: bool) -> AlertCondition:
    given = [key for key in CONDITIONS if key in table]
    if len(given) != 1:
        fix = f"give either above or below, or one of: {', '.join(CONDITIONS[2:])}"
        table.refuse(None, "an alert has one condition", fix)
    match given[0]:
        case ConditionKind.NO_REPORTS:
            _refuse_label(table)
            return NoReports(table.duration(ConditionKind.NO_REPORTS, least_ms=1))
        case ConditionKind.FEW_REPORTS:
            _refuse_label(table)
            return FewReports(_positive(table, ConditionKind.FEW_REPORTS, most=1.0), _demand(table))
        case ConditionKind.WIDE:
            return WideInterval(_label(table, labels), _positive(table, ConditionKind.WIDE))
        case ConditionKind.CHANGED:
            if not changes:
                what = "changes are not detected in a distribution, nor among texts"
                table.refuse(ConditionKind.CHANGED, what, "give above or below")
            label, by = _label(table, labels), _positive(table, ConditionKind.CHANGED)
            return LevelChanged(label, by, table.whole("within", RECENT, least=1), _demand(table))
        case side:
            label = _label(table, labels)
            return Threshold(label, side == "above", table.number(side), _demand(table))


def _label(table: ConfigTable, labels: list[str] | None) -> str:
    label = table.text("label")
    if labels is None:  # as a release writes it, or the rule would wait for ever
        return encoded(label).decode("utf-8", "replace")
    if label not in labels:
        table.refuse("label", f"{label!r} is not a label", f"use one of: {nearest(label, labels)}")
    return label


def _group(table: ConfigTable, groups: Sequence[str]) -> str:
    """Read the group of devices that a rule is about; empty: the whole fleet."""
    if "group" not in table:
        return ""
    if not ({"above", "below", ConditionKind.WIDE} & set(table)):
        what = "a rule about a group compares its figures with a threshold"
        table.refuse("group", what, f"give above, below or {ConditionKind.WIDE}, or remove group")
    group = table.text("group")
    if group not in groups:
        fix = f"use one of: {nearest(group, groups)}" if groups else "give the stream attributes"
        table.refuse("group", f"{group!r} is no group of this stream's devices", fix)
    return group


def _refuse_label(table: ConfigTable) -> None:
    if "label" in table:
        table.refuse("label", "a rule about reports is about the whole stream", "remove label")


def _positive(table: ConfigTable, key: str, most: float = math.inf) -> float:
    number = table.number(key)
    if not 0 < number <= most:
        fix = "give a number above 0" + (f", at most {most:g}" if math.isfinite(most) else "")
        table.refuse(key, f"{key} is {number}", fix)
    return number


def _demand(table: ConfigTable) -> RequiredEvidence:
    on = Comparand(table.choice("on", tuple(Comparand), Comparand.ESTIMATE))
    if on is Comparand.ESTIMATE and "probability" in table:
        table.refuse("probability", "an estimate has no probability", 'add on = "interval"')
    probability = table.number("probability", PROBABILITY)
    if not 0.5 <= probability < 1:
        table.refuse("probability", f"probability is {probability}", "give 0.5 to less than 1")
    return RequiredEvidence(on, probability)
