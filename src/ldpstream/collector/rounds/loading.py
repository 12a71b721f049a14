"""What leaders and followers of a stream start from: its terms, selection and open rounds."""

from __future__ import annotations

from ldpstream.collector.clock import Clock
from ldpstream.collector.config import Selection as Kind
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.reports.halves import half_of
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.selection import Asked, OpenSelection, RosterSelection, Selection
from ldpstream.collector.store.contract import NewRound, Store, Stream
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.registry import build
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Terms


def terms_of(config: StreamConfig, store: Store, clock: Clock) -> tuple[Terms, Stream]:
    """Return the stored terms of a stream, which the configuration must not contradict."""
    stored = store.stream(config.name) or _created(config, store, clock)
    terms = Terms.read(stored.terms)
    for name in ("values", "epsilon", "window", "interval_ms", "start_ms", "oracle"):
        given, kept = getattr(config, name), getattr(terms, name)
        if given is not None and given != kept:
            raise Mistake(
                Problem.TERMS_CHANGED, stream=config.name, name=name, stored=kept, given=given
            )
    if config.other != terms.other:
        raise Mistake(
            Problem.TERMS_CHANGED,
            stream=config.name,
            name="other",
            stored=_said(terms.other),
            given=_said(config.other),
        )
    return terms, stored


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
    )
    try:
        return store.create_stream(config.name, terms.to_json())
    except Exception:
        first = store.stream(config.name)  # another collector may have been faster
        if first is None:
            raise
        return first


def selection_of(config: StreamConfig, terms: Terms, store: Store) -> Selection:
    if config.selection is Kind.OPEN:
        return OpenSelection(terms.epsilon, terms.window, config.population)
    return RosterSelection(
        terms.epsilon,
        terms.window,
        config.population,
        lambda first: store.roster(config.name, first),
    )


def open_round_of(config: StreamConfig, terms: Terms, stored: NewRound) -> OpenRound:
    """A stored round, with all that is needed to validate its reports."""
    return OpenRound(
        config.name,
        stored,
        half_of(terms, Epsilon(stored.epsilon_nano)),
        Asked.of(stored) if config.selection is Kind.ROSTER else None,
    )
