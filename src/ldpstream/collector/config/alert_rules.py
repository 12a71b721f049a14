"""Alert rules, as a [[stream.alert]] table or a request of the API gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from ldpstream.collector.alerts.rules import PROBABILITY, On, Rule
from ldpstream.collector.config.table import Table
from ldpstream.errors import Mistake, Problem

LONGEST_NAME = 200


class _RequestTable(Table):
    """A table that came with a request: there is no line to point at."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values, Path(), "", ())

    def refuse(self, name: str | None, what: str, fix: str) -> NoReturn:
        raise Mistake(Problem.ALERT_RULE, what=what, fix=fix)


def read_request(given: dict[str, Any], stream: str, labels: list[str]) -> Rule:
    """Read one rule that the API was given, with the keys of the configuration."""
    table = _RequestTable(given)
    (rule,) = read_rules([table], stream, labels)
    table.finish()
    return rule


def read_rules(tables: list[Table], stream: str, labels: list[str]) -> tuple[Rule, ...]:
    """Read the [[stream.alert]] tables of a stream, or what the API was given instead."""
    rules: list[Rule] = []
    for table in tables:
        rule = _rule(table, stream, labels)
        if rule.fingerprint in {one.fingerprint for one in rules}:
            table.refuse("name", f"alert {rule.name!r} stands twice", "give it another name")
        rules.append(rule)
    return tuple(rules)


def _rule(table: Table, stream: str, labels: list[str]) -> Rule:
    label = table.text("label")
    if label not in labels:
        table.refuse("label", f"{label!r} is not a label", f"use one of: {', '.join(labels[:8])}")
    above = "above" in table
    if above == ("below" in table):
        table.refuse(None, "an alert has one threshold", "give either above or below")
    side = "above" if above else "below"
    threshold = table.number(side)
    on = On(table.choice("on", tuple(On), On.ESTIMATE))
    if on is On.ESTIMATE and "probability" in table:
        table.refuse("probability", "an estimate has no probability", 'add on = "interval"')
    probability = table.number("probability", PROBABILITY)
    if not 0.5 <= probability < 1:
        table.refuse("probability", f"probability is {probability}", "give 0.5 to less than 1")
    name = table.text("name", f"{label} {side} {threshold:g}")
    if "name" in table and not 1 <= len(name) <= LONGEST_NAME:
        table.refuse("name", f"name has {len(name)} characters", f"give 1 to {LONGEST_NAME}")
    return Rule(
        name=name,
        stream=stream,
        label=label,
        above=above,
        threshold=threshold,
        on=on,
        probability=probability,
        hold_ms=table.duration("for", "0s"),
        keep_firing_ms=table.duration("keep_firing_for", "0s"),
    )
