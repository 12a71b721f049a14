"""What a device agreed to at enrolment: the terms of one stream, and the pin that names them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NoReturn

from ldpstream.domain import Domain
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon

VERSION = 1
QUERY = "histogram"
LONGEST_WINDOW = 1 << 31
LONGEST_INTERVAL_MS = 1 << 41
"""About 70 years."""
LATEST_MS = 1 << 52

_STREAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def shown(value: object) -> str:
    """What a stranger sent, short and printable, for a message."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def whole(value: object, least: int, most: int) -> bool:
    """Whether it is an integer in this range. JSON's true is no number here, though Python's is."""
    return type(value) is int and least <= value <= most


class TermsRefused(LdpStreamError):
    """The collector wants something that this device did not, or cannot, agree to."""


@dataclass(frozen=True)
class Terms:
    """The public terms of a stream; they never change.

    >>> terms = Terms.read({
    ...     "version": 1, "stream": "regions", "query": "histogram", "labels": ["north", "süd"],
    ...     "epsilon_nano": 10**9, "window": 20, "interval_ms": 60000, "start_ms": 0,
    ...     "oracle": "grr"})
    >>> terms.pin[:16], terms.timestamp_at(60_000)
    ('df794d2e92bb4234', 2)
    """

    version: int
    stream: str
    query: str
    labels: tuple[str, ...]
    epsilon_nano: int
    window: int
    interval_ms: int
    start_ms: int
    oracle: str

    @classmethod
    def read(cls, sent: object) -> Terms:
        """Check what a collector sent. A key that this version does not know may loosen another."""
        if not isinstance(sent, dict) or sent.keys() != cls.__dataclass_fields__.keys():
            _malformed("the keys", sent if not isinstance(sent, dict) else sorted(map(str, sent)))
        _check("version", sent, sent["version"] == VERSION and type(sent["version"]) is int)
        _check("query", sent, sent["query"] == QUERY)
        _check("stream", sent, _is_stream_name(sent["stream"]))
        _check("labels", sent, _are_labels(sent["labels"]))
        _check("window", sent, whole(sent["window"], 1, LONGEST_WINDOW))
        _check("interval_ms", sent, whole(sent["interval_ms"], 1, LONGEST_INTERVAL_MS))
        _check("start_ms", sent, whole(sent["start_ms"], 0, LATEST_MS))
        _check("epsilon_nano", sent, type(sent["epsilon_nano"]) is int)
        _check("oracle", sent, isinstance(sent["oracle"], str))
        try:
            Domain.of(sent["labels"])
            Epsilon(sent["epsilon_nano"])
            Oracle(sent["oracle"])
        except (Mistake, ValueError) as error:
            raise TermsRefused(Problem.TERMS_MALFORMED, what=shown(str(error))) from None
        return cls(**{**sent, "labels": tuple(sent["labels"])})

    @cached_property
    def canonical(self) -> str:
        """JSON with sorted keys, no spaces, and no escapes that JSON does not demand."""
        return json.dumps(
            asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )

    @cached_property
    def pin(self) -> str:
        """The SHA-256 of the canonical form: what a device holds the collector to."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    @cached_property
    def domain(self) -> Domain:
        return Domain(self.labels)

    @property
    def epsilon(self) -> Epsilon:
        return Epsilon(self.epsilon_nano)

    @property
    def slack_ms(self) -> int:
        """How far clocks may disagree before it matters: an eighth of an interval."""
        return self.interval_ms // 8

    def timestamp_at(self, ms: int) -> int:
        """The timestamp that this moment belongs to; below 1 before the stream starts."""
        return (ms - self.start_ms) // self.interval_ms + 1


def _is_stream_name(name: object) -> bool:
    return isinstance(name, str) and _STREAM.fullmatch(name) is not None


def _are_labels(labels: object) -> bool:
    """Strings, and such as UTF-8 can write: no lone surrogates."""
    return isinstance(labels, list) and all(
        isinstance(label, str) and not any("\ud800" <= sign <= "\udfff" for sign in label)
        for label in labels
    )


def _check(name: str, sent: dict[str, Any], holds: bool) -> None:
    if not holds:
        _malformed(name, sent[name])


def _malformed(name: str, given: object) -> NoReturn:
    raise TermsRefused(Problem.TERMS_MALFORMED, what=f"{name}: {shown(given)}")
