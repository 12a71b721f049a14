"""When an alert's condition holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import TYPE_CHECKING

from ldpstream.collector.store.contract import Release
from ldpstream.refine.intervals import QUANTILE

if TYPE_CHECKING:
    from ldpstream.collector.config import Table

PROBABILITY = 0.95
"""What the ends of a released interval stand for, each on its side."""


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

    def holds(self, release: Release) -> bool:
        compared = self.compared(release)
        return compared > self.threshold if self.above else compared < self.threshold

    def compared(self, release: Release) -> float:
        """The estimate; or the end of the interval that must be beyond the threshold.

        The released interval holds 0.9, so at probability 0.95 it is that interval's own end. For
        others it is stretched as that of a normal distribution.
        """
        content, place = release.content, self.place
        if self.on is On.ESTIMATE:
            return float(content["values"][place])
        low, high = content["low"][place], content["high"][place]
        if self.probability == PROBABILITY:
            return float(low if self.above else high)
        reach = (high - low) / 2 * NormalDist().inv_cdf(self.probability) / QUANTILE
        centre = (low + high) / 2
        return float(centre - reach if self.above else centre + reach)

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
    """The [[stream.alert]] tables of a stream."""
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
    threshold = table.number("above" if above else "below")
    on = On(table.choice("on", tuple(On), On.ESTIMATE))
    if on is On.ESTIMATE and "probability" in table:
        table.refuse("probability", "an estimate has no probability", 'add on = "interval"')
    probability = table.number("probability", PROBABILITY)
    if not 0.5 <= probability < 1:
        table.refuse("probability", f"probability is {probability}", "give 0.5 to less than 1")
    usual = f"{label} {'above' if above else 'below'} {threshold:g}"
    return Rule(
        name=table.text("name", usual),
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
