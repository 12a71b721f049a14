"""Stretches of a stream's history within which figures can be compared: labels stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ldpstream.protocol.history import TermsHistory, first_t
from ldpstream.protocol.terms import Terms
from ldpstream.refine.cohorts import ReportingFleet


@dataclass(frozen=True)
class Stretch:
    """Timestamps under terms whose labels are the same, and whose devices take the same turns."""

    terms: Terms
    """The first of these terms."""
    fleet: ReportingFleet
    first_t: int
    last_t: int | None
    """None if it has no end yet."""

    def within(self, first_t: int, last_t: int) -> range:
        """Return which of some timestamps, both ends included, are in it."""
        end = last_t if self.last_t is None else min(last_t, self.last_t)
        return range(max(first_t, self.first_t), end + 1)


def stretches(history: TermsHistory, fleets: Sequence[ReportingFleet]) -> list[Stretch]:
    """Return the stretches of a stream, in order; `fleets` are those of each version of its terms.

    Where new terms bring labels in, a stretch begins once those who do not know them are no longer
    counted. What these hold of a new label is unsaid, and no number of such tallies makes up for
    it: the timestamps of the overlap are in no stretch.
    """
    each = zip(history.versions, fleets, strict=True)
    found = []
    for (_, fleet), alike in groupby(each, key=lambda pair: (pair[0].names, pair[1])):
        first, *later = (terms for terms, _ in alike)
        change = history.next_change(first_t(later[-1] if later else first))
        last_t = None if change is None else change - 1
        found.append(Stretch(first, fleet, _all_told(history, first), last_t))
    return found


def _all_told(history: TermsHistory, terms: Terms) -> int:
    """Return the first timestamp of terms from which all who are counted know their labels."""
    begin = first_t(terms)
    for old in history.versions[: terms.version - 1]:
        places, last_t = history.places(old, terms), history.last_t(old)
        if places is not None and last_t is not None and len(set(places)) < len(terms.names):
            begin = max(begin, last_t + 1)
    return begin
