"""Change points: where the share of a label went from one level to another at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ldpstream.arrays import Floats, Indexes
from ldpstream.refine.bank import Bank, TallyBlock, Tested
from ldpstream.refine.chain import two_sided
from ldpstream.refine.intervals import LEVEL, QUANTILE
from ldpstream.refine.weights import SHARE

HAZARD = 1e-3
"""Prior probability of a change at a given timestamp."""
CHANGE_VARIANCE = 25.0
"""Prior variance of a change, in units of a tally's: five standard errors."""
GIANT = 20.0
"""Standard errors of a tally from which a change is no longer sized by that prior."""
WIDTHS = (2, 4, 8, 16, 32)
"""Timestamps before and after a candidate that are compared."""
CANDIDATE = 4.0
"""Usual deviations that a candidate is away from what such comparisons give."""
REACH = 150
"""Timestamps before and after a candidate that are evidence for or against it."""
NEAR = 12
"""Timestamps by which a candidate may be off."""
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

    def __init__(self, bank: Bank, stretch: TallyBlock, label: int) -> None:
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

    def _tested(self, candidate: int, weights: Floats) -> Shift | None:
        """Return the change near a candidate, if the tallies around it speak for one."""
        places, likely = self._places(candidate)
        place = int(places[np.argmax(likely)])
        begin, end = max(place - REACH, 0), min(place + REACH, len(self.shifts))
        rows = slice(begin, end)
        part = self._stretch.part(rows, slice(self._label, self._label + 1))
        bank = self._bank.only(~self._bank.seasonal | (weights[rows].max(axis=0) > SEASONAL))
        variance = CHANGE_VARIANCE * part.scale
        added = self.shifts[rows].copy()
        _, _, before = self._weighed(bank, part, added)
        added[place - begin] += variance
        seen, believed, after = self._weighed(bank, part, added)
        evidence = after - before + math.log(HAZARD)
        if evidence <= 0 or self._near_known(place):
            return None
        at = place - begin
        giant = self._step(place) ** 2 / self._relative
        if giant > GIANT**2 * part.scale:
            # Of a change that the prior rules out, members that move by themselves take most.
            added[at] += giant - variance
            variance = giant
            seen, believed, _ = self._weighed(bank, part, added)
        sizes = variance * seen.score[at]
        errors = self._relative * variance * (1 - variance * seen.shift[at])
        size = float(believed[at] @ sizes)
        reach = QUANTILE * math.sqrt(float(believed[at] @ (errors + (sizes - size) ** 2)))
        first, last = places[np.searchsorted(np.cumsum(likely), ((1 - LEVEL) / 2, (1 + LEVEL) / 2))]
        return Shift(
            ChangePoint(
                self._label,
                place,
                int(first),
                int(last),
                size,
                size - reach,
                size + reach,
                evidence,
            ),
            int(places[0]),
            likely * (variance + 2 * size**2),
        )

    def _weighed(
        self, bank: Bank, part: TallyBlock, shifts: Floats
    ) -> tuple[Tested, Floats, float]:
        """Return what members say, their weights, and the evidence for all of them."""
        seen = bank.tested(part, shifts)
        return seen, *two_sided(seen.said(self._relative), bank.prior, SHARE)

    def _step(self, place: int) -> float:
        """Return how far the tallies just after a place are from those just before it."""
        heard = np.flatnonzero(self._stretch.heard)
        border = int(np.searchsorted(heard, place))
        tallies = self._stretch.measured[:, self._label]
        before, after = heard[max(border - NEAR, 0) : border], heard[border : border + NEAR]
        if not len(before) or not len(after):
            return 0.0
        return float(tallies[after].mean() - tallies[before].mean())

    def _places(self, candidate: int) -> tuple[Indexes, Floats]:
        """Return the places of a step near a candidate, and how likely each one is.

        Around it, all but the step is taken for level: it is for a few timestamps only.
        """
        last = len(self.shifts) - 1
        rows = np.arange(max(candidate - 2 * NEAR, 0), min(candidate + 2 * NEAR, last) + 1)
        rows = rows[self._stretch.heard[rows]]
        if rows[0] == candidate:  # the first one after a silence: what came before it counts
            before = np.flatnonzero(self._stretch.heard[:candidate])[-NEAR:]
            rows = np.concatenate([before, rows])
        measured = self._stretch.measured[rows, self._label]
        measured = measured - measured.mean()
        count = np.arange(1, len(rows))
        sums = np.cumsum(measured)[:-1]
        between = sums**2 * (1 / count + 1 / (len(rows) - count))
        noise = self._stretch.variance[rows, self._label].mean()
        places = rows[1:]
        near = np.abs(places - candidate) <= NEAR
        places, fits = places[near], between[near] / (2 * noise)
        likely = np.exp(fits - fits.max())
        likely[likely < LEAST * likely.sum()] = 0.0
        whole = np.zeros(places[-1] - places[0] + 1)
        whole[places - places[0]] = likely / likely.sum()
        return np.arange(places[0], places[-1] + 1), whole


def candidates(stretch: TallyBlock, label: int) -> Iterator[int]:
    """Yield places where the tallies before and after differ more than they do elsewhere."""
    heard = np.flatnonzero(stretch.heard)
    errors = stretch.measured[heard, label] / np.sqrt(stretch.variance[heard, label])
    sums = np.concatenate([[0.0], np.cumsum(errors)])
    strongest = np.zeros(len(heard))
    for width in WIDTHS:
        if len(heard) < 4 * width:
            break
        middle = np.arange(width, len(heard) - width + 1)
        apart = sums[middle + width] - 2 * sums[middle] + sums[middle - width]
        apart = np.abs(apart) / math.sqrt(2 * width)
        usual = max(float(np.median(apart)) / 0.6745, 1.0)
        inside = middle < len(heard)
        places, strength = middle[inside], apart[inside] / usual
        strongest[places] = np.maximum(strongest[places], strength)
    for place in np.argsort(-strongest)[: np.count_nonzero(strongest >= CANDIDATE)]:
        if strongest[place]:
            yield int(heard[place])
            strongest[max(place - NEAR, 0) : place + NEAR + 1] = 0.0
