"""What leaders and followers of a stream start from: its terms, selection and open rounds."""

from __future__ import annotations

from dataclasses import replace

from ldpstream.collector.clock import Clock
from ldpstream.collector.config import Selection as Kind
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.reports.halves import half_of
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.selection import (
    Asked,
    OpenSelection,
    RosterSelection,
    Selection,
    SlotSelection,
)
from ldpstream.collector.store.contract import NewRound, Store, Stream
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.registry import build
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Terms


def terms_of(
    config: StreamConfig, store: Store, clock: Clock
) -> tuple[StreamConfig, Terms, Stream]:
    """Return a stream as it is stored, its terms, and the configuration as they settle it.

    The configuration must not contradict the terms.
    """
    stored = store.stream(config.name) or _created(config, store, clock)
    terms = Terms.read(stored.terms)
    for name in ("values", "epsilon", "window", "interval_ms", "start_ms", "oracle"):
        if (given := getattr(config, name)) is not None:
            _compare(config, name, getattr(terms, name), given)
    _compare(config, "other", _said(terms.other), _said(config.other))
    if terms.selection is None:
        return _without_slots(config), terms, stored
    _compare(config, "selection", terms.selection, config.selection)
    _compare(config, "deadline_ms", terms.deadline_ms, config.slot_deadline_ms)
    return config, terms, stored


def _compare(config: StreamConfig, name: str, stored: object, given: object) -> None:
    if given != stored:
        raise Mistake(
            Problem.TERMS_CHANGED, stream=config.name, name=name, stored=stored, given=given
        )


def _without_slots(config: StreamConfig) -> StreamConfig:
    """A stream that release 0.1.0 began: its terms leave the selection to the configuration."""
    if config.selection is not Kind.SLOTS:
        return config
    if config.selection_given:
        raise Mistake(Problem.SLOTS_TOO_LATE, stream=config.name)
    return replace(config, selection=Kind.OPEN)


def _said(label: str | None) -> str:
    return "nothing" if label is None else repr(label)


def _created(config: StreamConfig, store: Store, clock: Clock) -> Stream:
    mechanism = build(config.mechanism, config.settings)
    terms = Terms(
        config.name,
        config.values,
        config.epsilon,
        config.window,
        config.interval_ms,
        clock.now_ms() if config.start_ms is None else config.start_ms,
        mechanism.noise.oracle,
        config.other,
        config.selection,
        config.slot_deadline_ms,
    )
    try:
        return store.create_stream(config.name, terms.to_json())
    except Exception:
        first = store.stream(config.name)  # another collector may have been faster
        if first is None:
            raise
        return first


def selection_of(config: StreamConfig, terms: Terms, store: Store) -> Selection:
    if config.selection is Kind.SLOTS:
        return SlotSelection(terms.epsilon, terms.window, config.population)
    if config.selection is Kind.OPEN:
        return OpenSelection(terms.epsilon, terms.window, config.population)
    return RosterSelection(terms.epsilon, terms.window, config.population, store, config.name)


def open_round_of(config: StreamConfig, terms: Terms, stored: NewRound) -> OpenRound:
    """A stored round, with all that is needed to validate its reports."""
    return OpenRound(
        config.name,
        terms.pin,
        stored,
        half_of(terms, Epsilon(stored.epsilon_nano)),
        Asked.of(stored) if config.selection is Kind.ROSTER else None,
    )
