"""Differences between a stream's file and its stored terms, and what each requires.

A change is free, needs a successor (docs/collector.md), or is impossible. Only this module
decides that: `serve` asks before it refuses, and `serve --check --against` in advance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from ldpstream.collector.config import StreamConfig
from ldpstream.domain import Domain
from ldpstream.durations import spelled
from ldpstream.numeric import Range
from ldpstream.protocol.attributes import Attributes
from ldpstream.protocol.strata import Level, Succession
from ldpstream.protocol.succession import objection
from ldpstream.protocol.terms import Terms, Values
from ldpstream.vocabulary import Vocabulary

KEYS = {
    "interval_ms": "interval",
    "start_ms": "start",
    "deadline_ms": "deadlines",
    "levels": "level",
}
"""The keys of the file for those members of the terms that are called otherwise."""


class Requirement(StrEnum):
    """What a change takes."""

    FREE = "free"
    SUCCESSOR = "successor"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True)
class Difference:
    """One difference between file and store, in words, and what it takes."""

    key: str
    """The key of the file."""
    stored: str
    given: str
    verdict: Requirement
    why: str = ""
    """Why it cannot be, or what a free change costs."""


def levels_of(config: StreamConfig, stored: Terms | None = None) -> tuple[Level, ...]:
    """Return the levels that a file describes; an oracle that it does not name stays."""
    known = {} if stored is None else {one.name: one.oracle for one in stored.levels}
    return tuple(
        Level(
            one.name,
            one.epsilon,
            one.window,
            one.oracle or known.get(one.name) or config.oracle_at(one),
        )
        for one in config.levels
    )


def described(
    config: StreamConfig, values: Values, start_ms: int, succeeds: Succession | None = None
) -> Terms:
    """Return the terms that a file describes; what devices would refuse is not refused here."""
    return Terms(
        config.name,
        values,
        config.epsilon,
        config.window,
        config.interval_ms,
        start_ms if config.start_ms is None else config.start_ms,
        config.oracle_at(),
        config.other,
        config.selection,
        config.slot_deadline_ms,
        levels_of(config),
        succeeds,
        config.attributes,
    )


def differences(config: StreamConfig, terms: Terms) -> Iterator[Difference]:
    """Yield the differences between a configuration and stored terms."""
    for name, given in _described(config, terms):
        stored = getattr(terms, name)
        if given == stored:
            continue
        why = _impossible(terms, name, given)
        yield Difference(
            _key(name, given),
            _in_words(name, stored),
            _in_words(name, given),
            Requirement.IMPOSSIBLE if why else Requirement.SUCCESSOR,
            why or "",
        )


def _described(config: StreamConfig, terms: Terms) -> Iterator[tuple[str, Any]]:
    """Yield the members of the terms that the file gives; what it leaves open is as it was."""
    for name in ("values", "epsilon", "window", "interval_ms", "start_ms", "oracle"):
        given = getattr(config, name)
        if given is not None:
            yield name, given
    yield "other", config.other
    if terms.selection is not None:
        yield "selection", config.selection
        yield "deadline_ms", config.slot_deadline_ms
        yield "levels", levels_of(config, terms)
        yield "attributes", config.attributes


def _impossible(old: Terms, name: str, given: Any) -> str | None:
    """Return why no terms with this member can follow the old ones; None if they can."""
    if old.selection is None:
        return "the stream was begun by release 0.1.0, whose terms can have no successor"
    values = given if name == "values" else old.values
    if isinstance(values, Vocabulary) or isinstance(old.values, Vocabulary):
        return "a stream of texts can have no successor"
    called = None
    if old.domain is not None and isinstance(values, Domain):
        called = values.labels[:1] * len(old.domain)  # what each is called is told elsewhere
    succeeds = Succession(old.pin, old.version + 1, 1, 1, called)
    new = replace(old, **{name: given, "succeeds": succeeds})
    for stratum in old.strata:
        why = objection(stratum, new)
        if why is not None:
            return f"{why} at level {stratum.level}" if stratum.level else why
    return None


def _key(name: str, given: Any) -> str:
    if name == "values":
        if isinstance(given, Vocabulary):
            return "vocabulary"
        return "labels" if isinstance(given, Domain) else "range"
    return KEYS.get(name, name)


def _in_words(name: str, value: Any) -> str:
    if name == "start_ms":
        return datetime.fromtimestamp(value / 1000, UTC).isoformat()
    if name.endswith("_ms") and value is not None:
        return spelled(value)
    if isinstance(value, Domain):
        return ", ".join(value.labels)
    if isinstance(value, Attributes):
        return "; ".join(f"{one.name}: {', '.join(one.declared)}" for one in value.each)
    if isinstance(value, Range):
        ends, bins = value.to_json(), getattr(value, "bins", None)
        return f"{ends['low']} to {ends['high']}" + (f" in {bins} bins" if bins else "")
    if isinstance(value, Vocabulary):
        lengths = ", ".join(map(str, value.prefixes)) or "none"
        return f"salt {value.salt:016x}, {value.bits} bits, prefixes {lengths}"
    if isinstance(value, tuple):
        told = (f"{one.name} {one.epsilon} in {one.window} by {one.oracle}" for one in value)
        return ", ".join(told) or "nothing"
    if isinstance(value, str) and not isinstance(value, StrEnum):
        return repr(value)
    return "nothing" if value is None else str(value)
