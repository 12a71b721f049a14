"""Alert rules: when the condition of an alert holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ldpstream.collector.alerts.evidence import Evidence

PROBABILITY = 0.95
"""The default: the one-sided probability of each end of a released interval."""


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
    above: bool
    threshold: float
    on: On = On.ESTIMATE
    probability: float = PROBABILITY
    """With `On.INTERVAL`: how probable it must be that the truth is beyond the threshold."""
    hold_ms: int = 0
    keep_firing_ms: int = 0

    def holds(self, evidence: Evidence) -> bool:
        """Return whether its condition holds: never for a label that the release does not have."""
        figure = evidence.figure(self.label)
        if figure is None:
            return False
        if self.on is On.INTERVAL:
            return self.sure(evidence) >= self.probability
        return figure.value > self.threshold if self.above else figure.value < self.threshold

    def sure(self, evidence: Evidence) -> float:
        """The probability that the truth is beyond the threshold, of a label of the release."""
        above = evidence.probability_above(self.label, self.threshold)
        return above if self.above else 1 - above

    def to_json(self) -> dict[str, Any]:
        """The rule with the keys of the configuration, from which `read_rules` reads it again."""
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
        """The labels that identify its alert."""
        return {"alertname": self.name, "label": self.label, "stream": self.stream}

    @property
    def fingerprint(self) -> str:
        """The fingerprint that Alertmanager computes: FNV-1a over the sorted labels.

        >>> Rule("a", "s", "x", True, 0.5).fingerprint
        'a6561eefc7109978'
        """
        total = 14695981039346656037
        for item in sorted(self.labels.items()):
            for byte in b"".join(part.encode() + b"\xff" for part in item):
                total = (total ^ byte) * 1099511628211 % (1 << 64)
        return f"{total:016x}"

    @property
    def condition(self) -> str:
        """The condition in words, such as `x above 0.5`."""
        return f"{self.label} {'above' if self.above else 'below'} {self.threshold:g}"
