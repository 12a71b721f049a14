"""The revised history of a stream: what all of its tallies say about each timestamp by now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.messages import Release, Tally, pooled_tally
from ldpstream.mechanisms.noise import Noise
from ldpstream.oracles.collector_half import sampling
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine.change_points import ChangePoint
from ldpstream.refine.cohorts import Fleet
from ldpstream.refine.consistency import Consistency, consistent
from ldpstream.refine.intervals import normal_variance
from ldpstream.refine.smoother import History, revise


@dataclass(frozen=True)
class Heard:
    """A tally, and the epsilon of its reports."""

    epsilon: Epsilon
    tally: Tally


class Record:
    """The tallies of a stream in order, from which its history is revised.

    This is post-processing, as a filter is: it costs no privacy, and no release changes.
    """

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._rows: list[tuple[Floats, Floats, float]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, known: Floats, heard: Sequence[Heard]) -> None:
        """Add the tallies of the next timestamp; none, or empty ones, if nobody reported.

        Their variances are taken at `known`, the frequencies that were released: those at a tally's
        own estimate would make a bin that came out low by chance seem more certain than it is.
        """
        tallies = [
            Tally(
                one.tally.estimate,
                self._noise.bin_variance(one.epsilon, one.tally, known),
                one.tally.reports,
            )
            for one in heard
            if one.tally
        ]
        if not tallies:
            nothing = np.full(self._noise.labels, np.nan)
            self._rows.append((nothing, np.ones_like(nothing), 0.0))
            return
        pooled = pooled_tally(tallies)
        sampled = sampling(pooled.reports, self._noise.population)
        self._rows.append((pooled.estimate, pooled.variance, sampled))

    @property
    def history(self) -> History:
        measured, variance, sampled = zip(*self._rows, strict=True)
        return History(np.array(measured), np.array(variance), np.array(sampled))


@dataclass(frozen=True)
class Revision:
    """Revised releases, one for each timestamp of a record, and the changes among them."""

    releases: list[Release]
    """Their `t` counts from 1, the first timestamp of the record."""
    changes: tuple[ChangePoint, ...]


def revision(
    record: Record, fleet: Fleet, consistency: Consistency, lag: int | None = None
) -> Revision:
    """Revise all timestamps of a record, that of t with the tallies up to t + `lag` if given."""
    revised = revise(record.history, fleet, lag)
    low, high = np.clip(revised.low, 0.0, 1.0), np.clip(revised.high, 0.0, 1.0)
    variance = normal_variance(revised.low, revised.high)
    values = consistent(revised.values, variance, consistency)
    rows = zip(values, variance, low, high, strict=True)
    releases = [
        Release(t, one, spread, fresh=True, bounds=(bottom, top)).showing(one)
        for t, (one, spread, bottom, top) in enumerate(rows, start=1)
    ]
    return Revision(releases, revised.changes)
