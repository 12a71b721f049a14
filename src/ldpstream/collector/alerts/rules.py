"""When an alert's condition holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ldpstream.collector.alerts.evidence import Evidence

if TYPE_CHECKING:
    from ldpstream.collector.config import Table

PROBABILITY = 0.95
"""What the ends of a released interval stand for, each on its side: the usual demand."""

LONGEST_NAME = 200


class On(StrEnum):
    """What is compared with the threshold."""

    ESTIMATE = "estimate"
    INTERVAL = "interval"


@dataclass(frozen=True)
class Rule:
    """A label, a threshold, and how sure and how lasting its crossing must be."""

    name: str
    stream: str
    label: str
    place: int
    """Of the label in the domain."""
    above: bool
    threshold: float
    on: On = On.ESTIMATE
    probability: float = PROBABILITY
    """With `On.INTERVAL`: that the truth is really beyond the threshold, at least."""
    hold_ms: int = 0
    keep_firing_ms: int = 0

    def holds(self, evidence: Evidence) -> bool:
        if self.on is On.INTERVAL:
            return self.sure(evidence) >= self.probability
        value = evidence.value(self.place)
        return value > self.threshold if self.above else value < self.threshold

    def sure(self, evidence: Evidence) -> float:
        """The probability that the truth is beyond the threshold."""
        above = evidence.probability_above(self.place, self.threshold)
        return above if self.above else 1 - above

    def to_json(self) -> dict[str, Any]:
        """In the words of the configuration; `read_rules` makes the same rule of it."""
        return {
            "name": self.name,
            "label": self.label,
            "above" if self.above else "below": self.threshold,
            "on": self.on.value,
            **({"probability": self.probability} if self.on is On.INTERVAL else {}),
            "for": f"{self.hold_ms}ms",
            "keep_firing_for": f"{self.keep_firing_ms}ms",
        }

    @property
    def labels(self) -> dict[str, str]:
        """What tells its alert from others."""
        return {"alertname": self.name, "label": self.label, "stream": self.stream}

    @property
    def fingerprint(self) -> str:
        """As Alertmanager makes it: FNV-1a over the sorted labels.

        >>> Rule("a", "s", "x", 0, True, 0.5).fingerprint
        'a6561eefc7109978'
        """
        total = 14695981039346656037
        for item in sorted(self.labels.items()):
            for byte in b"".join(part.encode() + b"\xff" for part in item):
                total = (total ^ byte) * 1099511628211 % (1 << 64)
        return f"{total:016x}"

    @property
    def condition(self) -> str:
        """For people."""
        return f"{self.label} {'above' if self.above else 'below'} {self.threshold:g}"


def read_rules(tables: list[Table], stream: str, labels: list[str]) -> tuple[Rule, ...]:
    """The [[stream.alert]] tables of a stream, or what the API was given in their place."""
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
        table.refuse("label", f"{label!r} is no label", f"use one of: {', '.join(labels[:8])}")
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
        place=labels.index(label),
        above=above,
        threshold=threshold,
        on=on,
        probability=probability,
        hold_ms=table.duration("for", "0s"),
        keep_firing_ms=table.duration("keep_firing_for", "0s"),
    )
