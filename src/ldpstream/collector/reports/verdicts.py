"""Verdicts on records: accepted, repeated, or refused with an entry of the catalogue."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpstream.errors import Problem

Verdicts = NDArray[np.uint8]


class Verdict(IntEnum):
    """The verdict on a record, in one byte."""

    ACCEPTED = 0
    REPEATED = 1
    CONFLICT = 2
    CLOSED = 3
    MAC = 4
    VERSION = 5
    RANGE = 6
    NOT_ASKED = 7
    DEVICE_VERSION = 8
    KEY_ENDED = 9
    DENIED = 10

    @property
    def refusal(self) -> Problem | None:
        """Why the record is refused; None if it counts, or counted before."""
        return _REFUSALS.get(self)


_REFUSALS = {
    Verdict.CONFLICT: Problem.REPORT_CONFLICT,
    Verdict.CLOSED: Problem.ROUND_CLOSED,
    Verdict.MAC: Problem.REPORT_MAC,
    Verdict.VERSION: Problem.REPORT_VERSION,
    Verdict.RANGE: Problem.REPORT_RANGE,
    Verdict.NOT_ASKED: Problem.REPORT_NOT_ASKED,
    Verdict.DEVICE_VERSION: Problem.DEVICE_VERSION,
    Verdict.KEY_ENDED: Problem.KEY_ENDED,
    Verdict.DENIED: Problem.DEVICE_DENIED,
}


class JudgedRecords(NamedTuple):
    """What came of the records of a request, one in each row."""

    verdicts: Verdicts
    renew: NDArray[np.bool_]
    """Which devices have signed with a key of a master secret that is being replaced."""

    def part(self, first: int, number: int) -> JudgedRecords:
        """Return what came of some of them."""
        rows = slice(first, first + number)
        return JudgedRecords(self.verdicts[rows], self.renew[rows])


def all_of(verdict: Verdict, number: int) -> Verdicts:
    return np.full(number, verdict, np.uint8)


def count(verdicts: Verdicts) -> Counter[Verdict]:
    """Return how often each verdict occurs in an array.

    >>> dict(count(np.array([0, 4, 0], np.uint8)))
    {<Verdict.ACCEPTED: 0>: 2, <Verdict.MAC: 4>: 1}
    """
    numbers = np.bincount(verdicts, minlength=len(Verdict)).tolist()
    return Counter({verdict: numbers[verdict] for verdict in Verdict if numbers[verdict]})
