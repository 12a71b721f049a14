"""A stream's terms: what is public about it, never changes, and is pinned by every device."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon

PROTOCOL_VERSION = 1


@dataclass(frozen=True)
class Terms:
    """The terms of a histogram stream (docs/protocol.md).

    >>> terms = Terms("regions", ("north", "south"), Epsilon.of(1), 20, 60_000, 0, Oracle.GRR)
    >>> terms.timestamp_at(59_999), terms.timestamp_at(60_000), terms.start_of(2)
    (1, 2, 60000)
    >>> Terms.from_json(terms.to_json()) == terms
    True
    """

    stream: str
    labels: tuple[str, ...]
    epsilon: Epsilon
    window: int
    interval_ms: int
    start_ms: int
    oracle: Oracle

    def to_json(self) -> dict[str, Any]:
        return {
            "version": PROTOCOL_VERSION,
            "stream": self.stream,
            "query": "histogram",
            "labels": list(self.labels),
            "epsilon_nano": self.epsilon.nano,
            "window": self.window,
            "interval_ms": self.interval_ms,
            "start_ms": self.start_ms,
            "oracle": self.oracle.value,
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Terms:
        return cls(
            saved["stream"],
            tuple(saved["labels"]),
            Epsilon(saved["epsilon_nano"]),
            saved["window"],
            saved["interval_ms"],
            saved["start_ms"],
            Oracle.named(saved["oracle"]),
        )

    @property
    def canonical(self) -> str:
        """Canonical JSON: keys sorted, no spaces, no escapes that JSON does not demand."""
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def pin(self) -> str:
        """What devices store of the terms at enrolment, and compare ever after."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    def timestamp_at(self, now_ms: int) -> int:
        """The timestamp that `now_ms` falls into; 0 or less before the stream starts."""
        return (now_ms - self.start_ms) // self.interval_ms + 1

    def start_of(self, t: int) -> int:
        return self.start_ms + (t - 1) * self.interval_ms
