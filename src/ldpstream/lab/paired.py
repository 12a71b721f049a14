"""Paired differences: whether two mechanisms differ, repeat by repeat, or chance can explain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from statistics import fmean, stdev


@dataclass(frozen=True)
class Paired:
    """The mean of paired differences, and its 95 % interval by Student's t."""

    mean: float
    low: float
    high: float
    """From minus infinity to infinity if there is one pair only."""
    pairs: int

    @property
    def known(self) -> bool:
        """Whether there were enough pairs for an interval."""
        return isfinite(self.high)

    @property
    def differs(self) -> bool:
        """Whether chance is ruled out as the cause of the difference: 0 is outside the interval."""
        return not self.low <= 0 <= self.high


def paired(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Return the mean of `first` minus `second`, taken pair by pair.

    >>> said = paired([3.0, 4.1, 5.0], [2.0, 3.0, 4.1])
    >>> f"{said.mean:.2f} from {said.low:.2f} to {said.high:.2f}", said.differs
    ('1.00 from 0.75 to 1.25', True)
    """
    differences = [one - other for one, other in zip(first, second, strict=True)]
    middle, half = fmean(differences), _half_interval(differences)
    return Paired(middle, middle - half, middle + half, len(differences))


def _half_interval(values: Sequence[float]) -> float:
    """Return half the width of the mean's 95 % interval; infinite if it is unknown."""
    if len(values) < 2:
        return inf
    return student(len(values) - 1) * stdev(values) / sqrt(len(values))


def student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t: a table, then an expansion around the normal one.

    >>> [round(student(freedom), 2) for freedom in (1, 2, 10, 100)]
    [12.71, 4.3, 2.23, 1.98]
    """
    table = (12.706, 4.303, 3.182, 2.776)
    if freedom <= len(table):
        return table[freedom - 1]
    return 1.95996 + 2.3723 / freedom + 2.8225 / freedom**2
