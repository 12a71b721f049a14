"""The follower of a stream of texts, in place of a mechanism; and the choice between the two."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from ldpstream.collector.config import StreamConfig
from ldpstream.collector.reports.halves import half_of
from ldpstream.collector.rounds.group import RoundGroup, grouped
from ldpstream.collector.rounds.loading import to_save
from ldpstream.collector.rounds.planned import turns_of
from ldpstream.collector.rounds.running_mechanism import RunningMechanism
from ldpstream.collector.store.contract import Archive, Store, StoredStream
from ldpstream.mechanisms.following import KEPT_WINDOWS, Following, ListedTexts
from ldpstream.mechanisms.messages import Ask, Purpose
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import Terms
from ldpstream.vocabulary import Vocabulary
from ldpstream.vocabulary.collector import ColumnReader
from ldpstream.vocabulary.device import encoded
from ldpstream.vocabulary.evidence import ColumnCounts


class StreamRunner(Protocol):
    """A mechanism or its replacement, which alone knows the type of its tallies."""

    @property
    def config(self) -> StreamConfig: ...

    @property
    def terms(self) -> Terms: ...

    @property
    def version(self) -> dict[str, int]: ...

    def step(self, t: int) -> Generator[Ask, Any, Any]: ...

    def ask_of_slot(self, t: int, terms: Terms) -> Ask: ...

    def tally(
        self, group: RoundGroup, supports: Mapping[str, Support], history: TermsHistory
    ) -> Any: ...

    def heard(
        self, group: RoundGroup, supports: Mapping[str, Support], history: TermsHistory
    ) -> None: ...

    def go_over(self, terms: Terms, history: TermsHistory) -> None: ...

    def expect(self, population: int) -> None: ...

    def figures(self, released: Any = None) -> dict[str, Any]: ...

    def save(self) -> dict[str, Any]: ...


def running(
    config: StreamConfig, history: TermsHistory, stored: StoredStream, store: Store
) -> StreamRunner:
    """Return what a stream runs, as it is stored."""
    terms = history.at(max(stored.last_t, 1))
    if isinstance(terms.values, Vocabulary):
        past = past_columns(store, terms, stored.last_t)
        return RunningVocabulary(config, terms, stored.mechanism, past)
    return RunningMechanism(config, terms, stored.mechanism)


class RunningVocabulary:
    """The texts that a stream follows. Its terms never change."""

    version: dict[str, int] = {}  # noqa: RUF012  # the first one, of which releases say nothing

    def __init__(
        self,
        config: StreamConfig,
        terms: Terms,
        saved: dict[str, Any] | None,
        past: Iterable[tuple[int, Sequence[ColumnCounts]]] = (),
    ) -> None:
        assert isinstance(terms.values, Vocabulary)
        self.config, self.terms = config, terms
        self._reader = _reader_of(terms)
        self._following = Following(
            terms.values,
            terms.epsilon,
            terms.window,
            config.population,
            looked_for(config.candidates),
            config.top,
        )
        if saved is not None:
            self._following.restore(saved)
        self._following.recall(past)

    def step(self, t: int) -> Generator[Ask, Sequence[ColumnCounts], ListedTexts]:
        groups = yield self.ask_of_slot(t, self.terms)
        return self._following.step(t, groups)

    def ask_of_slot(self, t: int, terms: Terms) -> Ask:
        users = turns_of(terms, self.config.population, {}, t)
        return Ask(users, terms.epsilon, Purpose.PUBLICATION)

    def tally(
        self, group: RoundGroup, supports: Mapping[str, Support], history: TermsHistory
    ) -> Sequence[ColumnCounts]:
        """Return the columns that each group of devices has reported."""
        return self._reader.columns(supports[group.first.name])

    def heard(
        self, group: RoundGroup, supports: Mapping[str, Support], history: TermsHistory
    ) -> None:
        """Take no note: rounds that were tallied before a restart were given at the beginning."""

    def go_over(self, terms: Terms, history: TermsHistory) -> None:
        raise AssertionError("the terms of a stream of texts never change")

    def expect(self, population: int) -> None:
        self.config = replace(self.config, population=population)
        self._following.expect(population)

    def figures(self, released: ListedTexts | None = None) -> dict[str, Any]:
        """Return what readers are shown of a release; by default, of the last one."""
        return figures_of(self._following.shown if released is None else released)

    def save(self) -> dict[str, Any]:
        return self._following.save() | to_save(self.config)


def figures_of(listed: ListedTexts) -> dict[str, Any]:
    """Return what a release of texts says."""
    low, high = listed.rest_interval
    return {
        "t": listed.t,
        "labels": [_shown(text) for text in listed.texts],
        "values": listed.shares.tolist(),
        "variance": (listed.errors**2).tolist(),
        "low": listed.low.tolist(),
        "high": listed.high.tolist(),
        "fresh": listed.fresh,
        "rest": {"value": listed.rest, "low": low, "high": high},
    }


def looked_for(candidates: Iterable[str]) -> list[bytes]:
    """Return the bytes of texts to look for; only one of several that are shown alike.

    Long texts may differ in a character that is cut in two, of which a release shows no more than
    that there is one. A table cannot have two columns of the same name.

    >>> len(looked_for(["x" * 255 + "ж", "x" * 255 + "é", "é"]))
    2
    """
    return [*{_shown(text): text for text in map(encoded, candidates)}.values()]


def _shown(text: bytes) -> str:
    """Return a text as a release shows it."""
    return text.decode("utf-8", "replace")


def past_columns(
    store: Store | Archive, terms: Terms, last_t: int
) -> list[tuple[int, Sequence[ColumnCounts]]]:
    """Return the columns that were reported in the windows up to a release, by timestamp."""
    reader, first_t = _reader_of(terms), last_t - KEPT_WINDOWS * terms.window
    groups = grouped(store.rounds(terms.stream, first_t, last_t))
    return [
        (group.t, reader.columns(group.first.support))
        for group in groups
        if group.first.support is not None
    ]


def _reader_of(terms: Terms) -> ColumnReader:
    reader = half_of(terms, terms.epsilon)
    assert isinstance(reader, ColumnReader)
    return reader
