"""Revised history: an estimate of each past histogram from the tallies before and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Flags, Floats
from ldpstream.refine.bank import Bank, Done, TallyBlock, in_threads
from ldpstream.refine.chain import central, two_sided
from ldpstream.refine.change_points import ChangePoint, Search
from ldpstream.refine.cohorts import ReportingFleet
from ldpstream.refine.filter import LEAST_NOISE
from ldpstream.refine.hindsight import members
from ldpstream.refine.intervals import mixture_moments
from ldpstream.refine.periods import PeriodFinder
from ldpstream.refine.seasons import is_harmonic
from ldpstream.refine.turns import TallyRows, turns
from ldpstream.refine.weights import PRIOR_LABELS, SHARE
from ldpstream.refine.white import white_movement

HINDSIGHT_CLASSES = (0.01, 0.1)
"""Shares that separate labels by size: those of one class learn from each other. The filter has
one class more; the priors of revised figures were chosen with these."""
MOST_CELLS = 1 << 18
"""Timestamps times labels that are smoothed at once: this bounds the memory."""
OVERLAP = 1024
"""Timestamps before and after a chunk that take part in it."""
LAG_PARTS = 8
"""With a lag, lag / LAG_PARTS timestamps are revised at once, by tallies up to the first + lag."""


@dataclass(frozen=True)
class History:
    """The tallies of a stream, a row for each timestamp; NaN where nobody reported."""

    measured: Floats
    variance: Floats
    sampled: Floats
    """Of the variance of a frequency f, `sampled` f(1-f) is due to who was asked."""

    def part(self, begin: int, end: int) -> History:
        rows = slice(max(begin, 0), end)
        return History(self.measured[rows], self.variance[rows], self.sampled[rows])


@dataclass(frozen=True)
class Revised:
    """Revised frequencies with their intervals, T x d, and where they changed at once."""

    values: Floats
    low: Floats
    high: Floats
    changes: tuple[ChangePoint, ...]


def revise(
    history: History, fleet: ReportingFleet | None = None, lag: int | None = None, since: int = 0
) -> Revised:
    """Smooth a history. With a `lag`, that of t rests on the tallies up to t + lag only.

    `since` is the number of timestamps before the history: users are dealt into other cohorts by
    the clock of the stream.

    >>> rng = np.random.default_rng(1)
    >>> share = 0.3 + 0.1 * np.sin(np.arange(400) / 60)
    >>> noisy = share + rng.normal(0, 0.02, 400)
    >>> seen = History(np.column_stack([1 - noisy, noisy]), np.full((400, 2), 4e-4), np.zeros(400))
    >>> revised = revise(seen)
    >>> bool(np.mean((revised.values[:, 1] - share) ** 2) < 4e-4 / 30)
    True
    """
    timestamps, labels = history.measured.shape
    parts = []
    for begin, end, first, last in _blocks(timestamps, labels, lag):
        done = _smoothed(history.part(first, last), fleet or ReportingFleet(), since + first)
        parts.append(_cut(done, begin - first, end - first, first))
    return _joined(parts, axis=0)


def held_at(heard: Flags) -> NDArray[np.int64]:
    """Return the row that holds at each row: the nearest one between the first and the last heard.

    >>> held_at(np.array([False, True, False, True, False])).tolist()
    [1, 1, 2, 3, 3]
    """
    known = np.flatnonzero(heard) if heard.any() else np.arange(len(heard))
    return np.clip(np.arange(len(heard)), known[0], known[-1])


def _joined(parts: list[Revised], axis: int) -> Revised:
    """Return parts one after the other, or side by side."""
    return Revised(
        np.concatenate([part.values for part in parts], axis),
        np.concatenate([part.low for part in parts], axis),
        np.concatenate([part.high for part in parts], axis),
        tuple(change for part in parts for change in part.changes),
    )


def _blocks(timestamps: int, labels: int, lag: int | None) -> Iterator[tuple[int, int, int, int]]:
    """Yield the timestamps begin .. end - 1 to revise, and those that they rest on."""
    size = max(MOST_CELLS // min(labels, 16), 4 * OVERLAP) - 2 * OVERLAP
    ahead, past = OVERLAP, OVERLAP
    if lag is not None and lag < timestamps:
        size = min(size, max(lag // LAG_PARTS, 1))
        ahead = lag + 1 - size
    for begin in range(0, timestamps, size):
        end = min(begin + size, timestamps)
        yield begin, end, max(begin - past, 0), min(end + ahead, timestamps)


def _cut(done: Revised, begin: int, end: int, since: int) -> Revised:
    """Return some rows of what was smoothed, with changes in timestamps of the whole history."""
    rows = slice(begin, end)
    changes = tuple(one.later(since) for one in done.changes if begin <= one.place < end)
    return Revised(done.values[rows], done.low[rows], done.high[rows], changes)


def _smoothed(history: History, fleet: ReportingFleet, since: int) -> Revised:
    """Smooth a chunk of a history that begins `since` timestamps after the first."""
    heard = np.isfinite(history.measured[:, 0])
    labels = history.measured.shape[1]
    if not heard.any():
        anywhere = np.ones_like(history.measured)
        return Revised(anywhere / max(labels, 2), 0 * anywhere, anywhere, ())
    stretch = TallyBlock(np.where(heard[:, None], history.measured, 0.0), history.variance, heard)
    bank = Bank.of(members(*_periods(stretch, fleet, history.sampled)), labels, stretch.scale)
    fits = _fits(bank, stretch)
    found = turns(_tallies(fits, stretch, history.sampled), fleet, since)
    if found is not None:
        variance = np.maximum(stretch.variance - found.explained, LEAST_NOISE * stretch.variance)
        less = TallyBlock(stretch.measured - heard[:, None] * found.offsets, variance, heard)
        fits = _fits(bank, less)
    return _joined([fit.revised() for fit in fits], axis=1)


def _fits(bank: Bank, stretch: TallyBlock) -> list[_Fit]:
    """Fit the members of a bank to all labels, so many at a time as memory is meant for."""
    timestamps, labels = stretch.measured.shape
    size = max(MOST_CELLS // timestamps, 1)
    return [_Fit(bank, stretch, begin, begin + size) for begin in range(0, labels, size)]


def _tallies(fits: list[_Fit], stretch: TallyBlock, sampled: Floats) -> TallyRows:
    """Return all tallies; where there is none, what the others say of it."""
    means = np.concatenate([fit.between[0] for fit in fits], axis=1)
    shares = np.clip(means, 0.0, 1.0)
    return TallyRows(
        np.where(stretch.heard[:, None], stretch.measured, means),
        stretch.variance,
        np.minimum(sampled[:, None] * shares * (1 - shares), stretch.variance),
    )


def _periods(
    stretch: TallyBlock, fleet: ReportingFleet, sampled: Floats
) -> tuple[float | None, float | None]:
    """Return the period of a stretch and a second one, if it has any that is not the cohorts'."""
    measured = stretch.measured[stretch.heard]
    finder = PeriodFinder.over(measured)
    first = finder.period() if finder.has_enough else None
    if first is None:
        return None, None
    cohorts = fleet.cohorts(measured.shape[1])
    shares = np.clip(measured.mean(axis=0), 0.0, 1.0)
    sampling = float(sampled[stretch.heard].mean()) * shares * (1 - shares)
    noise = stretch.variance[stretch.heard].mean(axis=0)
    if cohorts and not cohorts.allow(first, finder, sampling, noise):
        return None, None
    second = finder.second(first)
    if second is None or is_harmonic(second, first) or (cohorts and cohorts.has_period(second)):
        return first, None
    return first, second


class _Fit:
    """The members of a bank on some labels: who is right at which label and when."""

    def __init__(self, bank: Bank, whole: TallyBlock, begin: int, end: int) -> None:
        stretch = whole.part(slice(None), slice(begin, end))
        self._bank, self._stretch, self._begin = bank, stretch, begin
        self._relative = stretch.relative
        self._seen = bank.over(stretch, np.zeros(len(stretch.heard)))
        self._prior = np.repeat(bank.prior[None], len(self._seen), axis=0)
        self._weights = self._each(self._weighed)
        self.changes = [change for found in self._each(self._search) for change in found]
        self._pool()
        self.white = self._white()
        self._relative = self._relative + self.white / stretch.scale
        self._weights = self._each(self._weighed)

    def _each(self, work: Callable[[int], Done]) -> list[Done]:
        return in_threads(work, range(len(self._seen)), len(self._stretch.heard))

    def _weighed(self, label: int) -> Floats:
        measured, relative = self._stretch.measured[:, label], float(self._relative[label])
        said = self._seen[label].said(measured, relative)
        return two_sided(said, self._prior[label], SHARE)[0]

    def _search(self, label: int) -> list[ChangePoint]:
        """Find the changes of a label, and let its members know of them."""
        search = Search(self._bank, self._stretch, label)
        if search.run(self._weights[label]):
            column = self._stretch.part(slice(None), slice(label, label + 1))
            (self._seen[label],) = self._bank.over(column, search.shifts)
            self._weights[label] = self._weighed(label)
        return search.changes

    def _pool(self) -> None:
        """Let each label learn from the others which members to expect (`Weights`)."""
        labels = len(self._weights)
        if labels <= 2:
            return
        usual = np.array([weights.mean(axis=0) for weights in self._weights])
        others = (usual.sum(axis=0) - usual) * (labels - 2) / (labels - 1)
        self._prior = (PRIOR_LABELS * self._bank.prior + others) / (PRIOR_LABELS + labels - 2)

    @property
    def between(self) -> tuple[Floats, Floats]:
        """Mean and variance of what all other tallies say of each one, T x labels."""
        pairs = [
            mixture_moments(weights.T, seen.means.T, relative * seen.variances.T)
            for seen, weights, relative in zip(
                self._seen, self._weights, self._relative, strict=True
            )
        ]
        means, variances = zip(*pairs, strict=True)
        return np.stack(means, axis=1), np.stack(variances, axis=1)

    def _white(self) -> Floats:
        stretch = self._stretch
        means, spread = (part[stretch.heard] for part in self.between)
        classes = np.digitize(means.mean(axis=0), HINDSIGHT_CLASSES).astype(np.int64)
        measured, noise = stretch.measured[stretch.heard], stretch.variance[stretch.heard]
        return white_movement(measured, means, spread, noise, classes)

    def revised(self) -> Revised:
        values, low, high = (
            np.stack(part, axis=1) for part in zip(*self._each(self._truth), strict=True)
        )
        changes = tuple(replace(one, label=one.label + self._begin) for one in self.changes)
        return Revised(values, low, high, changes)

    def _truth(self, label: int) -> tuple[Floats, Floats, Floats]:
        """Return the mean of the truth at each timestamp, and the ends of its interval.

        Before the first tally and after the last one the level is held, and its interval widens: a
        slope that was seen elsewhere is no knowledge of what was there.
        """
        seen, weights, heard = self._seen[label], self._weights[label], self._stretch.heard
        measured = self._stretch.measured[:, label, None]
        noise = self._stretch.variance[:, label, None]
        spread = self._relative[label] * seen.variances + self.white[label]
        pull = np.where(heard[:, None], spread / (spread + noise), 0.0)
        means = seen.means + pull * (measured - seen.means)
        tails = np.ones((len(heard), 1))
        nearest = held_at(heard)
        weights, means = weights[nearest], means[nearest]
        return central(weights, means, self._bank.errors * (1 - pull) * spread, tails, np.zeros(1))
