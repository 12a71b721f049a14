"""What a reload of the configuration file changes while the collector runs, and what it cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.config import Config, StreamConfig, Suspicion
from ldpstream.collector.config.stream import AUTO
from ldpstream.collector.releases.retention import Retention
from ldpstream.collector.rounds.changes import KEYS, Requirement
from ldpstream.collector.rounds.store_comparison import compare
from ldpstream.collector.service.checking import check_releases
from ldpstream.collector.store.contract import Store
from ldpstream.durations import spelled
from ldpstream.errors import Mistake

FIXED = {
    "host": "listen",
    "port": "listen",
    "store": "store",
    "database": "store",
    "ingest": "ingest",
    "lease_ms": "lease",
    "secret_files": "the files of secrets",
    "webhook": "webhook",
    "external_url": "external_url",
}
"""What a collector is built around, by the key of the file: it takes a restart."""
FEW = 5
_OF_TERMS = frozenset(
    {"values", "epsilon", "window", "interval_ms", "start_ms", "oracle", "other", "selection"}
    | {"levels", "attributes", "successor", "name", "source", "selection_given", "population"}
    | {"vocabulary"}
)
"""What is compared with the store's terms, or is no setting of its own."""


@dataclass(frozen=True)
class Reload:
    """What becomes of a file that is read again, in lines for people."""

    changes: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    """What the file says otherwise and takes a restart, or cannot be."""
    refused: tuple[str, ...] = ()
    """Why nothing is changed at all; empty: all else is."""

    def to_json(self) -> dict[str, Any]:
        return {
            "changed": bool(self.changes) and not self.refused,
            "changes": list(self.changes),
            "stays": list(self.stays),
            "refused": list(self.refused),
        }


def plan(old: Config, new: Config, store: Store, now_ms: int) -> Reload:
    """Say what a reload would do; nothing is changed."""
    running = {stream.name: stream for stream in old.streams}
    changes: list[str] = [*_limits(old, new)]
    stays, refused = [*_fixed(old, new)], []
    for stream in new.streams:
        compared = compare(stream, store, now_ms)
        if compared.refusal is not None:
            refused.append(compared.refusal)
        if stream.name not in running:
            known = "goes on" if compared.latest is not None else "begins"
            changes.append(f"{stream.name}: {known}")
            try:
                check_releases(store, [stream.name])
            except Mistake as damage:
                refused.append(str(damage))
            continue
        told = {
            one.key: f"{one.key} = {one.stored} -> {one.given}"
            + (f" ({one.why})" if one.why else "")
            for one in compared.differences
            if one.verdict is not Requirement.IMPOSSIBLE
        }
        if compared.successor is not None and (follows := compared.successor.succeeds) is not None:
            told[""] = f"version {follows.version} of its terms, in force from t={follows.from_t}"
        own = dict(_of_stream(running[stream.name], stream))
        if not running[stream.name].follows_fleet:  # a given number is known better than the store
            told |= {key: line for key, line in own.items() if key == "population"}
        lines = {**own, **told}
        changes += [f"{stream.name}: {line}" for line in lines.values()]
    gone = running.keys() - {stream.name for stream in new.streams}
    goes_on = "not in the file, and goes on; to end it, write it: retired = true"
    stays += [f"{name}: {goes_on}" for name in gone]
    return Reload(tuple(changes), tuple(sorted(stays)), tuple(refused))


def applied(old: Config, new: Config) -> Config:
    """Return the configuration of a collector that has reloaded its file."""
    gone = [one for one in old.streams if one.name not in {each.name for each in new.streams}]
    fixed = {name: getattr(old, name) for name in FIXED}
    return replace(new, **fixed, streams=(*new.streams, *gone))


def _fixed(old: Config, new: Config) -> Iterator[str]:
    changed = [key for name, key in FIXED.items() if getattr(old, name) != getattr(new, name)]
    for key in dict.fromkeys(changed):
        yield f"{key}: takes a restart"


def _limits(old: Config, new: Config) -> Iterator[str]:
    for one in fields(old.limits):
        before, now = getattr(old.limits, one.name), getattr(new.limits, one.name)
        if before != now:
            yield f"limits: {one.name} = {before} -> {now}"


def _of_stream(old: StreamConfig, new: StreamConfig) -> Iterator[tuple[str, str]]:
    """Yield the settings of a stream that differ and are in no terms, by their keys, in words."""
    for one in fields(StreamConfig):
        before, now = getattr(old, one.name), getattr(new, one.name)
        if one.name == "follows_fleet":
            if (before, now) != (False, False) and before != now:
                yield "population", f"population = {_population(old)} -> {_population(new)}"
        elif one.name not in _OF_TERMS and before != now:
            key = KEYS.get(one.name, one.name)
            told = _texts if one.name == "candidates" else _in_words
            yield key, f"{key} = {told(before)} -> {told(now)}"
    if not (old.follows_fleet or new.follows_fleet) and old.population != new.population:
        yield "population", f"population = {old.population} -> {new.population}"


def _population(stream: StreamConfig) -> str:
    return AUTO if stream.follows_fleet else str(stream.population)


def _texts(candidates: Sequence[str]) -> str:
    """Describe a list by its length, and by its items if they are few."""
    few = ", ".join(map(repr, candidates)) if len(candidates) <= FEW else ""
    return f"{len(candidates)} texts" + (f" ({few})" if few else "")


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Suspicion):
        return f"false_alarm {value.false_alarm:g}, discard {_in_words(value.discard)}"
    if isinstance(value, Retention):
        ages = vars(value).items()
        told = [f"{name.removesuffix('_ms')} {spelled(ms)}" for name, ms in ages if ms is not None]
        return ", ".join(told) or "keep all"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one:g}" for name, one in value.items()) or "nothing"
    if isinstance(value, tuple | frozenset):
        names = (one.name if isinstance(one, Rule) else str(one) for one in value)
        return ", ".join(sorted(names)) or "nothing"
    if is_dataclass(value):
        return "as it is written"
    return "nothing" if value is None else str(value)
