"""The revised history of one stream, from the tallies and releases in its store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.store.contract import Release, Round, Store
from ldpstream.mechanisms.filtered import Observed
from ldpstream.mechanisms.messages import Release as Released
from ldpstream.mechanisms.queries import HistogramQuery
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.revision import Heard, Record, revision
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Terms
from ldpstream.refine.smoother import OVERLAP

CACHED = 4
"""Answers that are kept for a stream, each until there is a new tally within its reach."""


@dataclass(frozen=True)
class Change:
    """A change of one label at once, as readers see it."""

    t: int
    """The first timestamp after it, and the first and the last that may be (90 %)."""
    first_t: int
    last_t: int
    label: str
    size: float
    low: float
    high: float


@dataclass(frozen=True)
class Revision:
    """The revised figures of some timestamps."""

    shown: dict[int, Released]
    changes: tuple[Change, ...]

    def beside(self, release: Release) -> Release:
        """Return a release, which never changes, with the revised figures beside it."""
        revised = self.shown[release.t]
        low, high = revised.interval
        figures = {
            "revised": revised.values.tolist(),
            "revised_low": low.tolist(),
            "revised_high": high.tolist(),
        }
        return replace(release, content=release.content | figures)


class RevisedHistory:
    """A revision on demand. Nothing is stored: it is computed from the tallies, and cached."""

    def __init__(self, config: StreamConfig, terms: Terms, store: Store) -> None:
        self._config, self._store = config, store
        mechanism = build(config.mechanism, replace(config.settings, oracle=terms.oracle))
        assert isinstance(mechanism, Observed)
        self._mechanism = mechanism
        self._cached: OrderedDict[tuple[int, int, int], Revision] = OrderedDict()
        self._lock = Lock()
        """One reader at a time computes: the others find it in the cache, if they ask the same."""

    def of(self, releases: Sequence[Release]) -> list[Release]:
        """Return releases in order of t, each with its revised figures beside it."""
        if not releases:
            return []
        found = self.between(releases[0].t, releases[-1].t)
        return [found.beside(release) for release in releases]

    def between(self, first_t: int, last_t: int) -> Revision:
        """Revise the timestamps from `first_t` to `last_t`, which are released, with those near.

        They rest on the tallies of up to OVERLAP timestamps before and after them.
        """
        known = self._store.stream(self._config.name)
        end = min(last_t + OVERLAP, known.last_t if known is not None else 0)
        key = (first_t, last_t, end)
        with self._lock:
            if key not in self._cached:
                self._cached[key] = self._revised(first_t, last_t, end)
                while len(self._cached) > CACHED:
                    self._cached.popitem(last=False)
            self._cached.move_to_end(key)
            return self._cached[key]

    def _revised(self, first_t: int, last_t: int, end: int) -> Revision:
        begin = max(first_t - OVERLAP, 1)
        record = Record(self._mechanism.noise)
        for known, heard in self._heard(begin, end):
            record.add(known, heard)
        done = revision(record, self._mechanism.fleet, self._mechanism.consistency)
        query, noise = self._config.query, self._mechanism.noise
        wanted = range(first_t, last_t + 1)
        shown = {t: query.shown(done.releases[t - begin], noise) for t in wanted}
        labels = self._config.labels
        changes = (
            Change(
                one.place + begin,
                one.first + begin,
                one.last + begin,
                labels[one.label],
                *(query.unit * size for size in (one.size, one.low, one.high)),
            )
            for one in done.changes
            if len(labels) == noise.labels
        )
        return Revision(shown, tuple(one for one in changes if one.t in wanted))

    def _heard(self, begin: int, end: int) -> Iterator[tuple[Floats, list[Heard]]]:
        """Yield, for each timestamp, what was known of the frequencies then, and its tallies."""
        name, noise = self._config.name, self._mechanism.noise
        releases = {one.t: one for one in self._store.releases(name, begin, end - begin + 1)}
        rounds: dict[int, list[Round]] = {}
        for one in self._store.rounds(name, begin - 1, end):
            if one.support is not None and not self._discarded(releases.get(one.t), one.name):
                rounds.setdefault(one.t, []).append(one)
        plain = isinstance(self._config.query, HistogramQuery)
        usual = np.full(noise.labels, 1 / max(noise.labels, 2))
        for t in range(begin, end + 1):
            heard = []
            for one in rounds.get(t, ()):
                assert one.support is not None
                epsilon = Epsilon(one.epsilon_nano)
                heard.append(Heard(epsilon, noise.tally(epsilon, one.support)))
            if plain and t in releases:
                usual = np.array(releases[t].content["values"])
            elif heard and heard[0].tally:
                usual = usual + 0.05 * (heard[0].tally.estimate - usual)
            yield usual, heard

    def _discarded(self, release: Release | None, round_name: str) -> bool:
        """Whether a round was left out of its release as suspect: it stays out."""
        content: dict[str, Any] = {} if release is None else release.content
        return self._config.suspicion.discard and round_name in content.get("suspect", ())
