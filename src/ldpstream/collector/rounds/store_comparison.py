"""`serve --check FILE --against STORE`: a dry run of what `serve` would change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ldpstream.collector.alerts.rulebook import NOTE as RULES
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.config.stream import AUTO
from ldpstream.collector.rounds.changes import Difference, Requirement, differences
from ldpstream.collector.rounds.loading import (
    POPULATION,
    last_population,
    mechanism_of,
    settled,
)
from ldpstream.collector.rounds.succession import make_successor, urgent
from ldpstream.collector.store.contract import Archive, Store, StoredStream
from ldpstream.errors import Mistake
from ldpstream.mechanisms.registry import names, recipe
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import Terms

ALWAYS_FREE = (
    "population, mechanism, alerts, thresholds, least_group, candidates, who may read and enrol,"
    " suspicion, retention"
)
"""What no device has pinned. So are the deadlines of rounds that devices are asked in."""


@dataclass(frozen=True)
class StoreComparison:
    """One stream of a file, as it is described there and in a store."""

    config: StreamConfig
    latest: Terms | None
    """The newest terms in the store, or None if it does not have the stream."""
    differences: tuple[Difference, ...] = ()
    successor: Terms | None = None
    """The terms that `serve` would add."""
    refusal: str | None = None
    """Why `serve` would refuse the file, in one line."""
    remarks: tuple[str, ...] = ()

    @property
    def to_write(self) -> str | None:
        """The section to add to the file, if nothing else is missing."""
        if self.refusal is None or self.latest is None or self.config.successor is not None:
            return None
        if any(one.verdict is Requirement.IMPOSSIBLE for one in self.differences):
            return None
        lines = ["[stream.successor]", f"version = {self.latest.version + 1}"]
        gone = [name for name in self.latest.names if name not in self.config.labels]
        if gone:
            renamed = ", ".join(f'"{name}" = "..."' for name in gone)
            lines.append(f"rename = {{ {renamed} }}  # what each is called now, or joins")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        place = self.config.source
        succeeds = None if self.successor is None else self.successor.succeeds
        return {
            "stream": self.config.name,
            "version": None if self.latest is None else self.latest.version,
            "differences": [
                {
                    "key": one.key,
                    "line": place.line(one.key),
                    "stored": one.stored,
                    "given": one.given,
                    "verdict": one.verdict.value,
                    "why": one.why,
                }
                for one in self.differences
            ],
            "successor": succeeds and succeeds.to_json(),
            "refusal": self.refusal,
            "to_write": self.to_write,
            "remarks": list(self.remarks),
        }


def compare(config: StreamConfig, archive: Archive | Store, now_ms: int) -> StoreComparison:
    """Compare a stream of a file with a store; nothing is changed."""
    stored = archive.stream(config.name)
    if stored is None:
        return StoreComparison(config, None)
    history = TermsHistory.read(stored.versions)
    latest, successor, refusal = history.latest, None, None
    found: list[Difference] = []
    try:
        config = settled(config, latest, stored.mechanism)
        of_terms = list(differences(config, latest))
        found = [*of_terms, *_free(config, history, stored)]
        if of_terms:
            successor = make_successor(config, latest, urgent(of_terms), now_ms, stored.last_t)
    except Mistake as mistake:
        refusal = str(mistake)
    remarks = (*_idle_rules(config, archive.note(config.name, RULES)), *config.warnings)
    return StoreComparison(config, latest, tuple(found), successor, refusal, remarks)


def _free(
    config: StreamConfig, history: TermsHistory, stored: StoredStream
) -> Iterator[Difference]:
    """Yield what the file changes of the mechanism, as far as its stored state shows it."""
    terms = history.at(max(stored.last_t, 1))
    if stored.mechanism is None or type(config.values) is not type(terms.values):
        return
    if config.vocabulary is not None:
        yield from _of_population(config, stored.mechanism)
        return
    mechanism = mechanism_of(config, terms)
    before, now = stored.mechanism, mechanism.save()
    anew = "; ".join(mechanism.adopt(before))
    if _name(before) != _name(now):
        cost = f"begins anew: {anew}" if anew else ""
        yield Difference("mechanism", _name(before), config.mechanism, Requirement.FREE, cost)
    yield from _of_population(config, before)


def _of_population(config: StreamConfig, before: dict[str, Any]) -> Iterator[Difference]:
    followed = POPULATION in before
    known, given = last_population(before), AUTO if config.follows_fleet else config.population
    if followed != config.follows_fleet or (known not in (None, given) and not followed):
        stored_as = f"{AUTO} ({known} now)" if followed else str(known or "another one")
        yield Difference("population", stored_as, str(given), Requirement.FREE)


def _name(saved: dict[str, Any]) -> str:
    """Return the name of the mechanism that saved a state, or what it is made of."""
    inner = saved.get("inner", saved)
    parts = inner["allocation"], saved["division"], saved["allocation"] == "Filtered"
    for name in names():
        made_of = recipe(name)
        allocation, division = made_of.allocation.__name__, made_of.division.__name__
        if (allocation, division, made_of.filtered) == parts:
            return name
    return f"{inner['allocation']} over {saved['division']}"


def _idle_rules(config: StreamConfig, note: dict[str, Any] | None) -> Iterator[str]:
    """Yield a line for each API rule about a label or group that the file does not have."""
    for given in (note or {"rules": []})["rules"]:
        rule = config.alert_rule(given, kept=True)
        gone = config.missing(rule)
        if gone is not None:
            yield (
                f"the alert rule {rule.name!r} is about {gone}, which is gone: it will never fire;"
                f" remove or replace rule {rule.fingerprint} through the API"
            )
