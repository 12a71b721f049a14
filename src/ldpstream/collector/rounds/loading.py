"""What leaders and followers of a stream start from: its terms, selection and open rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ldpstream.collector.clock import Clock
from ldpstream.collector.config import SelectionMethod, StreamConfig
from ldpstream.collector.reports.halves import half_of
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.changes import described, differences
from ldpstream.collector.rounds.selection import (
    Asked,
    OpenSelection,
    RosterSelection,
    Selection,
    SlotSelection,
)
from ldpstream.collector.rounds.succession import make_successor, urgent
from ldpstream.collector.store.contract import NewRound, Store, StoredStream
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.strata import return_period
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import Terms
from ldpstream.vocabulary import Vocabulary

POPULATION = "population"
"""The key, in a mechanism's saved state, of a population that follows the fleet."""


def terms_of(
    config: StreamConfig, store: Store, clock: Clock
) -> tuple[StreamConfig, TermsHistory, StoredStream]:
    """Return a stream as it is stored, all of its terms, and the configuration as they settle it.

    The configuration must not contradict the latest terms, unless it says how it follows them: then
    the terms that it describes are stored, once.
    """
    stored = store.stream(config.name) or _created(config, store, clock)
    history = TermsHistory.read(stored.versions)
    config = settled(config, history.latest, stored.mechanism)
    found = list(differences(config, history.latest))
    if not found:
        return config, history, stored
    opened = [one.t for one in store.rounds(config.name, stored.last_t)]
    begun_t = max([stored.last_t, *opened])
    successor = make_successor(config, history.latest, urgent(found), clock.now_ms(), begun_t)
    return config, _succeeded(config, store, successor), stored


def settled(
    config: StreamConfig, latest: Terms, saved: dict[str, Any] | None = None
) -> StreamConfig:
    """Return the configuration with what the store decides about it: by terms, and saved state.

    A population that follows the fleet goes on from the one that was saved. What the file leaves
    open of a vocabulary, above all its salt, is as it was generated. Terms that release
    0.1.0 began leave the selection to the configuration, and have no slots.
    """
    if config.follows_fleet and saved is not None:
        config = replace(config, population=last_population(saved) or config.population)
    if config.vocabulary is not None and isinstance(latest.values, Vocabulary):
        config = replace(config, values=config.vocabulary.settled(latest.values))
    if latest.selection is not None or config.selection is not SelectionMethod.SLOTS:
        return config
    if config.selection_given:
        raise Mistake(Problem.SLOTS_TOO_LATE, stream=config.name)
    return replace(config, selection=SelectionMethod.OPEN)


def last_population(saved: dict[str, Any]) -> int | None:
    """Return the population of a saved state, if it tells: the one that was followed, or given."""
    given = saved["total"] if saved.get("division") == PopulationDivision.__name__ else None
    found: int | None = saved.get(POPULATION, given)
    return found


def to_save(config: StreamConfig) -> dict[str, int]:
    """Return what `last_population` finds in a saved state: a population that is followed."""
    return {POPULATION: config.population} if config.follows_fleet else {}


def _created(config: StreamConfig, store: Store, clock: Clock) -> StoredStream:
    values = config.values
    if config.vocabulary is not None and isinstance(values, Vocabulary):
        values = config.vocabulary.begun(values)
    terms = described(config, values, clock.now_ms())
    Terms.read(terms.to_json())  # what devices would refuse must not be stored for good
    try:
        return store.create_stream(config.name, terms.to_json())
    except Exception:
        first = store.stream(config.name)  # another collector may have been faster
        if first is None:
            raise
        return first


def _succeeded(config: StreamConfig, store: Store, successor: Terms) -> TermsHistory:
    """Store new terms, unless another collector was faster, and return all versions."""
    try:
        store.succeed(config.name, successor.to_json())
    except Exception:
        found = TermsHistory.read(store.versions(config.name))
        if next(differences(config, found.latest), None) is not None:
            raise
        return found
    return TermsHistory.read(store.versions(config.name))


def mechanism_of(config: StreamConfig, terms: Terms) -> Mechanism:
    """Return the mechanism under these terms: it asks as the strictest of their levels does."""
    windows = [one.window for one in terms.strata]
    settings = replace(
        config.settings,
        labels=len(terms.values),
        epsilon=min(one.epsilon for one in terms.strata),
        window=max(windows),
        oracle=terms.oracle,
        returns_after=return_period(windows) if terms.levels else None,
    )
    return build(config.mechanism, settings)


def selection_of(config: StreamConfig, terms: Terms, store: Store) -> Selection:
    if config.selection is SelectionMethod.SLOTS:
        return SlotSelection(terms.epsilon, terms.window, config.population)
    if config.selection is SelectionMethod.OPEN:
        return OpenSelection(terms.epsilon, terms.window, config.population)
    return RosterSelection(terms.epsilon, terms.window, config.population, store, config.name)


def open_round_of(config: StreamConfig, history: TermsHistory, stored: NewRound) -> OpenRound:
    """A stored round, with all that is needed to validate its reports."""
    terms = history.stratum(stored.name)
    assert terms is not None
    return OpenRound(
        terms,
        stored,
        half_of(terms, Epsilon(stored.epsilon_nano)),
        Asked.of(stored) if config.selection is SelectionMethod.ROSTER else None,
    )
