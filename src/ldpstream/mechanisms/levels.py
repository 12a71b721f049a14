"""Levels of privacy: several pairs of epsilon and window, of which each user has one for good."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ldpstream.arrays import Counts
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.strata import return_period
from ldpstream.privacy.epsilon import Epsilon

FORM = "epsilon:window:share of the users, separated by commas, such as 0.5:40:0.3,1:20:0.7"
CORRELATED = "correlated"
SUM_WITHIN = 1e-3
"""How far the sum of the shares may be off 1, so that 0.333 can stand for a third."""


@dataclass(frozen=True)
class FleetLevel:
    """A promise of at most `epsilon` in any `window` timestamps, and the share who took it."""

    epsilon: Epsilon
    window: int
    share: float

    def __post_init__(self) -> None:
        if self.window < 1:
            raise Mistake(Problem.WINDOW_RANGE, given=self.window)
        if not 0 < self.share <= 1:
            _refuse(f"of a share of {self.share:g}", "shares above 0, up to 1")

    def __str__(self) -> str:
        return f"{self.epsilon}:{self.window}:{self.share:.4g}"


@dataclass(frozen=True)
class FleetLevels:
    """The levels of a simulated fleet.

    >>> levels = FleetLevels.read("0.5:40:1/3,1:20:1/3,2:20:1/3,correlated:0.5")
    >>> str(levels)
    '0.5:40:0.3333,1:20:0.3333,2:20:0.3333,correlated:0.5'
    >>> str(levels.epsilon), levels.window, levels.sizes(10).tolist()
    ('0.5', 40, [3, 4, 3])
    """

    each: tuple[FleetLevel, ...]
    correlation: float = 0.0
    """The share of the users whose level goes with their value (`streams/correlated.py`)."""

    def __post_init__(self) -> None:
        total = sum(level.share for level in self.each)
        if abs(total - 1) > SUM_WITHIN:
            _refuse(f"of shares that sum to {total:.4g}", "shares that sum to 1")
        if not 0 <= self.correlation <= 1:
            _refuse(f"{CORRELATED} by {self.correlation:g}", "a share of the users, 0 to 1")

    @classmethod
    def read(cls, written: FleetLevels | str) -> FleetLevels:
        """Parse levels, and after them how far they are correlated with values."""
        if isinstance(written, FleetLevels):
            return written
        parts = [part.strip() for part in written.split(",")]
        correlation = 0.0
        try:
            if parts[-1].startswith(CORRELATED + ":"):
                correlation = float(Fraction(parts.pop().partition(":")[2]))
            fields = [part.split(":") for part in parts]
            read = [(Epsilon.of(e), int(w), float(Fraction(s))) for e, w, s in fields]
        except (ValueError, ZeroDivisionError):
            _refuse(repr(written), FORM)
        return cls(tuple(FleetLevel(*one) for one in read), correlation)

    def __str__(self) -> str:
        said = ",".join(map(str, self.each))
        return f"{said},{CORRELATED}:{self.correlation:g}" if self.correlation else said

    @property
    def return_period(self) -> int:
        """The timestamps after which the same users of all levels report together again."""
        return return_period([level.window for level in self.each])

    @property
    def epsilon(self) -> Epsilon:
        """The least epsilon."""
        return min(level.epsilon for level in self.each)

    @property
    def window(self) -> int:
        """The longest window; with the least epsilon it is a promise that suits everybody."""
        return max(level.window for level in self.each)

    def sizes(self, users: int) -> Counts:
        """Return how many of the users have each level; refuse a level without any."""
        ends = np.cumsum([level.share for level in self.each])
        sizes: Counts = np.diff(np.rint(ends / ends[-1] * users).astype(np.int64), prepend=0)
        if not sizes.all():
            _refuse(f"{self} for {users} users", "more users, or larger shares: one level has none")
        return sizes


def _refuse(given: str, expected: str) -> None:
    raise Mistake(Problem.OPTION, option="levels", given=given, expected=expected)
