"""The revised history of a stream: what all of its tallies say about each timestamp by now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.messages import Release, Tally, pooled_tally
from ldpstream.mechanisms.noise import Noise, reweighed
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine.change_points import ChangePoint
from ldpstream.refine.cohorts import Fleet
from ldpstream.refine.consistency import Consistency, consistent
from ldpstream.refine.intervals import Interval, normal_interval, normal_variance
from ldpstream.refine.smoother import History, held_at, revise


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
        self._rows: list[tuple[Floats, Floats, float, Floats]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def go_on(self, noise: Noise) -> None:
        """Go on under terms by which the reports about the same labels are read otherwise."""
        self._noise = noise

    def add(self, known: Floats, heard: Sequence[Heard]) -> None:
        """Add the tallies of the next timestamp; none, or empty ones, if nobody reported.

        Their variances are taken at `known`, the frequencies that were released: those at a tally's
        own estimate would make a bin that came out low by chance seem more certain than it is.
        """
        tallies = [
            reweighed(one.tally, self._noise, one.epsilon, known) for one in heard if one.tally
        ]
        lasting = self._rows[-1][3] if self._rows else np.zeros(self._noise.labels)
        if not tallies:
            nothing = np.full(self._noise.labels, np.nan)
            self._rows.append((nothing, np.ones_like(nothing), 0.0, lasting))
            return
        pooled = pooled_tally(tallies)
        sampled = pooled.sampled_from(self._noise.population)
        lasting = np.zeros(self._noise.labels) + pooled.lasting
        self._rows.append((pooled.estimate, pooled.variance - lasting, sampled, lasting))

    @property
    def history(self) -> History:
        measured, variance, sampled, _ = zip(*self._rows, strict=True)
        return History(np.array(measured), np.array(variance), np.array(sampled))

    @property
    def lasting(self) -> Floats:
        """The variances of errors that the tallies of some time share: nothing averages them."""
        return np.array([lasting for _, _, _, lasting in self._rows])


@dataclass(frozen=True)
class Revision:
    """Revised releases, one for each timestamp of a record, and the changes among them."""

    releases: list[Release]
    """Their `t` counts from 1, the first timestamp of the record."""
    changes: tuple[ChangePoint, ...]


def revision(
    record: Record,
    fleet: Fleet,
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
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    held = held_at(np.isfinite(history.measured[:, 0]))  # silence widens, and moves no figure
    values = consistent(revised.values, variance[held], consistency)
    rows = zip(values, variance, low, high, strict=True)
    releases = [
        Release(t, one, spread, fresh=True, bounds=(bottom, top)).showing(one)
        for t, (one, spread, bottom, top) in enumerate(rows, start=1)
    ]
    return Revision(releases, revised.changes)


def _widened(interval: Interval, added: Floats) -> Interval:
    """Return the interval of an error that has so much more variance."""
    low, high = interval
    return normal_interval((low + high) / 2, normal_variance(low, high) + added)
