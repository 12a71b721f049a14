"""The range of a number, and the levels to which readings are rounded before anything else."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from numbers import Integral, Real
from typing import Any

from ldpstream.domain import MOST_LABELS
from ldpstream.errors import Mistake, Problem

STEPS = 1 << 10


@dataclass(frozen=True)
class Range:
    """A range with equally spaced levels 0 .. steps from `low` to `high`.

    Rounding to the nearest level moves a reading by at most half a step. In a mean over many
    readings most of that cancels; at worst it stays below (high - low) / (2 steps), 0.05 % of the
    range with the default of 1,024 steps, where the noise of 10,000 reports at epsilon 1 is 1 %.

    >>> celsius = Range(-20, 60, steps=800)
    >>> celsius.level(21.34), celsius.value(400), celsius.levels
    (413, 20.0, 801)
    >>> celsius.level(99), celsius.level(-99)
    (800, 0)
    """

    low: float
    high: float
    steps: int = STEPS

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high) and self.low < self.high):
            self._refuse(f"{self.low} to {self.high}", "two finite numbers, the lower one first")
        if not 1 <= self.steps < MOST_LABELS:
            self._refuse(f"divided into {self.steps} steps", f"1 to {MOST_LABELS - 1} steps")

    def _refuse(self, given: str, expected: str) -> None:
        raise Mistake(Problem.OPTION, option="the range", given=given, expected=expected)

    @property
    def levels(self) -> int:
        return self.steps + 1

    def __len__(self) -> int:
        """Return the number of values that a device may hold, as for a domain of labels."""
        return self.levels

    def level(self, reading: Any) -> int:
        """Return the level nearest to a reading; beyond the range, that of the nearer end.

        This is the last place on a device where a float is used, and even here it is converted to
        an exact fraction. What is not a number is refused: no level would be honest.
        """
        if not _is_number(reading):
            raise Mistake(
                Problem.OPTION, option="a reading", given=reading, expected="a number, or nothing"
            )
        low, high = Fraction(self.low), Fraction(self.high)
        inside = min(max(_plain(reading), self.low), self.high)  # no branch: an end takes as long
        return round((Fraction(inside) - low) / (high - low) * self.steps)

    def value(self, level: float) -> float:
        """Return the number that a level, or a mean of levels, stands for."""
        return self.low + (self.high - self.low) * level / self.steps

    def to_json(self) -> dict[str, Any]:
        """Return the ends as decimal texts, the same in every language, since a pin covers them.

        >>> Range(-0.5, 60, steps=8).to_json()
        {'low': '-0.5', 'high': '60', 'steps': 8}
        """
        return {"low": _decimal(self.low), "high": _decimal(self.high), "steps": self.steps}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Range:
        return cls(float(saved["low"]), float(saved["high"]), saved["steps"])


FINEST = 256
"""The levels of a range in bins: this many, or up to twice as many."""
MEAN = "mean"
"""The name of the figure that is a mean."""
QUANTILES = {"p10": 0.1, "p50": 0.5, "p90": 0.9, "p99": 0.99}
"""The quantiles that are released of a distribution, by their names."""


@dataclass(frozen=True)
class BinnedRange(Range):
    """A range whose distribution is asked for, in equal bins; its levels follow from them.

    >>> BinnedRange.of(0, 5, bins=2).names
    ('[0, 2.5)', '[2.5, 5)', 'p10', 'p50', 'p90', 'p99', 'mean')
    >>> len(BinnedRange.of(0, 5, bins=20))
    320
    """

    bins: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.bins <= FINEST:
            self._refuse(f"in {self.bins} bins", f"2 to {FINEST}")
        if self.levels != cells_of(self.bins):
            self._refuse(f"of {self.levels} levels", f"{cells_of(self.bins)} for {self.bins} bins")
        if len(set(_edges(self.low, self.high, self.bins))) <= self.bins:
            given = f"{self.low} to {self.high} in {self.bins} bins"
            self._refuse(given, "bins whose ends are different numbers")

    @classmethod
    def of(cls, low: float, high: float, bins: int) -> BinnedRange:
        return cls(low, high, cells_of(bins) - 1, bins)

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"bins": self.bins}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> BinnedRange:
        return cls(float(saved["low"]), float(saved["high"]), saved["steps"], saved["bins"])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the released figures: the bins, the quantiles and the mean."""
        return (*bin_names(self.low, self.high, self.bins), *QUANTILES, MEAN)


def cells_of(bins: int, most: int = 2 * FINEST) -> int:
    """Return how many cells a distribution in `bins` has: the bins, halved again and again.

    `most` is the number of levels that there are.
    """
    cells = bins
    while 0 < cells < FINEST and 2 * cells <= most:
        cells *= 2
    return cells


def bin_names(low: float, high: float, bins: int) -> list[str]:
    """Return the names of equal bins, with as many digits as tell their ends apart."""
    edges = _edges(low, high, bins)
    texts: list[str] = []
    for digits in range(6, 18):
        texts = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(texts)) == len(texts):
            break
    return [f"[{one}, {other})" for one, other in pairwise(texts)]


def _edges(low: float, high: float, bins: int) -> list[float]:
    return [low + (high - low) * place / bins for place in range(bins + 1)]


def _is_number(reading: object) -> bool:
    if isinstance(reading, Decimal):
        return not reading.is_nan()
    return isinstance(reading, Real) and reading == reading  # NaN differs from itself


def _plain(reading: Any) -> int | float | Fraction:
    """Return a number of Python's own: numpy's would overflow, and some say this and then that."""
    if isinstance(reading, Integral):
        return int(reading)
    # Of a Decimal such as 1e-10000000, the exact fraction would take seconds.
    return Fraction(reading) if isinstance(reading, Fraction) else float(reading)


def _decimal(number: float) -> str:
    """Return the shortest text that is parsed as this number, without an exponent."""
    text = format(Decimal(repr(float(number))), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
