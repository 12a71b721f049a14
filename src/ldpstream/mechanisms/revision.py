"""The revised history of a stream: what all of its tallies say about each timestamp by now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.messages import Release, Tally, pooled_tally
from ldpstream.mechanisms.noise import Noise, reweighed
from ldpstream.mechanisms.queries import HistogramQuery, Query
from ldpstream.mechanisms.tallies import Tallies
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine.change_points import ChangePoint
from ldpstream.refine.cohorts import ReportingFleet
from ldpstream.refine.consistency import Consistency, consistent
from ldpstream.refine.intervals import Interval, hull, normal_interval, normal_variance
from ldpstream.refine.smoother import History, held_at, revise


@dataclass(frozen=True)
class RecordedTally:
    """A tally, and the epsilon of its reports."""

    epsilon: Epsilon
    tally: Tally


class _Rows(NamedTuple):
    """The tallies of some timestamps, a row for each."""

    estimate: Floats
    variance: Floats
    """Without the part that lasts."""
    sampled: Floats
    """The variance of sampling as a factor of f (1 - f)."""
    lasting: Floats


class Record:
    """The tallies of a stream in order, from which its history is revised.

    This is post-processing, as a filter is: it costs no privacy, and no release changes.
    """

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._parts: list[_Rows] = []

    def go_on(self, noise: Noise) -> None:
        """Go on under terms by which the reports about the same labels are read otherwise."""
        self._noise = noise

    def add(self, known: Floats, heard: Sequence[RecordedTally]) -> None:
        """Add the tallies of the next timestamp; none, or empty ones, if nobody reported.

        Their variances are taken at `known`, the frequencies that were released: those at a tally's
        own estimate would make a bin that came out low by chance seem more certain than it is.
        """
        tallies = [
            reweighed(one.tally, self._noise, one.epsilon, known) for one in heard if one.tally
        ]
        if not tallies:
            nothing = np.full((1, self._noise.labels), np.nan)
            self._parts.append(_Rows(nothing, np.ones_like(nothing), np.zeros(1), self._lasting))
            return
        pooled = pooled_tally(tallies)
        sampled = np.array([pooled.sampled_from(self._noise.population)])
        lasting = np.zeros((1, self._noise.labels)) + pooled.lasting
        variance = pooled.variance - lasting
        self._parts.append(_Rows(pooled.estimate[None], variance, sampled, lasting))

    def add_all(self, span: range, tallies: Tallies) -> None:
        """Add the tallies of a span of timestamps, some of which may have none."""
        told = (tallies.reports > 0) & (tallies.times >= span[0]) & (tallies.times <= span[-1])
        rows = tallies.times[told] - span[0]
        shape = len(span), self._noise.labels
        measured, variance, sampled = np.full(shape, np.nan), np.ones(shape), np.zeros(len(span))
        measured[rows], sampled[rows] = tallies.estimate[told], tallies.sampled[told]
        variance[rows] = tallies.variance[told] - tallies.lasting[told]
        latest = np.searchsorted(rows, np.arange(len(span)), side="right")
        lasting = np.concatenate([self._lasting, tallies.lasting[told]])[latest]
        self._parts.append(_Rows(measured, variance, sampled, lasting))

    @property
    def _lasting(self) -> Floats:
        """The variance that lasts after the timestamps so far, as one row."""
        return self._parts[-1].lasting[-1:] if self._parts else np.zeros((1, self._noise.labels))

    @property
    def history(self) -> History:
        estimate, variance, sampled, _ = map(np.concatenate, zip(*self._parts, strict=True))
        return History(estimate, variance, sampled)

    @property
    def lasting(self) -> Floats:
        """The variances of errors that the tallies of some time share: nothing averages them."""
        return np.concatenate([rows.lasting for rows in self._parts])


@dataclass(frozen=True)
class Revision:
    """Revised frequencies, a row for each timestamp of a record, and the changes among them."""

    values: Floats
    variance: Floats
    interval: Interval
    changes: tuple[ChangePoint, ...]

    def answers(self, query: Query, noise: Noise, rows: slice) -> tuple[Floats, Floats, Floats]:
        """Return the answers to a query at some timestamps, and the ends of their intervals."""
        low, high = self.interval
        parts = [one[rows] for one in (self.values, low, high, self.variance)]
        if isinstance(query, HistogramQuery):
            return parts[0], parts[1], parts[2]
        shown = [
            query.shown(Release(0, one, spread, fresh=True, bounds=(bottom, top)), noise)
            for one, bottom, top, spread in zip(*parts, strict=True)
        ]
        ends = zip(*((one.values, *one.interval) for one in shown), strict=True)
        values, low, high = (np.array(one) for one in ends)
        return values, low, high


def revision(
    record: Record,
    fleet: ReportingFleet,
    consistency: Consistency,
    lag: int | None = None,
    since: int = 0,
) -> Revision:
    """Revise all timestamps of a record, that of t with the tallies up to t + `lag` if given.

    The stream had `since` timestamps before those of the record.
    """
    history = record.history
    revised = revise(history, fleet, lag, since)
    low, high = _widened((revised.low, revised.high), record.lasting)
    variance = normal_variance(low, high)
    held = held_at(np.isfinite(history.measured[:, 0]))  # silence widens, and moves no figure
    values = consistent(revised.values, variance[held], consistency)
    low, high, possible = (np.clip(one, 0.0, 1.0) for one in (low, high, values))
    return Revision(values, variance, hull((low, high), (possible, possible)), revised.changes)


def _widened(interval: Interval, added: Floats) -> Interval:
    """Return the interval of an error that has so much more variance."""
    low, high = interval
    return normal_interval((low + high) / 2, normal_variance(low, high) + added)
