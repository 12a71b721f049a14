"""Change points: where the share of a label went from one level to another at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.bank import Bank, Stretch, Tested
from ldpstream.refine.chain import shift_odds, two_sided
from ldpstream.refine.intervals import LEVEL, QUANTILE
from ldpstream.refine.weights import SHARE

HAZARD = 1e-3
"""Prior probability of a change at a given timestamp."""
CHANGE_VARIANCE = 25.0
"""Prior variance of a change, in units of a tally's: five standard errors."""
WIDTHS = (2, 4, 8, 16, 32)
"""Timestamps before and after a candidate that are compared."""
CANDIDATE = 4.0
"""Usual deviations that a candidate is away from what such comparisons give."""
REACH = 150
"""Timestamps before and after a candidate that are evidence for or against it."""
NEAR = 12
"""Timestamps by which a candidate may be off."""
AROUND = 4
"""Timestamps from a candidate at which members are weighed: at it, only fast ones fit."""
SEASONAL = 0.05
"""The weight that a season must have somewhere within reach to take part."""
LEAST = 0.01
"""A timestamp that is less likely than this to be that of the change is none of its places."""
LEAST_APART = 3
"""Timestamps between two changes of a label."""
ROUNDS = 2
"""Searches: a large change hides smaller ones beside it."""


@dataclass(frozen=True)
class ChangePoint:
    """A change of one label, by `size` with an interval, just before timestamp `place`."""

    label: int
    place: int
    first: int
    """The earliest and the latest place that is likely."""
    last: int
    size: float
    low: float
    high: float
    evidence: float
    """Log-odds that there is one."""

    def later(self, timestamps: int) -> ChangePoint:
        """Return the same change in a history that began so much earlier."""
        first, last = self.first + timestamps, self.last + timestamps
        return replace(self, place=self.place + timestamps, first=first, last=last)


@dataclass(frozen=True)
class Shift:
    """A change, and the variance that it adds to a level from row `begin` on."""

    change: ChangePoint
    begin: int
    added: Floats


class Search:
    """A search in one label's tallies, first by eye, then by the evidence of all members."""

    def __init__(self, bank: Bank, stretch: Stretch, label: int) -> None:
        self._bank = bank
        self._stretch = stretch
        self._label = label
        self._relative = float(stretch.relative[label])
        self.shifts = np.zeros(len(stretch.heard))
        """The variance that the changes found so far add to a level."""
        self.changes: list[ChangePoint] = []

    def run(self, weights: Floats) -> bool:
        """Search, given the weights of members without any change; return whether one was found."""
        for _ in range(ROUNDS):
            found = len(self.changes)
            for place in candidates(self._stretch, self._label):
                shift = None if self._near_known(place) else self._tested(place, weights)
                if shift is not None:
                    rows = slice(shift.begin, shift.begin + len(shift.added))
                    self.shifts[rows] += shift.added
                    self.changes.append(shift.change)
            if len(self.changes) == found:
                break
        return bool(self.changes)

    def _near_known(self, place: int) -> bool:
        return any(abs(place - change.place) < LEAST_APART for change in self.changes)

    def _tested(self, place: int, weights: Floats) -> Shift | None:
        """Return the change near a place, if the tallies around it speak for one."""
        begin, end = max(place - REACH, 0), min(place + REACH, len(self.shifts))
        rows = slice(begin, end)
        part = self._stretch.part(rows, slice(self._label, self._label + 1))
        bank = self._bank.only(~self._bank.seasonal | (weights[rows].max(axis=0) > SEASONAL))
        known = self.shifts[rows]
        without, before = self._weighed(bank, part, known)
        nearby = _odds(without, _around(before[0]), self._relative, part.scale)
        near = slice(max(place - begin - NEAR, 1), place - begin + NEAR + 1)
        at = near.start + int(np.argmax(nearby[near]))
        if self._near_known(begin + at):
            return None
        added = known.copy()
        added[at] += CHANGE_VARIANCE * part.scale
        _, after = self._weighed(bank, part, added)
        evidence = after[1] - before[1] + math.log(HAZARD)
        if evidence <= 0:
            return None
        odds = _odds(without, after[0], self._relative, part.scale)[near]
        return self._shift(without, after[0], near, odds, begin, evidence, part.scale)

    def _weighed(
        self, bank: Bank, part: Stretch, shifts: Floats
    ) -> tuple[Tested, tuple[Floats, float]]:
        seen = bank.tested(part, shifts)
        return seen, two_sided(seen.said(self._relative), bank.prior, SHARE)

    def _shift(
        self,
        seen: Tested,
        weights: Floats,
        near: slice,
        odds: Floats,
        begin: int,
        evidence: float,
        scale: float,
    ) -> Shift:
        places = np.exp(odds - odds.max())
        places[places < LEAST * places.sum()] = 0.0
        places /= places.sum()
        at = near.start + int(np.argmax(places))
        sizes = seen.score[at] / seen.shift[at]
        size = float(weights[at] @ sizes)
        variance = float(weights[at] @ (self._relative / seen.shift[at] + (sizes - size) ** 2))
        passed = np.cumsum(places)
        change = ChangePoint(
            self._label,
            begin + at,
            begin + near.start + int(np.searchsorted(passed, (1 - LEVEL) / 2)),
            begin + near.start + int(np.searchsorted(passed, (1 + LEVEL) / 2)),
            size,
            size - QUANTILE * math.sqrt(variance),
            size + QUANTILE * math.sqrt(variance),
            evidence,
        )
        return Shift(change, begin + near.start, places * (CHANGE_VARIANCE * scale + 2 * size**2))


def _around(weights: Floats) -> Floats:
    """Return the mean weights a little before and a little after each timestamp."""
    rows = np.arange(len(weights))
    before, after = np.maximum(rows - AROUND, 0), np.minimum(rows + AROUND, len(rows) - 1)
    around: Floats = (weights[before] + weights[after]) / 2
    return around


def _odds(seen: Tested, weights: Floats, relative: float, scale: float) -> Floats:
    return shift_odds(weights, seen.score, seen.shift, relative, CHANGE_VARIANCE * scale * relative)


def candidates(stretch: Stretch, label: int) -> Iterator[int]:
    """Yield places where the tallies before and after differ more than they do elsewhere."""
    heard = np.flatnonzero(stretch.heard)
    errors = stretch.measured[heard, label] / np.sqrt(stretch.variance[heard, label])
    sums = np.concatenate([[0.0], np.cumsum(errors)])
    strongest = np.zeros(len(heard))
    width_of = np.zeros(len(heard), np.int64)
    for width in WIDTHS:
        if len(heard) < 4 * width:
            break
        middle = np.arange(width, len(heard) - width + 1)
        apart = sums[middle + width] - 2 * sums[middle] + sums[middle - width]
        apart = np.abs(apart) / math.sqrt(2 * width)
        usual = max(float(np.median(apart)) / 0.6745, 1.0)
        inside = middle < len(heard)
        places, strength = middle[inside], apart[inside] / usual
        larger = strength > strongest[places]
        strongest[places[larger]], width_of[places[larger]] = strength[larger], width
    for place in np.argsort(-strongest)[: np.count_nonzero(strongest >= CANDIDATE)]:
        if strongest[place]:
            yield int(heard[place])
            reach = max(int(width_of[place]), LEAST_APART)
            strongest[max(place - reach, 0) : place + reach + 1] = 0.0
