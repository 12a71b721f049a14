"""A stream's terms: what is public about it, never changes, and is pinned by every device."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from ldpstream.domain import Domain
from ldpstream.numeric import Numeric, Range
from ldpstream.numeric.collector_half import NumericCollector
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import CollectorHalf
from ldpstream.privacy.epsilon import Epsilon

PROTOCOL_VERSION = 2
"""Of enrolment and of a report's authentication; devices that speak another are refused."""
TERMS_VERSION = 1
"""Of the form of the terms. It is pinned with them."""

MEAN = "mean"
"""What the one figure of a stream of numbers is called, where others have labels."""

Half = CollectorHalf | NumericCollector
"""What reads and counts the reports of a round."""


@dataclass(frozen=True)
class Terms:
    """The terms of a stream (docs/protocol.md): of labels, or of numbers in a range.

    >>> regions = Domain.of(("north", "south"))
    >>> terms = Terms("regions", regions, Epsilon.of(1), 20, 60_000, 0, Oracle.GRR)
    >>> terms.timestamp_at(59_999), terms.timestamp_at(60_000), terms.start_of(2)
    (1, 2, 60000)
    >>> Terms.from_json(terms.to_json()) == terms
    True
    """

    stream: str
    values: Domain | Range
    epsilon: Epsilon
    window: int
    interval_ms: int
    start_ms: int
    oracle: Oracle | Numeric
    other: str | None = None
    """The label that a device reports when it has no usable value, if the stream has one."""

    def to_json(self) -> dict[str, Any]:
        return {
            "version": TERMS_VERSION,
            "stream": self.stream,
            **_query(self.values),
            "epsilon_nano": self.epsilon.nano,
            "window": self.window,
            "interval_ms": self.interval_ms,
            "start_ms": self.start_ms,
            "oracle": self.oracle.value,
            **({} if self.other is None else {"other": self.other}),
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Terms:
        numeric = saved["query"] == MEAN
        return cls(
            saved["stream"],
            Range.from_json(saved) if numeric else Domain.of(saved["labels"]),
            Epsilon(saved["epsilon_nano"]),
            saved["window"],
            saved["interval_ms"],
            saved["start_ms"],
            (Numeric if numeric else Oracle).named(saved["oracle"]),
            saved.get("other"),
        )

    @property
    def names(self) -> tuple[str, ...]:
        return names_of(self.values)

    @property
    def canonical(self) -> str:
        """Canonical JSON: keys sorted, no spaces, no escapes that JSON does not demand."""
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def pin(self) -> str:
        """What devices store of the terms at enrolment, and compare ever after."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    def half(self, epsilon: Epsilon) -> Half:
        """What reads and counts reports of this epsilon."""
        return self.oracle.collector(len(self.values), epsilon)

    def timestamp_at(self, now_ms: int) -> int:
        """The timestamp that `now_ms` falls into; 0 or less before the stream starts."""
        return (now_ms - self.start_ms) // self.interval_ms + 1

    def start_of(self, t: int) -> int:
        return self.start_ms + (t - 1) * self.interval_ms


def names_of(values: Domain | Range) -> tuple[str, ...]:
    """What is released of these values, by name and in order."""
    return (MEAN,) if isinstance(values, Range) else values.labels


def _query(values: Domain | Range) -> dict[str, Any]:
    if isinstance(values, Range):
        return {"query": MEAN, **values.to_json()}
    return {"query": "histogram", "labels": list(values.labels)}
