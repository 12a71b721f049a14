"""Alert rules: a condition, and how lasting it must be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ldpstream.collector.alerts.conditions import AlertCondition
from ldpstream.collector.alerts.evidence import AlertEvidence
from ldpstream.collector.store.groups import of_group, split


@dataclass(frozen=True)
class Rule:
    """A condition on a stream, its name, and how long it must hold, or not hold any more."""

    name: str
    stream: str
    condition: AlertCondition
    hold_ms: int = 0
    keep_firing_ms: int = 0
    group: str = ""
    """The group of devices that it is about, such as "country:de"; empty: the whole fleet."""

    def seen(self, evidence: AlertEvidence) -> AlertEvidence:
        """Return the release as this rule looks at it: with the figures of its group."""
        if not self.group:
            return evidence
        return replace(evidence, release=of_group(evidence.release, split(self.group)))

    def verdict(self, evidence: AlertEvidence) -> bool | None:
        """Return whether its condition holds, or None if the release is no evidence for either."""
        seen = self.seen(evidence)
        return None if seen.is_hidden else self.condition.verdict(seen)

    @property
    def title(self) -> str:
        """The condition in a few words, and the group that it is about."""
        return self.condition.title + (f" in {self.group}" if self.group else "")

    @property
    def label(self) -> str | None:
        """The label that the rule is about; None if it is about the stream."""
        return self.condition.label

    @property
    def about(self) -> str:
        """What it is about, in words."""
        about = "the stream" if self.label is None else f"label {self.label!r}"
        return about + (f" in {self.group}" if self.group else "")

    def to_json(self) -> dict[str, Any]:
        """The rule with the keys of the configuration, from which `read_rules` reads it again."""
        return {
            "name": self.name,
            **self.condition.to_json(),
            **({"group": self.group} if self.group else {}),
            "for": f"{self.hold_ms}ms",
            "keep_firing_for": f"{self.keep_firing_ms}ms",
        }

    @property
    def labels(self) -> dict[str, str]:
        """The labels that identify its alert."""
        about = {} if self.label is None else {"label": self.label}
        part = {"group": self.group} if self.group else {}
        return {"alertname": self.name, "stream": self.stream} | about | part

    @property
    def fingerprint(self) -> str:
        """The fingerprint that Alertmanager computes: FNV-1a over the sorted labels.

        >>> from ldpstream.collector.alerts.conditions import Threshold
        >>> Rule("a", "s", Threshold("x", above=True, threshold=0.5)).fingerprint
        'a6561eefc7109978'
        """
        total = 14695981039346656037
        for item in sorted(self.labels.items()):
            for byte in b"".join(part.encode() + b"\xff" for part in item):
                total = (total ^ byte) * 1099511628211 % (1 << 64)
        return f"{total:016x}"
