"""The revised history of one stream, from the tallies and releases in its store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from threading import Lock
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.collector.alerts.evidence import LevelChange
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.releases.formats import REVISED
from ldpstream.collector.rounds.batch_tallies import tallies_at_once
from ldpstream.collector.rounds.combining import StrataTally, relabelling
from ldpstream.collector.rounds.group import grouped
from ldpstream.collector.rounds.loading import mechanism_of
from ldpstream.collector.rounds.stretches import Stretch, stretches
from ldpstream.collector.store.contract import EVER, Archive, Store, StoredRelease, StoredRound
from ldpstream.mechanisms.filtered import Observed
from ldpstream.mechanisms.noise import Noise
from ldpstream.mechanisms.queries import DistributionQuery, HistogramQuery
from ldpstream.mechanisms.revision import Record, RecordedTally, revision
from ldpstream.mechanisms.strata import OFFSETS_OVER
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import Terms
from ldpstream.refine.smoother import OVERLAP

NOTHING_READ: Mapping[int, StoredRelease] = {}
CACHED = 4
"""Answers that are kept for a stream, each until there is a new tally within its reach."""
FITTED = 50
"""Timestamps at once of a distribution: to fit one to each takes some 10 ms, or twice as much."""


@dataclass(frozen=True)
class RevisedFigures:
    """The revised figures of some timestamps."""

    shown: dict[int, Floats]
    """Figures and both ends of their intervals, as rows, by timestamp: of those in a stretch."""
    changes: tuple[LevelChange, ...]

    def followed_by(self, later: RevisedFigures) -> RevisedFigures:
        return RevisedFigures(self.shown | later.shown, self.changes + later.changes)

    def beside(self, release: StoredRelease) -> StoredRelease:
        """Return a release, which never changes, with the revised figures beside it, or None."""
        figures = self.shown.get(release.t)
        rows = (None,) * len(REVISED) if figures is None else figures.tolist()
        return release.beside(dict(zip(REVISED, rows, strict=True)))


class RevisedHistory:
    """A revision on demand. Nothing is stored: it is computed from the tallies, and cached."""

    def __init__(self, config: StreamConfig, store: Store | Archive) -> None:
        self._config, self._store = config, store
        self._history = TermsHistory(())
        self._mechanisms: list[Observed] = []
        """That of each version of the terms."""
        self._stretches: list[Stretch] = []
        self._cached: OrderedDict[tuple[int, int, int], RevisedFigures] = OrderedDict()
        self._lock = Lock()
        """One reader at a time computes: the others find it in the cache, if they ask the same."""

    @property
    def most(self) -> int:
        """How many timestamps to revise at once."""
        return FITTED if isinstance(self._config.query, DistributionQuery) else EVER

    def of(self, releases: Sequence[StoredRelease]) -> list[StoredRelease]:
        """Return releases in order of t, each with its revised figures beside it."""
        found = self.over(releases)
        return [found.beside(release) for release in releases]

    def over(self, releases: Sequence[StoredRelease]) -> RevisedFigures:
        """Revise releases in order of t, skipping gaps without any release, which may be long."""
        done, read = RevisedFigures({}, ()), {one.t: one for one in releases}
        for first_t, last_t in _runs(list(read)):
            done = done.followed_by(self.between(first_t, last_t, read))
        return done

    def between(
        self, first_t: int, last_t: int, read: Mapping[int, StoredRelease] = NOTHING_READ
    ) -> RevisedFigures:
        """Revise the timestamps from `first_t` to `last_t`, which are released, with those near.

        They rest on the tallies of up to OVERLAP timestamps before and after them, as far as their
        stretch goes. Releases in `read` are not read from the store once more.
        """
        if self._config.vocabulary is not None:
            return RevisedFigures({}, ())  # reports of texts are read anew at each release, anyway
        known = self._store.stream(self._config.name)
        assert known is not None
        key = (first_t, last_t, min(last_t + OVERLAP, known.last_t))
        with self._lock:
            self._learn(known.versions)
            if key not in self._cached:
                self._cached[key] = self._revised(*key, read)
                while len(self._cached) > CACHED:
                    self._cached.popitem(last=False)
            self._cached.move_to_end(key)
            return self._cached[key]

    def _learn(self, versions: Sequence[dict[str, Any]]) -> None:
        """Take in all versions of the terms, if some of them are new."""
        if len(versions) > len(self._history.versions):
            self._history = TermsHistory.read(versions)
            self._mechanisms = [_observed(self._config, one) for one in self._history.versions]
            fleets = [one.fleet for one in self._mechanisms]
            self._stretches = stretches(self._history, fleets)

    def _mechanism(self, terms: Terms) -> Observed:
        return self._mechanisms[terms.version - 1]

    def _revised(
        self, first_t: int, last_t: int, end: int, read: Mapping[int, StoredRelease]
    ) -> RevisedFigures:
        done = RevisedFigures({}, ())
        for stretch in self._stretches:
            wanted = stretch.within(first_t, last_t)
            if wanted:
                near = stretch.within(wanted[0] - OVERLAP, end)
                part = self._within(stretch, wanted, near, read)
                done = done.followed_by(part)
        return done

    def _within(
        self, stretch: Stretch, wanted: range, near: range, read: Mapping[int, StoredRelease]
    ) -> RevisedFigures:
        """Revise some timestamps of one stretch by the tallies of those near them."""
        mechanism, begin = self._mechanism(stretch.terms), near[0]
        noise, names = mechanism.noise, stretch.terms.names
        record = self._record(near, noise, read)
        done = revision(record, stretch.fleet, mechanism.consistency, since=begin - 1)
        rows, query = slice(wanted[0] - begin, wanted[-1] + 1 - begin), self._config.query
        answers = np.stack(done.answers(query, noise, rows), axis=1)
        shown = dict(zip(wanted, answers, strict=True))
        changes = (
            LevelChange(
                one.place + begin,
                one.first + begin,
                one.last + begin,
                names[one.label],
                *(query.unit * size for size in (one.size, one.low, one.high)),
            )
            for one in done.changes
            if len(names) == noise.labels and not isinstance(query, DistributionQuery)
        )
        return RevisedFigures(shown, tuple(one for one in changes if one.t in wanted))

    def _record(self, near: range, noise: Noise, read: Mapping[int, StoredRelease]) -> Record:
        """Return the tallies of timestamps, combined as they were for their releases."""
        span = range(max(near[0] - self._warm_up, 1), near[-1] + 1)
        releases = self._releases(span, read)
        asked = self._config.name, span[0] - 1, span[-1]
        rounds = self._store.tallied(*asked)
        discarded, record = self._discarded(releases), Record(noise)
        if rounds.times:
            now = self._mechanism(self._history.at(rounds.times[0])).noise
            found = tallies_at_once(self._config, self._history, rounds, discarded, releases, now)
            if found is not None:
                record.go_on(now)
                record.add_all(near, found)
                return record
        tallies = self._one_by_one(self._store.rounds(*asked), discarded)
        for t, known in self._known(near, noise.labels, releases, tallies):
            record.go_on(self._mechanism(self._history.at(t)).noise)
            record.add(known, tallies.get(t, ()))
        return record

    def _known(
        self,
        near: range,
        labels: int,
        releases: Mapping[int, StoredRelease],
        tallies: Mapping[int, list[RecordedTally]],
    ) -> Iterator[tuple[int, Floats]]:
        """Yield each timestamp, and what was known of the frequencies then."""
        plain = isinstance(self._config.query, HistogramQuery)
        usual = np.full(labels, 1 / max(labels, 2))
        for t in near:
            heard = tallies.get(t, [])
            if plain and t in releases:
                usual = np.array(releases[t].content["values"])
            elif heard and heard[0].tally:
                usual = usual + 0.05 * (heard[0].tally.estimate - usual)
            yield t, usual

    def _releases(self, span: range, read: Mapping[int, StoredRelease]) -> dict[int, StoredRelease]:
        """Return the releases of a span by timestamp, with those that are read already."""
        found = dict(read)
        for first_t, last_t in _runs([t for t in span if t not in read]):
            more = self._store.releases(self._config.name, first_t, last_t - first_t + 1)
            found |= {one.t: one for one in more}
        return found

    @property
    def _warm_up(self) -> int:
        """The number of earlier timestamps from which the sizes of strata are learnt."""
        strata = [one for terms in self._history.versions for one in terms.strata]
        longest = max(one.window for one in strata)
        return min(round(OFFSETS_OVER * longest), OVERLAP) if len(strata) > 1 else 0

    def _one_by_one(
        self, rounds: Sequence[StoredRound], discarded: Container[str]
    ) -> dict[int, list[RecordedTally]]:
        """Return the tallies of asks under any terms, by timestamp."""
        strata, found = StrataTally(self._config, None), dict[int, list[RecordedTally]]()
        groups = [group for group in grouped(rounds) if group.is_tallied]
        before = self._history.at(groups[0].t) if groups else self._history.first
        for group in groups:
            terms = self._history.at(group.t)
            if terms.version != before.version:
                strata.go_over(relabelling(self._history, before, terms))
                before = terms
            supports, noise = group.credible(discarded.__contains__), self._mechanism(terms).noise
            tally = strata.tally(group, supports, self._history, noise)
            heard = RecordedTally(Epsilon(group.first.epsilon_nano), tally)
            found.setdefault(group.t, []).append(heard)
        return found

    def _discarded(self, releases: Mapping[int, StoredRelease]) -> set[str]:
        """Return the names of the rounds left out of their releases as suspect."""
        if not self._config.suspicion.discard:
            return set()
        return {name for one in releases.values() for name in one.content.get("suspect", ())}


def _observed(config: StreamConfig, terms: Terms) -> Observed:
    """Return the mechanism of a stream under these terms: all that are served have a filter."""
    mechanism = mechanism_of(config, terms)
    assert isinstance(mechanism, Observed)
    return mechanism


def _runs(timestamps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of timestamps without a gap.

    >>> list(_runs([1, 2, 3, 7, 9, 10]))
    [(1, 3), (7, 7), (9, 10)]
    """
    for _, run in groupby(enumerate(timestamps), key=lambda pair: pair[1] - pair[0]):
        (_, first), *more = run
        yield first, more[-1][1] if more else first
